package resilience

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/memstore"
)

func openMemory(tb testing.TB) *memstore.Store {
	tb.Helper()
	s := memstore.New(memstore.Config{})
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// TestShareConformance: alone, a share is what it shares.
func TestShareConformance(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(tb testing.TB) headgate.Limiter { return NewShare(openMemory(tb), nil) }})
}

func TestShareJudgesByItsPart(t *testing.T) {
	t.Parallel()
	var live atomic.Int64
	s := NewShare(openMemory(t), func() int { return int(live.Load()) })
	c := headgate.One("s", "k", headgate.MustParseLimit("fixed_window 10/day"))
	remaining := func() int64 {
		d, err := headgate.Take(t.Context(), s, c)
		if err != nil || !d.Allowed {
			t.Fatalf("%+v %v", d, err)
		}
		return d.Outcomes[0].Remaining
	}
	live.Store(2)
	if got := remaining(); got != 4 {
		t.Errorf("of half of ten %d are left", got)
	}
	live.Store(1)
	if got := remaining(); got != 8 {
		t.Errorf("when the other has gone, of ten %d are left", got)
	}
	live.Store(0)
	if got := remaining(); got != 7 {
		t.Errorf("with nobody, of ten %d are left", got)
	}
	live.Store(5)
	d, err := headgate.Take(t.Context(), s, c)
	if err != nil || d.Allowed {
		t.Errorf("three were taken of a fifth of ten: %+v %v", d, err)
	}
	if in, err := s.Inspect(t.Context(), "s", "k"); err != nil || in.Used != 3 {
		t.Errorf("used %d, %v", in.Used, err)
	}
	if err := s.Reset(t.Context(), "s", "k"); err != nil {
		t.Fatal(err)
	}
	if got := remaining(); got != 1 {
		t.Errorf("after a reset, of a fifth of ten %d are left", got)
	}
}

func TestShareRefundsAndReleases(t *testing.T) {
	t.Parallel()
	s := NewShare(openMemory(t), func() int { return 3 })
	charges := []headgate.Charge{
		{Slot: "c", Key: "k", Limit: headgate.MustParseLimit("concurrency 5 ttl=60s"), Cost: 1, Holder: "a"},
		{Slot: "t", Key: "k", Limit: headgate.MustParseLimit("token_bucket 6/1h burst=6"), Cost: 2},
	}
	var d headgate.Decision
	for i, taken := range []int64{2, 2} {
		if err := s.Take(t.Context(), charges, &d); err != nil || !d.Allowed || d.Outcomes[1].Receipt.Charged != taken {
			t.Fatalf("take %d: %+v %v", i, d, err)
		}
		if err := s.Refund(t.Context(), charges, &d); err != nil || d.Outcomes[1].Receipt.Charged != 0 {
			t.Fatalf("refund %d: %+v %v", i, d, err)
		}
	}
	c := charges[0]
	if err := s.Take(t.Context(), charges[:1], &d); err != nil || !d.Allowed {
		t.Fatalf("%+v %v", d, err)
	}
	other := c
	other.Holder = "b" // a third of five is one
	if d, err := headgate.Take(t.Context(), s, other); err != nil || d.Allowed {
		t.Errorf("a second holder: %+v %v", d, err)
	}
	if alive, err := s.Renew(t.Context(), &c); err != nil || !alive {
		t.Errorf("renew: %t %v", alive, err)
	}
	if err := s.Release(t.Context(), &c); err != nil {
		t.Error(err)
	}
	if d, err := headgate.Take(t.Context(), s, other); err != nil || !d.Allowed {
		t.Errorf("after the release: %+v %v", d, err)
	}
}

// bare is a limiter without any ability.
type bare struct{}

func (bare) Take(context.Context, []headgate.Charge, *headgate.Decision) error { return nil }

func TestShareOfOneWithoutAbilities(t *testing.T) {
	t.Parallel()
	s := NewShare(bare{}, func() int { return 2 })
	c := headgate.One("s", "k", headgate.MustParseLimit("token_bucket 1/s"))
	_, renew := s.Renew(t.Context(), &c)
	_, inspect := s.Inspect(t.Context(), "s", "k")
	for name, err := range map[string]error{
		"refund": s.Refund(t.Context(), nil, &headgate.Decision{}), "renew": renew, "release": s.Release(t.Context(), &c),
		"reset": s.Reset(t.Context(), "s", "k"), "inspect": inspect, "at": s.At(time.Now()).Take(t.Context(), nil, &headgate.Decision{}),
	} {
		if headgate.CodeOf(err) != headgate.CodeUnsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestListsAreBounded: a call with more charges than there may be leaves no room behind that is as large.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	s := NewShare(bare{}, func() int { return 2 })
	charges := make([]headgate.Charge, 100*headgate.MaxCharges)
	for range 10 {
		_ = s.Take(t.Context(), charges, &headgate.Decision{})
		if l := s.lists.Get().(*list); cap(l.more) > headgate.MaxCharges {
			t.Fatalf("room for %d charges is kept", cap(l.more))
		}
	}
}

// TestPartsAreBounded: however many limits there are, and however often the number of instances changes, what is kept is right.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	p := &parts{}
	for round := range 3 {
		for i := range int64(5000) {
			l, err := headgate.NewFixedWindow(i, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := p.of(l, round+1), Divide(l, round+1); got != want {
				t.Fatalf("%s by %d: %s", l, round+1, got)
			}
		}
	}
}

// policyLimits are limits as policies have them.
func policyLimits() (limits []headgate.Limit) {
	for i := range 40 {
		limits = append(limits, headgate.MustParseLimit(fmt.Sprintf("token_bucket %d/s burst=%d", 10+i*10, 20+i*20)),
			headgate.MustParseLimit(fmt.Sprintf("fixed_window %d/day zone=Asia/Shanghai", 100*(i+1))),
			headgate.MustParseLimit(fmt.Sprintf("sliding_window %d/1m cells=6", 60*(i+1))))
	}
	return limits
}

func TestShareAllocates(t *testing.T) {
	s := NewShare(openMemory(t), func() int { return 3 })
	var d headgate.Decision
	for _, n := range []int{1, 8, 60} {
		var charges []headgate.Charge
		for i, l := range policyLimits()[:n] {
			charges = append(charges, headgate.One(fmt.Sprint("s", i), "k", l))
		}
		take := func() {
			if err := s.Take(t.Context(), charges, &d); err != nil {
				t.Fatal(err)
			}
		}
		local := testing.AllocsPerRun(100, func() { _ = s.local.Take(t.Context(), charges, &d) })
		take()
		if allocs := testing.AllocsPerRun(1000, take); allocs > local {
			t.Errorf("%d charges: %v allocations, the store alone %v", n, allocs, local)
		}
	}
}

func BenchmarkShare(b *testing.B) {
	limit := headgate.MustParseLimit("token_bucket 1000000000/s burst=1000000000")
	store := openMemory(b)
	for name, l := range map[string]headgate.Limiter{
		"memory": store, "alone": NewShare(store, func() int { return 1 }), "of three": NewShare(store, func() int { return 3 }),
	} {
		charges := []headgate.Charge{headgate.One(name, "k", limit)}
		b.Run(name, func(b *testing.B) {
			var d headgate.Decision
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Take(context.Background(), charges, &d); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}
