package redisstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
)

// guarded is a store behind breakers, put together as a program would.
type guarded struct {
	*redisstore.Store
	breakers *resilience.Breakers
	calls    atomic.Int64 // on the wire
}

func (g *guarded) Call(node, _ string, _ int, took time.Duration, code headgate.Code) {
	g.calls.Add(1)
	g.breakers.Called(node, took, string(code))
}
func (*guarded) Failed(headgate.Code, bool) {}
func (*guarded) UnknownStates(int)          {}
func (*guarded) NewKey(string)              {}

func openGuarded(t *testing.T, cfg redisstore.Config) *guarded {
	t.Helper()
	g := &guarded{}
	g.breakers = resilience.NewBreakers(resilience.BreakersConfig{Probe: func(ctx context.Context, node string) error { return g.Probe(ctx, node) }})
	t.Cleanup(func() { _ = g.breakers.Close() })
	cfg.Breaker, cfg.Observer, cfg.Timeout = g.breakers, g, hasty
	g.Store = open(t, cfg)
	return g
}

// knows tells whether the store knows where its calls go now, and that an old node serves nothing any more.
func (g *guarded) knows(t *testing.T, node, old string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	if err := testservers.Poll(ctx, func() error { return g.Probe(ctx, node) }); err != nil {
		t.Errorf("%s, which is the primary: %v", node, err)
	}
	if old == "" {
		return
	}
	if err := g.Probe(ctx, old); !errors.Is(err, redisstore.ErrNotServing) {
		t.Errorf("%s, which was the primary: %v", old, err)
	}
	g.awaitLost(t, false)
}

// awaitLost waits until some node is open, or none, and returns how long it took.
func (g *guarded) awaitLost(t *testing.T, lost bool) time.Duration {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		if g.breakers.Lost() != lost {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("lost is never %v: %v: %+v", lost, err, g.breakers.States())
	}
	return time.Since(start)
}

// TestBreaker: a Redis that stops under load is shut off within a second or so, after which takes fail in no time and nothing is
// sent; when it is back it is let back without anybody's doing. A stall of 250 ms shuts nothing off.
func TestBreaker(t *testing.T) {
	srv := testservers.Redis(t)
	g := openGuarded(t, redisstore.Config{Addrs: []string{srv.Addr()}})
	awaitWorks(t, g)
	l := startLoad(g, headgate.MustParseLimit("token_bucket 100/s"), 50, 100)
	defer l.end()
	pause, resume := func() error { return srv.Pause() }, func() error { return srv.Resume() } // of the process of that time
	quickest := [2]time.Duration{recovery, recovery}                                           // to open and to close; a machine that is busy for a while does not make all slow
	for _, c := range []struct {
		name       string
		stop, back func() error
	}{
		{"stopped", pause, resume},
		{"killed", func() error { srv.Kill(); return nil }, func() error { return srv.Restart(!testservers.KeepData) }},
		{"stopped again", pause, resume},
	} {
		l.awaitMore(t, 5000)
		if err := c.stop(); err != nil {
			t.Fatal(err)
		}
		took := g.awaitLost(t, true)
		states := g.breakers.States()
		if len(states) != 1 || states[0].Node != srv.Addr() || !states[0].Open {
			t.Errorf("%s: %+v", c.name, states)
		}
		g.refuses(t)
		if err := c.back(); err != nil {
			t.Fatal(err)
		}
		again := g.awaitLost(t, false)
		t.Logf("%s: open after %s (%s), closed %s after the return", c.name, took.Round(time.Millisecond), states[0].Why, again.Round(time.Millisecond))
		quickest = [2]time.Duration{min(quickest[0], took), min(quickest[1], again)}
		awaitWorks(t, g)
	}
	if quickest[0] > 10*time.Second || quickest[1] > 10*time.Second { // a second and half a one, where nobody else wants the processor
		t.Errorf("open after %s at the quickest, closed after %s", quickest[0], quickest[1])
	}
}

// refuses takes while the breaker is open.
func (g *guarded) refuses(t *testing.T) {
	t.Helper()
	limit := headgate.MustParseLimit("token_bucket 100/s")
	charges, d := []headgate.Charge{headgate.One("s", "k", limit)}, headgate.Decision{}
	each := recovery
	for range 20 { // the machine may stand still in some
		start := time.Now()
		const n = 50
		for range n {
			if err := g.Take(t.Context(), charges, &d); !errors.Is(err, redisstore.ErrBreakerOpen) || headgate.CodeOf(err) != headgate.CodeUnavailable {
				t.Fatalf("while open: %v", err)
			}
		}
		each = min(each, time.Since(start)/n)
	}
	t.Logf("a take took %s while open", each)
	if each > time.Millisecond { // it is well below a microsecond, where nobody else wants the processor
		t.Errorf("a take took %s while open", each)
	}
}

// TestStall: a Redis that stands still for 250 ms, as for a fork, is not shut off: not in the middle of a load, and not under the first
// calls ever made.
func TestStall(t *testing.T) {
	srv := testservers.Redis(t)
	for _, c := range []struct {
		name    string
		callers int
		before  int64
	}{{"one caller", 1, 100}, {"a load", 200, 5000}, {"the first calls", 200, 0}} {
		for tries := 20; ; tries-- {
			g := openGuarded(t, redisstore.Config{Addrs: []string{srv.Addr()}})
			awaitWorks(t, g)
			h := watchHiccups()
			took, l := stall(t, srv, g, c.callers, c.before)
			kept := h.end()
			opened := g.breakers.States()[0].Opened
			t.Logf("%s: %d of %d takes failed in a stall of %s", c.name, l.failed.Load()+l.unsure.Load(), l.all.Load(), took.Round(time.Millisecond))
			if (took > 275*time.Millisecond || opened != 0 && kept > 20*time.Millisecond) && tries > 1 {
				t.Logf("this process was kept from running for %s", kept)
				continue // the machine is busy: it was not such a stall, or not Redis's alone
			}
			if opened != 0 {
				t.Errorf("%s: %+v", c.name, g.breakers.States())
			}
			break
		}
	}
}

// hiccups notes for how long this process is kept from running, by others who want the processor.
type hiccups struct {
	stop chan struct{}
	most chan time.Duration
}

func watchHiccups() *hiccups {
	h := &hiccups{stop: make(chan struct{}), most: make(chan time.Duration, 1)}
	go func() {
		const every = 2 * time.Millisecond
		tick := time.NewTicker(every)
		defer tick.Stop()
		var most time.Duration
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-tick.C:
				most = max(most, time.Since(last)-every)
			case <-h.stop:
				h.most <- max(most, time.Since(last)-every)
				return
			}
		}
	}()
	return h
}

// end returns the longest time.
func (h *hiccups) end() time.Duration {
	close(h.stop)
	return <-h.most
}

// stall stops Redis for 250 ms under a load that begins so many decisions before, and returns how long it was in truth.
func stall(t *testing.T, srv *testservers.RedisServer, g *guarded, callers int, before int64) (took time.Duration, l *load) {
	t.Helper()
	start := func() { l = startLoad(g, headgate.MustParseLimit("token_bucket 100/s"), callers, 100) }
	if before > 0 {
		start()
		l.awaitMore(t, before)
	}
	end := time.NewTimer(250 * time.Millisecond)
	began := time.Now()
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	if before == 0 {
		start()
	}
	<-end.C
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	took = time.Since(began)
	l.awaitMore(t, 100)
	l.end()
	return took, l
}
