package leasestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

func TestGrowsWithTheLoadAndGivesBack(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 1000000/1h")
		r.warm(20_000, 100*time.Microsecond, c) // 2 s at 10,000/s
		if takes, _ := r.calls.count(); takes > 80 || r.Stats().Held > 1100 {
			t.Errorf("%d calls for 20,000 takes, %+v", takes, r.Stats())
		}
		time.Sleep(5 * time.Second)
		if st := r.Stats(); st.Held != 0 || st.Lost != 0 || st.Keys != 0 {
			t.Errorf("an idle store holds %+v", st)
		}
		if got := r.left(c); got != 1_000_000-20_000 {
			t.Errorf("%d left", got)
		}
	})
}

func TestFirstTakeAsksForItselfAlone(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("token_bucket 10/s burst=100")
		c.Cost = 7
		for range 3 {
			want := r.strict(c, 0).Remaining - 7
			d := r.allow(c)
			if got := d.Outcomes[0].Remaining; got != want || r.left(c) != want || r.Stats().Held != 0 {
				t.Errorf("want %d left, got %d; %d left upstream, %+v", want, got, r.left(c), r.Stats())
			}
			time.Sleep(time.Second)
		}
	})
}

// TestLimitThatChanged: what was charged under another limit is given back, and the new one is asked for.
func TestLimitThatChanged(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 100000/1h")
		r.warm(300, time.Millisecond, c)
		held := r.Stats().Held
		if held == 0 {
			t.Fatal("nothing is held")
		}
		c.Limit = headgate.MustParseLimit("fixed_window 301/1h")
		r.allow(c)
		if d := r.take(c); d.Allowed || d.Outcomes[0].Reason != headgate.ReasonLimited {
			t.Errorf("beyond the new limit: %+v", d)
		}
		if st := r.Stats(); st.Refunded < uint64(held) || st.Lost > 0 {
			t.Errorf("%d were held, %+v", held, st)
		}
	})
}

// TestStoppedProcess: whatever the time between two takes, a dead lease is not spent.
func TestStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(1)
		defer l.mem.Close()
		n := &line{ledger: l}
		s := leasestore.New(n, leasestore.Config{Elapsed: l.elapsed})
		defer s.Close()
		c := charge("token_bucket 1000/s")
		for range 300 {
			if d, err := headgate.Take(context.Background(), s, c); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			time.Sleep(time.Millisecond)
		}
		if s.Stats().Held < 20 {
			t.Fatalf("%+v", s.Stats())
		}
		n.crash()
		if d, err := headgate.Take(context.Background(), s, c); err != nil || !d.Allowed {
			t.Errorf("a lease that is alive is not spent: %v, %v", d, err)
		}
		l.pass(10 * time.Second)
		if d, err := headgate.Take(context.Background(), s, c); headgate.CodeOf(err) != headgate.CodeUnavailable {
			t.Errorf("a dead lease is spent: %+v, %v", d, err)
		}
	})
}

// TestDeadLeaseIsGivenBackWhole: what a take had in hand when it found the lease dead, too.
func TestDeadLeaseIsGivenBackWhole(t *testing.T) {
	var stopped atomic.Int64
	cfg := leasestore.Config{Elapsed: func() time.Duration { return time.Since(time.Unix(0, 0)) + time.Duration(stopped.Load()) }}
	for _, charges := range [][]headgate.Charge{{on("a", "fixed_window 100000/1h")}, {on("a", "fixed_window 100000/1h"), on("b", "fixed_window 100000/1h")}} {
		inBubble(t, cfg, func(r *rig) {
			r.warm(300, time.Millisecond, charges...)
			if r.Stats().Held == 0 {
				t.Fatal("nothing is held")
			}
			stopped.Add(int64(10 * time.Second))
			r.allow(charges...)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			for _, c := range charges {
				if got := r.left(c); got != 100_000-301 {
					t.Errorf("%d left", got)
				}
			}
		})
	}
}

func TestErrorGoesToAllWhoWait(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		down := &headgate.Error{Code: headgate.CodeUnavailable, Charge: -1, Message: "down"}
		c := charge("fixed_window 100000/1h")
		r.warm(20, 10*time.Millisecond, c)
		time.Sleep(2 * time.Second)
		r.calls.set(down, false)
		before, _ := r.calls.count()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				d := headgate.Decision{Allowed: true}
				if err := r.Take(context.Background(), []headgate.Charge{c}, &d); !errors.Is(err, down) || d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		wg.Wait()
		for range 50 {
			if _, err := headgate.Take(context.Background(), r.Store, c); !errors.Is(err, down) {
				t.Error(err)
			}
		}
		if after, _ := r.calls.count(); after-before > 2 {
			t.Errorf("%d calls for one error", after-before)
		}
		r.calls.set(nil, false)
		time.Sleep(10 * time.Millisecond)
		r.allow(c)
	})
}

// TestOneCallForAKey: those who come during a call are served by the next, together.
func TestOneCallForAKey(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 500/1h")
		var wg sync.WaitGroup
		var mu sync.Mutex
		allowed := 0
		for range 600 {
			wg.Go(func() {
				d, err := headgate.Take(context.Background(), r.Store, c)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					allowed++
				}
			})
		}
		wg.Wait()
		if takes, _ := r.calls.count(); allowed != 500 || takes > 4 {
			t.Errorf("%d allowed with %d calls", allowed, takes)
		}
	})
}

func TestWaitsNoLongerThanItsContext(t *testing.T) {
	inBubble(t, leasestore.Config{MaxWaiting: 2}, func(r *rig) {
		c := charge("fixed_window 500/1h")
		r.calls.set(nil, true)
		ctx, cancel := context.WithCancel(context.Background())
		var leader sync.WaitGroup
		leader.Go(func() { _, _ = headgate.Take(ctx, r.Store, c) })
		synctest.Wait()
		var wg sync.WaitGroup
		codes := map[headgate.Code]int{}
		var mu sync.Mutex
		began := time.Now()
		for range 3 {
			wg.Go(func() {
				short, done := context.WithTimeout(context.Background(), 20*time.Millisecond)
				defer done()
				_, err := headgate.Take(short, r.Store, c)
				mu.Lock()
				defer mu.Unlock()
				codes[headgate.CodeOf(err)]++
			})
		}
		wg.Wait()
		if codes[headgate.CodeTimeout] != 2 || codes[headgate.CodeOverloaded] != 1 || time.Since(began) != 20*time.Millisecond {
			t.Errorf("%v after %s", codes, time.Since(began))
		}
		r.calls.set(nil, false)
		cancel()
		leader.Wait()
		r.allow(c) // the leader's own context was over, which is no fault of the store
	})
}

// TestWhereTheLoadIs: of ten instances those that are asked get the whole limit.
func TestWhereTheLoadIs(t *testing.T) {
	for _, busy := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			m := memstore.New(memstore.Config{Now: time.Now})
			t.Cleanup(func() { _ = m.Close() })
			var stores []*leasestore.Store
			for range 10 {
				s := leasestore.New(&counted{Store: m}, leasestore.Config{})
				t.Cleanup(func() { _ = s.Close() })
				stores = append(stores, s)
			}
			c := charge("fixed_window 10000/10s")
			ask := func(of int, takes int) (allowed int) {
				for i := range takes {
					d, err := headgate.Take(context.Background(), stores[i%of], c)
					if err != nil {
						t.Fatal(err)
					}
					if d.Allowed {
						allowed++
					}
					time.Sleep(100 * time.Microsecond)
				}
				return allowed
			}
			ask(10, 2000) // all had their share of a load, and what they hold of it
			time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(10 * time.Second)))
			if got := ask(busy, 15_000); got != 10_000 {
				t.Errorf("%d of 10 busy: %d of 10,000 allowed", busy, got)
			}
		})
	}
}

func TestCloseGivesBack(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("sliding_window 100000/1m cells=6")
		r.warm(300, time.Millisecond, c)
		if r.Stats().Held == 0 {
			t.Fatal("nothing is held")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got, st := r.left(c), r.Stats(); got != 100_000-300 || st.Held != 0 || st.Lost != 0 {
			t.Errorf("%d left, %+v", got, st)
		}
		if _, err := headgate.Take(context.Background(), r.Store, c); headgate.CodeOf(err) != headgate.CodeClosed {
			t.Errorf("a take after Close: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

func TestCloseOverASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New(memstore.Config{Now: time.Now})
		defer m.Close()
		up := &counted{Store: m}
		s := leasestore.New(up, leasestore.Config{Timeout: time.Hour})
		c := charge("fixed_window 100000/1h")
		for range 300 {
			_, _ = headgate.Take(context.Background(), s, c)
			time.Sleep(time.Millisecond)
		}
		up.set(nil, true)
		began := time.Now()
		if err := s.Close(); headgate.CodeOf(err) != headgate.CodeTimeout || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		synctest.Wait()
		if st := s.Stats(); st.Lost == 0 || st.Held != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestLongKeys are not kept: they are decided all the same, by the upstream.
func TestLongKeys(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		for _, size := range []int{511, 512, 1 << 20} { // with a slot of one letter
			c := charge("fixed_window 50/1h")
			c.Key = strings.Repeat("k", size)
			r.warm(50, time.Millisecond, c)
			if d := r.take(c); d.Allowed || d.Outcomes[0].Reason != headgate.ReasonLimited {
				t.Errorf("%d bytes: %+v", size, d)
			}
		}
		if st := r.Stats(); st.Keys != 1 {
			t.Errorf("%+v", st)
		}
	})
}

func TestKeysAreBounded(t *testing.T) {
	inBubble(t, leasestore.Config{MaxKeys: 10}, func(r *rig) {
		for round := range 3 {
			for i := range 50 {
				c := charge("fixed_window 3/1h")
				c.Key = fmt.Sprint(i)
				r.allow(c)
			}
			if st := r.Stats(); st.Keys != 10 {
				t.Errorf("round %d: %+v", round, st)
			}
		}
		for i := range 50 {
			c := charge("fixed_window 3/1h")
			c.Key = fmt.Sprint(i)
			if d := r.take(c); d.Allowed {
				t.Errorf("key %d: a fourth of 3 is allowed", i)
			}
		}
		time.Sleep(time.Hour)
		c := charge("fixed_window 3/1h")
		c.Key = "another"
		r.allow(c)
		if st := r.Stats(); st.Keys != 1 {
			t.Errorf("%+v", st)
		}
	})
}
