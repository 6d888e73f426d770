package policy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// open is a limiter that allows everything at once: what is left is the engine.
type open struct{}

func (open) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	d.Reset(len(charges))
	for i := range d.Outcomes {
		d.Outcomes[i] = headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1}
	}
	d.Conclude(charges)
	return nil
}

const fiveRules = `
version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions: {user: {header: X-User-Id, trusted: true}, device: {cookie: did}}
lists: {office: {cidrs: [203.0.113.0/24]}, bad: {cidrs: [198.51.100.0/28]}}
allow: [office]
deny: [bad]
rules:
  - {name: site, limits: [token_bucket 20000/s burst=40000]}
  - {name: browse, match: {methods: [GET, POST]}, key: [ip], limits: [token_bucket 20/s]}
  - {name: buy-user, match: {methods: [POST], paths: [/buy]}, key: [user | ip], limits: [token_bucket 1/s burst=5]}
  - {name: buy-device, match: {methods: [POST], paths: [/buy]}, key: [device], limits: [token_bucket 1/s burst=5]}
  - {name: buy-ip, match: {methods: [POST], paths: [/buy]}, key: [ip], limits: [token_bucket 5/s burst=20]}
`

func benchRequest() *httpverdict.Request {
	return &httpverdict.Request{Method: "POST", Host: "shop.example.com", Path: "/buy", Peer: netip.MustParseAddr("127.0.0.1"),
		Header: http.Header{"X-Forwarded-For": {"192.0.2.77"}, "X-User-Id": {"u-4711"}, "Cookie": {"a=b; did=d-42"}}}
}

func benchEngine(b *testing.B, doc string, l headgate.Limiter) *Engine {
	p, err := Parse("bench.yaml", []byte(doc), ParseConfig{})
	if err != nil {
		b.Fatal(err)
	}
	e, err := NewEngine(p, l, EngineConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func BenchmarkDecide(b *testing.B) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "  - {name: r%d, match: {paths: ['/s%d/{id}/x%d']}, key: [ip], limits: [token_bucket 5/s]}\n", i, i%37, i)
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	for _, bench := range []struct {
		name, doc string
		limiter   headgate.Limiter
	}{
		{"5 rules, 5 match", fiveRules, open{}},
		{"1005 rules, 5 match", fiveRules + many.String(), open{}},
		{"5 rules, 5 match, in memory", fiveRules, store},
		{"1005 rules, 5 match, in memory", fiveRules + many.String(), store},
		{"1006 rules, 5 match and CEL, in memory", strings.Replace(fiveRules, "{name: site,", `{name: site, when: 'request.headers["x-app"] != "internal" && dim.user != ""',`, 1) + many.String(), store},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e, r := benchEngine(b, bench.doc, bench.limiter), benchRequest()
			b.ReportAllocs()
			for b.Loop() {
				if v := e.Decide(b.Context(), r); len(v.Limits) != 5 {
					b.Fatal(v)
				}
			}
		})
	}
}

// manyRules is a document of n rules, each with a path, a key, a condition of its own and two limits.
func manyRules(n int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\ndimensions: {user: {cookie: sid}}\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: r%d\n    match: {methods: [POST], paths: ['/s%d/{id}/x%d']}\n    key: [user | ip]\n    limits: [token_bucket %d/s, sliding_log 5/1m]\n", i, i%37, i, i%90+1)
		if i%10 == 0 {
			fmt.Fprintf(&b, "    when: request.headers[\"x-app\"] != \"internal-%d\"\n", i)
		}
	}
	return []byte(b.String())
}

func BenchmarkLoad(b *testing.B) {
	doc := manyRules(10_000)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		p, err := Parse("bench.yaml", doc, ParseConfig{})
		if err != nil || len(p.rules) != 10_000 {
			b.Fatal(err)
		}
	}
}
