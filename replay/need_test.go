package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// ask is one request of a key: it is checked at 1 and charged later, if counts says so, or charged at once.
type ask struct {
	event
	counts bool
}

// traffic is a key's requests in bursts, at any microsecond, over some days in which clocks change.
func traffic(r *rand.Rand, gap time.Duration) []ask {
	var all []ask
	at := time.Date(2026, 4, 23, 20, 0, 0, 0, time.UTC).UnixMicro()
	for range 40 {
		at += int64(r.ExpFloat64() * float64(gap.Microseconds()))
		if r.IntN(6) == 0 {
			at += int64(r.IntN(30)) * gap.Microseconds()
		}
		for range 1 + r.IntN(2) {
			all = append(all, ask{event{at, 1 + int64(r.IntN(2))}, r.IntN(3) > 0})
		}
	}
	return all
}

// denials runs a key's requests against a limit in a store.
func denials(t *testing.T, l headgate.Limit, all []ask, settled bool) (n int) {
	t.Helper()
	store := memstore.New(memstore.Config{SweepInterval: -1})
	defer store.Close()
	take := func(a *ask, cost int64, mode headgate.Mode) bool {
		var d headgate.Decision
		c := headgate.Charge{Slot: "s", Key: "k", Limit: l, Cost: cost, Mode: mode}
		if err := store.At(timeOf(a.at)).Take(context.Background(), []headgate.Charge{c}, &d); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		return d.Allowed
	}
	for i := range all {
		a := &all[i]
		switch {
		case !settled:
			if !take(a, a.cost, headgate.Pay) {
				n++
			}
		case !take(a, 1, headgate.Check):
			n++
		case a.counts:
			take(a, 1, headgate.Settle)
		}
	}
	return n
}

// measured runs a key's requests through a gauge.
func measured(g *gauge, all []ask, settled bool) *usage {
	u := &usage{}
	for i := range all {
		a := &all[i]
		switch {
		case !settled:
			g.add(u, a.at, a.cost)
		default:
			if g.ask(u, a.at, 1); a.counts {
				g.add(u, a.at, 1)
			}
		}
	}
	return u
}

// TestNeedIsWhatTheStoreWouldAsk: with the measured need no request is denied, with one less at least one is, and a key is
// over the limit if and only if the store denies it something.
func TestNeedIsWhatTheStoreWouldAsk(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"sliding_log %d/5m", "fixed_window %d/5m", "fixed_window %d/day zone=Africa/Cairo", "fixed_window %d/hour zone=Asia/Kolkata",
		"fixed_window %d/week zone=America/Havana", "sliding_window %d/5m", "sliding_window %d/5m cells=5", "sliding_window %d/1h cells=60",
		"token_bucket 1/10s burst=%d", "token_bucket 0.7/1m burst=%d", "leaky_bucket 1/10s capacity=%d", "token_bucket 0/s burst=%d",
	} {
		for seed := range uint64(12) {
			for _, settled := range []bool{false, true} {
				r := rand.New(rand.NewPCG(seed, 11))
				all := traffic(r, []time.Duration{7 * time.Second, 31 * time.Second, 20 * time.Minute}[seed%3])
				limit := func(n int64) headgate.Limit { return headgate.MustParseLimit(fmt.Sprintf(text, n)) }
				g := newGauge(limit(3))
				u := measured(g, all, settled)
				if want := denials(t, g.limit, all, settled) > 0; g.over(u) != want {
					t.Errorf("%s, seed %d, settled %v: over it %v, want %v", g.limit, seed, settled, g.over(u), want)
				}
				need := g.need(u)
				if text == "token_bucket 0/s burst=%d" {
					continue // no burst helps
				}
				if n := denials(t, limit(need), all, settled); n > 0 {
					t.Errorf("%s, seed %d, settled %v: it denies %d", limit(need), seed, settled, n)
				}
				if need < 1 || denials(t, limit(need-1), all, settled) == 0 {
					t.Errorf("%s, seed %d, settled %v: one less would do", limit(need), seed, settled)
				}
			}
		}
	}
}

// TestOverAQueue: a queue with max_wait has no count to compare with.
func TestOverAQueue(t *testing.T) {
	t.Parallel()
	over := 0
	for _, text := range []string{"leaky_bucket 1/10s max_wait=25s", "leaky_bucket 1/10s max_wait=30s", "leaky_bucket 1/10s capacity=4 max_wait=45s"} {
		for seed := range uint64(60) {
			all := traffic(rand.New(rand.NewPCG(seed, 12)), 40*time.Second)
			for i := range all {
				all[i].cost = 1
			}
			g := newGauge(headgate.MustParseLimit(text))
			u := measured(g, all, false)
			want := denials(t, g.limit, all, false) > 0
			if g.over(u) != want {
				t.Errorf("%s, seed %d: over it %v, want %v", text, seed, g.over(u), want)
			}
			if want {
				over++
			}
		}
	}
	if over < 20 || over > 160 {
		t.Errorf("%d of 180 were over: the test shows nothing", over)
	}
}
