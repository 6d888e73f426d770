package httppay

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
)

// Bounds.
const (
	// MinSecret and MaxSecret are the lengths of a secret, in bytes; there can be up to MaxSecrets.
	MinSecret, MaxSecret = 32, 1024
	MaxSecrets           = 8
	// MaxIntentKey is the longest key of an intent, in bytes. It has letters, digits and . _ : - of ASCII.
	MaxIntentKey = 128
	// MaxPage is how many payments a page of the list has at most.
	MaxPage = 1000
)

// Defaults of Config.
const (
	DefaultTimeout  = 10 * time.Second
	DefaultMaxCalls = 32
)

// Config says where the payment service is. URL and Secrets have no default.
type Config struct {
	// URL is where the service is, such as https://pay.example.com/v1: "/intents" follows. http is for loopback alone.
	URL string
	// Secrets sign requests, all of them, and any of them verifies webhooks: 1 to 8, of 32 to 1024 bytes.
	Secrets [][]byte
	// Tolerance is how old, or how far ahead, a webhook's timestamp may be. Default 5 min.
	Tolerance time.Duration
	// ReturnURL is where the service sends shoppers back to, unless an intent says otherwise: {rid} and {order} in it stand for the
	// reservation and the order. Default: none, and it is the service's to know.
	ReturnURL string
	// Timeout bounds a call, with the wait for its turn. Default 10 s.
	Timeout time.Duration
	// MaxCalls bounds the calls at a time, and the connections. Further ones wait for their turn. Default 32.
	MaxCalls int
	// Transport makes the calls, such as one with a client certificate. Its redirects and retries are its own. Default: one that
	// keeps connections, and goes by the environment's proxies.
	Transport http.RoundTripper
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Tolerance <= 0 {
		c.Tolerance = paywire.DefaultTolerance
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxCalls <= 0 {
		c.MaxCalls = DefaultMaxCalls
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// parseBase reads the URL of a service. Its errors quote nothing of it: there could be a password in it.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, invalidf("the address of the payment service is no URL; write one such as https://pay.example.com/v1")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, invalidf("the URL of the payment service has a user, a query or a fragment; its secret is given apart, and signs the requests")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, invalidf("the URL of the payment service begins with http://, which is for this machine alone; write https://")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// CheckSecrets says what is wrong with secrets, without quoting them: their number, or the length of one.
func CheckSecrets(secrets ...[]byte) error {
	if len(secrets) == 0 || len(secrets) > MaxSecrets {
		return invalidf("%d secrets for the payment service; give 1 to %d", len(secrets), MaxSecrets)
	}
	for i, s := range secrets {
		if len(s) < MinSecret || len(s) > MaxSecret {
			return invalidf("secret %d for the payment service has %d bytes; give %d to %d, such as the output of: openssl rand -base64 32", i+1, len(s), MinSecret, MaxSecret)
		}
	}
	return nil
}

// checkReturn refuses an address to come back to that is none.
func checkReturn(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(strings.NewReplacer("{rid}", "rid", "{order}", "order").Replace(text))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(text) > maxURL {
		return invalidf("the address that shoppers come back to is no URL; write one such as https://shop.example.com/orders/{order}")
	}
	return nil
}

// checkKey refuses a key that could not stand in a path as it is.
func checkKey(key string) error {
	if key == "" || len(key) > MaxIntentKey || key == "." || key == ".." || strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") != "" {
		return invalidf("the key of an intent has 1 to %d letters, digits, dots, underscores, colons or hyphens", MaxIntentKey)
	}
	return nil
}

func invalidf(format string, args ...any) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: fmt.Sprintf(format, args...)}
}
