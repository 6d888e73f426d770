package app

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// fragile stands for a remote store: it takes its time, counts its takes, and can be lost.
type fragile struct {
	*memstore.Store
	mu    sync.Mutex
	lost  bool
	takes int
	// slow is how long a take lasts, in virtual time; 0 where time is real.
	slow time.Duration
}

var errLost = &headgate.Error{Code: headgate.CodeUnavailable, Charge: -1, Message: "lost; nothing was charged"}

func (f *fragile) lose(lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = lost
}

func (f *fragile) called(takes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes += takes
	return !f.lost
}

func (f *fragile) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if f.slow > 0 {
		time.Sleep(f.slow)
	}
	if !f.called(1) {
		d.Reset(0)
		return errLost
	}
	return f.Store.Take(ctx, charges, d)
}

func (f *fragile) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if !f.called(0) {
		return errLost
	}
	return f.Store.Refund(ctx, charges, d)
}

func (f *fragile) Release(ctx context.Context, c *headgate.Charge) error {
	if !f.called(0) {
		return errLost
	}
	return f.Store.Release(ctx, c)
}

func (f *fragile) Renew(ctx context.Context, c *headgate.Charge) (bool, error) {
	if !f.called(0) {
		return false, errLost
	}
	return f.Store.Renew(ctx, c)
}

// rig is a guard over a fragile store, in virtual time.
type rig struct {
	t     *testing.T
	guard *Guard
	store *fragile
}

const rigPreamble = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions: {user: {header: X-User-Id, trusted: true}, device: {cookie: did}}
`

func newRig(t *testing.T, rules string, cfg GuardConfig) *rig {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(rigPreamble+rules), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: &fragile{Store: memstore.New(memstore.Config{}), slow: time.Millisecond}}
	cfg.Store = &Store{Limiter: r.store, Name: "fragile", Remote: true, close: r.store.Close}
	if r.guard, err = NewGuard(p, cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) close() {
	if err := r.guard.Close(); err != nil {
		r.t.Error(err)
	}
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
}

// ask sends a request of a user and does not end it.
func (r *rig) ask(user, line string, headers ...string) *httpverdict.Verdict {
	method, path, _ := strings.Cut(line, " ")
	req := &httpverdict.Request{
		Method: method, Path: path, Host: "shop.example.com", Peer: netip.MustParseAddr("127.0.0.1"),
		Header: http.Header{"X-Forwarded-For": {"198.51.100.7"}, "X-User-Id": {user}},
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return r.guard.Decide(r.t.Context(), req)
}

// send sends n requests of a user, each answered with a status, and counts what passes and who denies.
func (r *rig) send(n int, user, line string, status int) (passed int, by map[string]int) {
	by = map[string]int{}
	for range n {
		v := r.ask(user, line)
		if v.Allowed() {
			passed++
		} else {
			by[v.Rule+" "+v.Code]++
		}
		v.Finish(r.t.Context(), httpverdict.Result{Status: status})
	}
	return passed, by
}

func (r *rig) takes() int {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.store.takes
}

// TestChargedInOneStoreAndDeniedInAnother: what the rules with store: local and leased have charged for a request is given back
// when the strict rule denies it, whether the store says so or what is known of its denials, and when the store fails.
func TestChargedInOneStoreAndDeniedInAnother(t *testing.T) {
	for _, c := range []struct{ local, leased string }{
		{"token_bucket 20/100d burst=20", "fixed_window 20/100d"},
		{"fixed_window 20/100d", "sliding_window 20/100d cells=4"},
		{"sliding_log 20/100d", "token_bucket 20/100d burst=20"},
		{"sliding_window 20/100d cells=4", "fixed_window 20/100d"},
		{"leaky_bucket 1/100d capacity=20", "token_bucket 20/100d burst=20"},
	} {
		t.Run(c.local+", "+c.leased, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, `rules:
  - {name: far, key: [user], on_error: closed, limits: [fixed_window 5/100d]}
  - {name: lease, store: leased, limits: [`+c.leased+`]}
  - {name: near, store: local, limits: [`+c.local+`]}
  - {name: slots, store: local, limits: [concurrency 20 ttl=100d]}
`, GuardConfig{})
				defer r.close()
				r.deniedAndGivenBack()
			})
		})
	}
}

func (r *rig) deniedAndGivenBack() {
	if passed, by := r.send(8, "a", "GET /", 200); passed != 5 || by["far limited"] != 3 {
		r.t.Fatalf("a: %d have passed, denied by %v", passed, by)
	}
	time.Sleep(3 * time.Second) // leases die, and what was not spent goes back
	before := r.takes()
	for range 5 { // for longer than a lease lives
		if passed, by := r.send(100, "a", "GET /", 200); passed != 0 || by["far limited"] != 100 {
			r.t.Fatalf("a, over its limit: %d have passed, denied by %v", passed, by)
		}
		time.Sleep(400 * time.Millisecond)
	}
	if n := r.takes() - before; n > 150 {
		r.t.Errorf("500 denied requests have made %d calls", n)
	}
	r.store.lose(true)
	if passed, by := r.send(50, "b", "GET /", 200); passed != 0 || by[" store_unavailable"] != 50 {
		r.t.Fatalf("without the store: %d have passed, denied by %v", passed, by)
	}
	r.store.lose(false)
	time.Sleep(3 * time.Second)
	passed := 0
	for _, user := range []string{"b", "c"} {
		n, by := r.send(6, user, "GET /", 200)
		if passed += n; n != 5 || len(by) != 1 || by["far limited"] != 1 {
			r.t.Errorf("%s: %d have passed, denied by %v", user, n, by)
		}
	}
	n, by := r.send(7, "d", "GET /", 200)
	if passed += n; passed != 15 || by["near limited"] != 2 {
		r.t.Errorf("%d of 15 have passed after what was charged in vain, denied by %v", passed, by)
	}
}
