package lookup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// HTTPConfig says how to ask. The zero HTTPConfig is ready for use.
type HTTPConfig struct {
	// Timeout bounds one call, redirects included, where the context does not end it earlier. Default 5 s.
	Timeout time.Duration
	// MaxConns is how many connections to one host there are at most; calls beyond wait for one. Default 64.
	MaxConns int
	// TLS is for https. Default: the system's authorities, TLS 1.2 at least.
	TLS *tls.Config
	// Proxy, if set, says which proxy to go through, as in [http.Transport]. Default: none, whatever the environment says.
	// Through a proxy only the proxy's own address is checked.
	Proxy func(*http.Request) (*url.URL, error)
}

// Bounds of one call.
const (
	maxURL       = 8 << 10
	maxHeader    = 16 << 10
	maxBody      = 64 << 10
	maxDrain     = 4 << 10
	maxRedirects = 3
)

// HTTP asks services. It is safe for concurrent use. Close it when nobody uses it any more.
//
// It asks by GET, sends no cookies, and follows at most 3 redirects, to the same host and port only, or from http to https
// of the same host on their usual ports. It connects to no address that is link-local, multicast or unspecified, or that is
// known to serve a cloud's credentials, whatever names lead there. Loopback and private addresses are where such services
// live, and are allowed.
type HTTP struct {
	transport *http.Transport
	timeout   time.Duration
}

// NewHTTP returns look-ups by HTTP.
func NewHTTP(cfg HTTPConfig) *HTTP { return newHTTP(cfg, nil) }

func newHTTP(cfg HTTPConfig, resolver *net.Resolver) *HTTP {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 64
	}
	if cfg.TLS == nil {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	dialer := &net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second, Resolver: resolver, ControlContext: controlDial}
	// HTTP/1 only: where one connection carries all calls, a dead one fails all of them until the system notices.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &HTTP{timeout: cfg.Timeout, transport: &http.Transport{
		Proxy: cfg.Proxy, DialContext: dialer.DialContext, TLSClientConfig: cfg.TLS.Clone(), Protocols: &protocols,
		TLSHandshakeTimeout: cfg.Timeout, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		MaxConnsPerHost: cfg.MaxConns, MaxIdleConnsPerHost: cfg.MaxConns, MaxIdleConns: 4 * cfg.MaxConns, IdleConnTimeout: 30 * time.Second,
	}}
}

// Close closes the connections that are idle. Calls that are under way end by themselves.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

// Get asks for a URL, http or https. The answer is 200 with the value: the whole body without the space around it, or, if
// jsonField is not empty, a field of it, such as "data.tier", or "items.0.tier" where items is a list. A field is a string,
// a number or a boolean, the latter two as they are written. found is false for 404 and 204, and for a field that is absent
// or null. Everything else is an error: another status, a body above 64 kB, one that is no UTF-8 or no JSON, a field that is
// an object or a list. A user and password in the URL are sent as basic authentication.
func (h *HTTP) Get(ctx context.Context, url, jsonField string) (value string, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	target, err := parseURL(url)
	if err != nil {
		return "", false, fmt.Errorf("lookup: GET: %w", err)
	}
	if value, found, err = h.follow(ctx, target, jsonField); err != nil {
		return "", false, &httpError{host: target.Scheme + "://" + target.Host, cause: err}
	}
	return value, found, nil
}

// parseURL reads a URL. Its errors do not quote it.
func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes; %d are allowed", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the URL is malformed; values that are put into one must be escaped")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL does not begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	}
	return u, nil
}

// follow asks, and asks again where it is sent to.
func (h *HTTP) follow(ctx context.Context, target *url.URL, jsonField string) (string, bool, error) {
	for range maxRedirects + 1 {
		resp, err := h.send(ctx, target, jsonField)
		if err != nil {
			return "", false, err
		}
		switch resp.StatusCode {
		case http.StatusOK:
			return readAnswer(resp, jsonField)
		case http.StatusNotFound, http.StatusNoContent:
			discard(resp)
			return "", false, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			discard(resp)
			if target, err = redirect(target, resp.Header.Get("Location")); err != nil {
				return "", false, err
			}
		default:
			discard(resp)
			return "", false, fmt.Errorf("the service answered %d; 200, 204 and 404 are understood", resp.StatusCode)
		}
	}
	return "", false, fmt.Errorf("more than %d redirects", maxRedirects)
}

// send goes to the transport itself: a client would follow by its own rules, and quote what it was given in its errors.
func (h *HTTP) send(ctx context.Context, target *url.URL, jsonField string) (*http.Response, error) {
	accept := "text/plain, */*;q=0.1"
	if jsonField != "" {
		accept = "application/json"
	}
	req := (&http.Request{
		Method: http.MethodGet, URL: target, Host: target.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {"headgate"}, "Accept": {accept}},
	}).WithContext(ctx)
	if user := target.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	return h.transport.RoundTrip(req)
}

// redirect returns where an answer sends to, if that is the same host.
func redirect(from *url.URL, location string) (*url.URL, error) {
	if location == "" || len(location) > maxURL {
		return nil, errors.New("a redirect that does not say where to")
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, errors.New("a redirect to something that is no URL")
	}
	upgrade := from.Scheme == "http" && to.Scheme == "https" && port(from) == "80" && port(to) == "443"
	same := from.Scheme == to.Scheme && port(from) == port(to)
	if !strings.EqualFold(from.Hostname(), to.Hostname()) || !same && !upgrade {
		return nil, errors.New("a redirect to another host, port or scheme is not followed; write the final URL into the policy")
	}
	to.User = from.User
	return to, nil
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// discard gives up a body. A short one is read to its end, so that the connection can be used again.
func discard(resp *http.Response) {
	if resp.ContentLength > 0 && resp.ContentLength <= maxDrain {
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain) // if it fails, the connection is closed
	}
	_ = resp.Body.Close()
}

// httpError is an error of one call.
type httpError struct {
	host  string
	cause error
}

// maxReason bounds what of a cause is shown: it can quote what a service has sent.
const maxReason = 300

// Error implements error.
func (e *httpError) Error() string {
	reason := e.cause.Error()
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return "lookup: GET " + e.host + ": " + reason
}

// Unwrap returns the cause.
func (e *httpError) Unwrap() error { return e.cause }
