package policy

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func mustParse(t testing.TB, doc string) *Policy {
	t.Helper()
	p, err := Parse("policy", []byte(doc), ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustEngine(t testing.TB, doc string, l headgate.Limiter, cfg EngineConfig) *Engine {
	t.Helper()
	e, err := NewEngine(mustParse(t, doc), l, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newMemory returns a store for which it is noon when the test begins: windows end at whole minutes, hours and days, and no test sees one end
// by chance.
func newMemory(t testing.TB) *memstore.Store {
	began := time.Now()
	s := memstore.New(memstore.Config{Now: func() time.Time { return noon.Add(time.Since(began)) }})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// request makes a request from a text such as "POST /login"; its peer is a trusted proxy of the tests' policies.
func request(text string, header ...string) *httpverdict.Request {
	method, target, _ := strings.Cut(text, " ")
	path, query, _ := strings.Cut(target, "?")
	r := &httpverdict.Request{Method: method, Host: "shop.example.com", Path: path, RawQuery: query,
		Peer: netip.MustParseAddr("10.0.0.1"), Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func from(ip, text string, header ...string) *httpverdict.Request {
	return request(text, append([]string{"X-Forwarded-For", ip}, header...)...)
}

const preamble = `
version: 1
clients: {trusted_proxies: [10.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  app: {header: X-App}
  device: {cookie: did}
  phone: {query: phone}
`

// recorder answers with what it was given, and keeps the charges.
type recorder struct {
	charges [][]headgate.Charge
	err     error
	deny    func(c *headgate.Charge) bool
}

func (r *recorder) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	r.charges = append(r.charges, append([]headgate.Charge(nil), charges...))
	d.Reset(0)
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	if r.err != nil {
		return r.err
	}
	d.Reset(len(charges))
	for i := range charges {
		o := &d.Outcomes[i]
		o.Allowed, o.HasRemaining = r.deny == nil || !r.deny(&charges[i]), true
		if !o.Allowed {
			o.Reason, o.RetryAfter = headgate.ReasonLimited, headgate.Retry{After: time.Second}
		}
	}
	d.Conclude(charges)
	return nil
}

// keys returns "slot key" of the charges of the latest take.
func (r *recorder) keys() []string {
	var out []string
	for _, c := range r.charges[len(r.charges)-1] {
		out = append(out, c.Slot+" "+c.Key)
	}
	return out
}
