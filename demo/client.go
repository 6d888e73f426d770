package demo

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of the crowd's side of the wire.
const (
	maxConns       = 512
	requestTimeout = 10 * time.Second
	maxAnswer      = 64 << 10
)

// client sends the requests of the crowd and counts how they end.
type client struct {
	base    string
	http    *http.Client
	flights *flights
	meter   *meter
	// inFlight bounds requests that have begun. It outlives the crowd, so that a request under way when the time is over
	// still ends with an answer.
	inFlight context.Context
	log      *slog.Logger
	logged   atomic.Int64
}

// maxLogged is how many failed requests are logged; the others are like them.
const maxLogged = 5

func (c *client) logFailure(q call, r reply, err error) {
	if c.logged.Add(1) <= maxLogged {
		c.log.Warn("a request of the crowd failed", "method", q.method, "path", q.path, "status", r.status, "error", err)
	}
}

func newClient(inFlight context.Context, s *stage) *client {
	dial := &net.Dialer{Timeout: 5 * time.Second}
	return &client{
		base: s.base, flights: s.flights, meter: s.meter, inFlight: inFlight, log: s.cfg.Log,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: dial.DialContext, MaxIdleConns: maxConns, MaxIdleConnsPerHost: maxConns, MaxConnsPerHost: maxConns,
				IdleConnTimeout: time.Minute, DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// call is one request of a visitor.
type call struct {
	kind         Kind
	method, path string
	body         string // JSON, or a form; "" for none
	form         bool
	address      string // what the load balancer says the client's address is
	user, device string // "" if there is none
}

// reply is what a visitor sees.
type reply struct {
	fate   fate
	status int
	ours   bool // the shop wrote it, or the sale
	body   []byte
	// retryAfter is what the gateway asks to wait; 0 if it says nothing.
	retryAfter time.Duration
}

// send sends one request and waits for the answer.
func (c *client) send(q call) reply {
	ctx, cancel := context.WithTimeout(c.inFlight, requestTimeout)
	defer cancel()
	f := c.flights.begin()
	defer c.flights.end(f)
	req, err := c.request(ctx, q, f.id)
	if err != nil {
		return c.lost(q, reply{}, err)
	}
	start := time.Now()
	res, err := c.http.Do(req)
	if err != nil {
		return c.lost(q, reply{}, err)
	}
	r, err := readReply(res)
	if err != nil {
		return c.lost(q, r, err)
	}
	return c.judge(q, f, r, time.Since(start))
}

// judge says how a request ended, and counts it. An answer of the shop that says that it has failed is a failure too; 503 asks to come
// again, as when the bank does not answer.
func (c *client) judge(q call, f *flight, r reply, took time.Duration) reply {
	rule := ""
	switch by := f.denied.Load(); {
	case by != nil:
		r.fate, rule = denied, *by
	case !r.ours || r.status >= http.StatusInternalServerError && r.status != http.StatusServiceUnavailable:
		return c.lost(q, r, nil)
	}
	c.meter.count(q.kind, r.fate, rule, took)
	return r
}

func (c *client) request(ctx context.Context, q call, flightID string) (*http.Request, error) {
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Forwarded-For", q.address)
	req.Header.Set(flightHeader, flightID)
	req.Header.Set("Accept", "application/json")
	if q.user != "" {
		req.Header.Set(userHeader, q.user)
	}
	if q.device != "" {
		req.AddCookie(&http.Cookie{Name: deviceCookie, Value: q.device})
	}
	switch {
	case q.form:
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	case q.body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// readReply reads an answer to its end.
func readReply(res *http.Response) (reply, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return reply{}, err
	}
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 1<<30 {
		seconds = 0
	}
	return reply{
		status: res.StatusCode, ours: res.Header.Get(shopHeader) != "", body: body, retryAfter: time.Duration(seconds) * time.Second,
	}, nil
}
