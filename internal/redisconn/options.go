package redisconn

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"regexp"
	"time"
)

// Options say where Redis is. They are what the Config of a store says.
type Options struct {
	// Addrs are host:port of Redis; of the sentinels if Master is set; of some nodes of a cluster if Cluster is set.
	// Default 127.0.0.1:6379.
	Addrs   []string
	Master  string
	Cluster bool
	// Username and Password are of an ACL user, the others for the sentinels themselves.
	Username, Password                 string
	SentinelUsername, SentinelPassword string
	DB                                 int
	TLS                                *tls.Config
	// ConnectTimeout bounds connecting, default 1 s. Timeout is how long a call of the store waits.
	ConnectTimeout, Timeout time.Duration
	// Namespace is what the store's keys begin with, default "headgate".
	Namespace string
}

// WithDefaults returns the options with what is not said filled in, but for Timeout.
func (o Options) WithDefaults() Options {
	if len(o.Addrs) == 0 {
		o.Addrs = []string{"127.0.0.1:6379"}
	}
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, time.Second)
	o.Namespace = cmp.Or(o.Namespace, "headgate")
	return o
}

var namespaceForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// Check says what is wrong with options that have their defaults.
func (o *Options) Check() error {
	switch {
	case !namespaceForm.MatchString(o.Namespace):
		return fmt.Errorf("namespace %q is not 1 to 64 letters, digits, '.', '_', '-' or ':'", o.Namespace)
	case o.Timeout < time.Millisecond:
		return fmt.Errorf("timeout %s is below 1ms", o.Timeout)
	case o.ConnectTimeout < time.Millisecond:
		return fmt.Errorf("connect timeout %s is below 1ms", o.ConnectTimeout)
	case o.Cluster && o.Master != "":
		return fmt.Errorf("both Cluster and Master (Sentinel) are set; choose one")
	case o.DB < 0 || (o.Cluster && o.DB != 0):
		return fmt.Errorf("database %d: a number from 0 is needed, and a cluster has only 0", o.DB)
	}
	return nil
}
