package policy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// everything is a policy that uses all there is.
const everything = `
version: 1
clients: {trusted_proxies: [10.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  device: {cookie: did}
  phone: {json: phone, fold: true}
  q: {query: q}
  area: {cel: 'request.path.startsWith("/a") ? "a" : dim.device'}
  tier: {redis: {hash: 'user:{user}', field: tier}, default: normal, timeout: 5s}
  risk: {http: {url: 'https://risk.example.com/{user}/{q}'}, timeout: 5s}
lists:
  office: {cidrs: [203.0.113.0/24]}
  bad: {dimension: device, values: [bad]}
  staff: {dimension: user, values: [staff]}
  vips: {dimension: tier, values: [vip]}
allow: [office]
deny: [bad]
rules:
  - {name: site, limits: [token_bucket 40/s burst=40], priority: critical}
  - {name: near, store: local, key: [ip], limits: [sliding_window 9/1s cells=4]}
  - {name: slots, store: local, key: [user | ip], limits: [concurrency 3 ttl=2s]}
  - {name: wait, match: {paths: [/a, '/b/{id}']}, key: [user | ip, route], limits: [token_bucket 4/s burst=2], on_deny: {action: wait, max_wait: 700ms}}
  - {name: mark, match: {methods: [POST]}, key: [phone], missing: skip, limits: [fixed_window 2/1s], on_deny: {action: mark}}
  - {name: own, match: {methods: [GET]}, key: [user], limits: [fixed_window 5/1s], on_deny: {action: stale}, skip: [staff]}
  - {name: page, match: {paths: ['/**']}, limits: [fixed_window 30/1s], on_deny: {action: stale, public: true}}
  - {name: ready, match: {paths: ['/b/**']}, key: [device], limits: [fixed_window 6/1s], on_deny: {action: fallback, body: x}}
  - {name: fails, key: [ip], limits: [sliding_log 3/1s], count_when: response.status >= 400, lockout: {after: 2, within: 1s, for: 1s, max: 4s}}
  - {name: bytes, match: {methods: [POST]}, key: [user], limits: [token_bucket 100/s burst=300], cost: request.bytes}
  - {name: answer, key: [area], limits: [fixed_window 5000/1s], cost: response.bytes, min_cost: 7}
  - {name: price, match: {headers: {X-Cost: '*'}}, key: [user], limits: [fixed_window 50/1s], cost: 'int(request.headers["x-cost"])'}
  - {name: tiers, key: [user, tier], limits: [token_bucket 3/s burst=3], overrides: {tier: {v: [token_bucket 9/s]}, list: {vips: [token_bucket 7/s]}, user: {staff: [token_bucket 8/s]}}}
  - {name: plan, key: [ip/48], limits: [token_bucket 5/s burst=5], schedule: [{daily: '12:00-13:00', limits: [token_bucket 2/s burst=5], ramp: 30s}], warmup: {from: 50%, over: 20s}}
  - {name: needs, match: {paths: [/need]}, key: [risk], missing: deny, limits: [token_bucket 5/s]}
  - {name: trial, mode: shadow, when: dim.device != "", key: [device, q], limits: [fixed_window 2/1s], count_when: response.status == 200}
`

// tape makes choices out of bytes.
type tape struct{ data []byte }

func (t *tape) pick(n int) int {
	if len(t.data) == 0 {
		return 0
	}
	c := int(t.data[0]) % n
	t.data = t.data[1:]
	return c
}

func (t *tape) word(words ...string) string { return words[t.pick(len(words))] }

// request makes a request, each time the same of the same bytes.
func (t *tape) request() func() *httpverdict.Request {
	method, path := t.word("GET", "POST", "HEAD", "OPTIONS"), t.word("/", "/a", "/a;x", "/b/1", "/b/1/2", "/need", "*", "")
	query := t.word("", "q=1", "q=%00", "q=1&q=2", "q=%zz")
	body := t.word("", `{"phone":"1"}`, `{"phone":" 1"}`, `{"phone":`, strings.Repeat("x", 200))
	length := []int64{int64(len(body)), -1, 1 << 62}[t.pick(3)]
	header := http.Header{}
	for _, h := range [][]string{
		{"X-User-Id", "", "u", "staff", "a/../b", strings.Repeat("u", 300)}, {"Cookie", "", "did=1", "did=2", "did=bad", "did=1; did=2"},
		{"X-Forwarded-For", "", "192.0.2.1", "203.0.113.1", "2001:db8::1", "junk"}, {"X-Cost", "", "5", "-1", "60", "x"},
		{"Content-Encoding", "", "gzip"}, {"Origin", "", "https://a.example"}, {"Access-Control-Request-Method", "", "GET"},
	} {
		if value := t.word(h[1:]...); value != "" {
			header[h[0]] = []string{value}
		}
	}
	peer := netip.MustParseAddr(t.word("10.0.0.1", "192.0.2.9"))
	return func() *httpverdict.Request {
		r := &httpverdict.Request{Method: method, Host: "shop.example.com", Path: path, RawQuery: query, Peer: peer, Header: header, ContentLength: length}
		if body != "" {
			r.Body = httpverdict.NewPeekedBody(io.NopCloser(strings.NewReader(body)), length, nil)
		}
		return r
	}
}

// machine is an engine with all that belongs to it, whose verdicts are named by their number.
func machine(t *testing.T) *Engine {
	n := 0
	find := func(_ context.Context, where, _ string) (string, bool, error) {
		return "v", !strings.Contains(where, "staff"), nil
	}
	return mustEngine(t, everything, newMemory(t), EngineConfig{
		Local: newMemory(t), Fallback: newMemory(t), MarkKey: []byte("sixteen bytes ok"), Explain: true,
		Lookups: Lookups{HashField: find, HTTPGet: find},
		NewID:   func() string { n++; return fmt.Sprint("id-", n) },
	})
}

// FuzzRequests sends the same requests to an engine that works with the same memory again and again, and to one that has
// new memory for each: the verdicts are the same, and in every one there is sense.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x10\x11\x12\x13\x14\x15\x16\x17\x18"))
	for i := range 40 { // of every kind something, often enough to be denied
		data := make([]byte, 400)
		for j := range data {
			data[j] = byte((i*7919 + j*(i+3)*31) >> 3)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			return
		}
		used, fresh, at, tape := machine(t), machine(t), noon, &tape{data}
		for len(tape.data) > 0 {
			at = at.Add(time.Duration(tape.pick(200)) * time.Millisecond)
			ask, res := tape.request(), httpverdict.Result{Status: 100 * (2 + tape.pick(3)), Bytes: int64(tape.pick(256)) * 20, RequestBytes: 30}
			fresh.pool = &sync.Pool{New: func() any { return newScratch(fresh.policy) }}
			a, b := used.At(at).Decide(t.Context(), ask()), fresh.At(at).Decide(t.Context(), ask())
			checkVerdict(t, a)
			a.Finish(t.Context(), res)
			b.Finish(t.Context(), res)
			a.Done, b.Done = nil, nil
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("used memory: %+v\nnew memory:  %+v", a, b)
			}
		}
	})
}

func checkVerdict(t *testing.T, v *httpverdict.Verdict) {
	t.Helper()
	switch {
	case v.ID == "" || v.Binding >= len(v.Limits) || v.Binding < -1:
		t.Fatalf("got %+v", v)
	case !v.Allowed() && v.Over != "", !v.Allowed() && v.Code == "":
		t.Fatalf("got %+v", v)
	case v.Stale != nil && v.Stale.Identity == "" && len(v.Matches) > 1 && v.Rule == "own":
		t.Fatalf("somebody's own answer is public: %+v", v)
	}
	for i := range v.Limits {
		if o := &v.Limits[i].Outcome; o.Remaining < 0 || v.Allowed() && !o.Allowed {
			t.Fatalf("got %+v", v)
		}
	}
}
