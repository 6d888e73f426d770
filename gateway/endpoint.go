package gateway

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// endpoint is where requests go, in the form that outgoing requests need.
type endpoint struct {
	scheme string // http or https
	host   string // with a port
	base   string // cleaned path without a trailing slash, "" for none
	h2c    bool
}

// MaxUpstreams is how many upstreams a gateway may have.
const MaxUpstreams = 256

// endpoints reads the upstreams of a Config; there may be none beside a handler of reserved paths.
func (c *Config) endpoints() ([]endpoint, error) {
	texts := c.Upstreams
	switch {
	case len(texts) == 0 && c.Upstream == "" && c.Reserved != nil:
		return nil, nil
	case len(texts) == 0:
		texts = []string{c.Upstream}
	case c.Upstream != "":
		return nil, errors.New("gateway: Config has both Upstream and Upstreams; put all into Upstreams")
	case len(texts) > MaxUpstreams:
		return nil, fmt.Errorf("gateway: %d upstreams are more than the %d that a gateway may have", len(texts), MaxUpstreams)
	}
	all := make([]endpoint, 0, len(texts))
	for _, text := range texts {
		up, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, up) {
			return nil, fmt.Errorf("gateway: the upstream %q is there twice", redact(text))
		}
		all = append(all, up)
	}
	return all, nil
}

// String writes the endpoint as a Config would have it.
func (t endpoint) String() string {
	scheme := t.scheme
	if t.h2c {
		scheme = "h2c"
	}
	return scheme + "://" + t.host + t.base
}

func parseEndpoint(text string) (endpoint, error) {
	fail := func(what string) (endpoint, error) {
		return endpoint{}, fmt.Errorf("gateway: upstream %q %s; write one such as http://127.0.0.1:9000", redact(text), what)
	}
	u, err := url.Parse(text)
	var port string
	switch {
	case text == "":
		return endpoint{}, errors.New("gateway: the upstream is missing; write one such as http://127.0.0.1:9000")
	case err != nil || u.Opaque != "":
		return fail("is not a URL")
	case u.Scheme == "http" || u.Scheme == "h2c":
		port = "80"
	case u.Scheme == "https":
		port = "443"
	default:
		return fail("has no scheme out of http, https and h2c")
	}
	switch {
	case u.Hostname() == "":
		return fail("has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fail("has more than scheme, host, port and path")
	case u.Port() != "":
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
			return fail("has a port outside 1 to 65535")
		}
		port = u.Port()
	}
	up := endpoint{scheme: strings.Replace(u.Scheme, "h2c", "http", 1), host: joinHostPort(u.Hostname(), port), h2c: u.Scheme == "h2c"}
	if u.EscapedPath() != "" {
		base, err := httpverdict.CleanPath(u.EscapedPath())
		if err != nil {
			return fail("has a malformed path")
		}
		up.base = strings.TrimSuffix(base, "/")
	}
	return up, nil
}

func joinHostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// redact keeps a password that somebody wrote into a URL out of errors.
func redact(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if at := strings.LastIndexByte(rest, '@'); found && at >= 0 {
		return scheme + "://…" + rest[at:]
	}
	return text
}
