package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Open connects to the Redis that a URL names, with the Config's defaults for the rest:
//
//	redis://[USER:PASSWORD@]HOST[:PORT][/DB]
//	redis+sentinel://[USER:PASSWORD@]HOST[:PORT],…/MASTER[/DB]
//	redis+cluster://[USER:PASSWORD@]HOST[:PORT],…
//
// and with TLS the same with rediss. Options follow a '?': namespace, timeout and connect_timeout (as 200ms), ca (a file
// with the certificates that sign the server's), cert and key (files with the client's own), server_name, sentinel_user and
// sentinel_password. The secret and the password may be left out of the URL and set with [ParseURL] instead. No error has a password in it.
func Open(ctx context.Context, text string) (*Store, error) {
	cfg, err := ParseURL(text)
	if err != nil {
		return nil, err
	}
	return New(ctx, cfg)
}

// optionForm finds the options of a URL in what could also be a password with a '?' in it.
var optionForm = regexp.MustCompile(`(^|&)(namespace|timeout|connect_timeout|ca|cert|key|server_name|sentinel_user|sentinel_password)=`)

// ParseURL returns the Config that [Open] would use, to be completed.
func ParseURL(text string) (Config, error) {
	scheme, rest, found := strings.Cut(text, "://")
	plain, encrypted := strings.CutPrefix(scheme, "rediss")
	if encrypted {
		scheme = "redis" + plain
	}
	var cfg Config
	switch {
	case !found, scheme != "redis" && scheme != "redis+sentinel" && scheme != "redis+cluster":
		return Config{}, configErrorf("the URL does not begin with redis://, redis+sentinel:// or redis+cluster:// (rediss with TLS)")
	case encrypted:
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	cfg.Cluster = scheme == "redis+cluster"
	// What stands before the last @ may be a password that should have been escaped: it is never shown.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if _, options, _ := strings.Cut(rest[:at], "?"); optionForm.MatchString(options) {
			return Config{}, configErrorf("an option of the URL has an @; write it as %%40")
		}
		user, password, _ := strings.Cut(rest[:at], ":")
		var err1, err2 error
		cfg.Username, err1 = url.PathUnescape(user)
		cfg.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return Config{}, configErrorf("the user or password in the URL has a %% that begins no escape; write it as %%25")
		}
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	if err := cfg.readHosts(hosts, scheme == "redis+sentinel"); err != nil {
		return Config{}, err
	}
	if err := cfg.readPath(path, scheme == "redis+sentinel"); err != nil {
		return Config{}, err
	}
	err := cfg.readQuery(query)
	return cfg, err
}

func (c *Config) readHosts(text string, sentinel bool) error {
	port := "6379"
	if sentinel {
		port = "26379"
	}
	for host := range strings.SplitSeq(text, ",") {
		if bare := strings.Trim(host, "[]"); net.ParseIP(bare) != nil {
			host = net.JoinHostPort(bare, port)
		} else if host != "" && !strings.Contains(host, ":") {
			host = net.JoinHostPort(host, port)
		}
		name, p, err := net.SplitHostPort(host)
		if n, bad := strconv.Atoi(p); err != nil || bad != nil || name == "" || n < 1 || n > 65535 {
			host, _, _ = strings.Cut(host, ":") // what follows may be a password that lacks its @HOST
			if host == "" {
				return configErrorf("the URL lacks a host; write HOST:PORT")
			}
			return configErrorf("the port after the host %q in the URL is not a number from 1 to 65535", host)
		}
		c.Addrs = append(c.Addrs, host)
	}
	if !sentinel && !c.Cluster && len(c.Addrs) > 1 {
		return configErrorf("redis:// takes one host; write redis+cluster:// or redis+sentinel:// for several")
	}
	return nil
}

func (c *Config) readPath(path string, sentinel bool) error {
	if sentinel {
		c.Master, path, _ = strings.Cut(path, "/")
		if c.Master == "" {
			return configErrorf("the URL lacks the name of the primary: redis+sentinel://HOST:PORT,…/MASTER")
		}
	}
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	if err != nil || db < 0 {
		return configErrorf("database %q in the URL is not a number", path)
	}
	c.DB = db
	return nil
}

func (c *Config) readQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return configErrorf("the options after the ? of the URL cannot be read")
	}
	var cert, key string
	for name, all := range values {
		value := all[len(all)-1]
		switch name {
		case "namespace":
			c.Namespace = value
		case "timeout":
			err = setDuration(&c.Timeout, name, value)
		case "connect_timeout":
			err = setDuration(&c.ConnectTimeout, name, value)
		case "sentinel_user":
			c.SentinelUsername = value
		case "sentinel_password":
			c.SentinelPassword = value
		case "cert":
			cert = value
		case "key":
			key = value
		case "ca", "server_name":
			err = c.readTrust(name, value)
		default:
			err = configErrorf("option %q of the URL is unknown; there are namespace, timeout, connect_timeout, ca, cert, key, server_name, sentinel_user, sentinel_password", name)
		}
		if err != nil {
			return err
		}
	}
	return c.readCertificate(cert, key)
}

func setDuration(to *time.Duration, name, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return configErrorf("option %s=%q of the URL is not a duration such as 200ms", name, value)
	}
	*to = d
	return nil
}

func (c *Config) readTrust(name, value string) error {
	if c.TLS == nil {
		return configErrorf("option %s of the URL is for TLS; write rediss instead of redis", name)
	}
	if name == "server_name" {
		c.TLS.ServerName = value
		return nil
	}
	pem, err := os.ReadFile(value)
	if err != nil {
		return configErrorf("option ca of the URL: %v", err)
	}
	c.TLS.RootCAs = x509.NewCertPool()
	if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return configErrorf("option ca of the URL: %s has no certificate in PEM form", value)
	}
	return nil
}

func (c *Config) readCertificate(cert, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case c.TLS == nil:
		return configErrorf("options cert and key of the URL are for TLS; write rediss instead of redis")
	case cert == "" || key == "":
		return configErrorf("options cert and key of the URL need each other")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return configErrorf("options cert and key of the URL: %v", err)
	}
	c.TLS.Certificates = []tls.Certificate{pair}
	return nil
}
