package leasestore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

// TestUnitsUnderWay: units that were charged when their key is reset, or gets another limit, or the store is closed, and come after that,
// are not spent.
func TestUnitsUnderWay(t *testing.T) {
	const count = 100_000
	c, other := charge("fixed_window 100000/1h"), charge("fixed_window 99999/1h")
	for what, tt := range map[string]struct {
		do    func(r *rig)
		taken int64 // what is charged at the end
	}{
		"reset": {func(r *rig) {
			if err := r.mem.Reset(context.Background(), c.Slot, c.Key); err != nil {
				r.t.Error(err)
			}
			r.Forget(c.Slot, c.Key)
		}, 0},
		"another limit": {func(r *rig) { r.allow(other) }, 301},
		"closed": {func(r *rig) {
			if err := r.Close(); err != nil {
				r.t.Error(err)
			}
		}, 300},
	} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			r.warm(300, time.Millisecond, c)
			large := c
			large.Cost = r.Stats().Held + 1
			before := r.left(c)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = headgate.Take(ctx, r.Store, large)
			}()
			pause(rtt * 3 / 4)
			underWay := before - r.left(c)
			if underWay <= 0 {
				t.Fatalf("%s: nothing is under way", what)
			}
			cancel() // or it would ask again
			<-done
			tt.do(r)
			pause(3 * rtt)
			st := r.Stats()
			if got := r.left(c) + st.Held; got != count-tt.taken || int64(st.Refunded+st.Lost) < underWay {
				t.Errorf("%s: %d left, %d were under way, %+v", what, got, underWay, st)
			}
		})
	}
}

// slowReset takes its time before it resets.
type slowReset struct{ *counted }

func (s slowReset) Reset(ctx context.Context, slot, key string) error {
	pause(20 * rtt)
	return s.Store.Reset(ctx, slot, key)
}

// TestChargedDuringAReset: units that came between its beginning and the moment it took place are not spent after it.
func TestChargedDuringAReset(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 500/1h")
		s := leasestore.New(slowReset{r.calls}, leasestore.Config{})
		done := make(chan error)
		go func() { done <- s.Reset(context.Background(), c.Slot, c.Key) }()
		for range 10 {
			if d, err := headgate.Take(context.Background(), s, c); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			pause(time.Millisecond / 2)
		}
		held := s.Stats().Held
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := s.Stats().Held; held == 0 || got != 0 || r.left(c) != 500 {
			t.Errorf("%d were held, and are %d now; %d left", held, got, r.left(c))
		}
		_ = s.Close()
	})
}

// TestRefundOfAnEarlierWindow gives nothing to a lease of a later one.
func TestRefundOfAnEarlierWindow(t *testing.T) {
	for _, limit := range []string{"fixed_window 1000/1s", "sliding_window 1000/1s cells=2"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge(limit)
			var early headgate.Decision
			for early = r.allow(c); time.Now().Nanosecond() < 990_000_000; early = r.allow(c) {
				pause(10 * time.Millisecond)
			}
			r.warm(20, 2*time.Millisecond, c)
			held := r.Stats().Held
			if held == 0 || held > 500 {
				t.Fatalf("%d are held", held)
			}
			refund(r, &early, c)
			if got := r.Stats().Held; got != held {
				t.Errorf("%s: %d held before, %d after", limit, held, got)
			}
		})
	}
}

// TestPutBackTooLate: what a take had in hand while its lease died goes back to the upstream.
func TestPutBackTooLate(t *testing.T) {
	var stopped atomic.Int64
	cfg := leasestore.Config{Elapsed: func() time.Duration { return time.Since(time.Unix(0, 0)) + time.Duration(stopped.Load()) }}
	inBubble(t, cfg, func(r *rig) {
		a, log := on("a", "fixed_window 100000/1h"), on("log", "sliding_log 1/1h")
		r.allow(log)
		r.warm(300, time.Millisecond, a)
		var wg sync.WaitGroup
		wg.Go(func() {
			if d := r.take(a, log); d.Allowed {
				t.Errorf("%+v", d)
			}
		})
		pause(rtt / 4)
		stopped.Add(int64(10 * time.Second))
		r.allow(a)
		wg.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got, st := r.left(a), r.Stats(); got != 100_000-301 || st.Lost != 0 {
			t.Errorf("%d left, %+v", got, st)
		}
	})
}

// TestDenialOfBeforeAReset: one that was on its way when the key was reset is not believed.
func TestDenialOfBeforeAReset(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c, theirs := charge("fixed_window 500/1h"), charge("fixed_window 500/1h")
		theirs.Cost = 500
		if d, err := headgate.Take(context.Background(), r.mem, theirs); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if d := r.take(c); d.Allowed {
				t.Errorf("%+v", d)
			}
		})
		pause(rtt * 3 / 4) // it is decided, and not told
		if err := r.mem.Reset(context.Background(), c.Slot, c.Key); err != nil {
			t.Fatal(err)
		}
		r.Forget(c.Slot, c.Key)
		wg.Wait()
		r.allow(c)
	})
}

// TestSmallBurst: a bucket that is small for its rate is no reason to take it for empty.
func TestSmallBurst(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("token_bucket 100000/s burst=30")
		for range 1000 {
			r.warm(20, 0, c)
			pause(time.Millisecond)
		}
	})
}

// TestCheckOfMoreThanIsInHand is the upstream's to judge.
func TestCheckOfMoreThanIsInHand(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c, theirs := charge("fixed_window 1000/1h"), charge("fixed_window 1000/1h")
		r.warm(100, time.Millisecond, c)
		held := r.Stats().Held
		theirs.Cost = r.left(c)
		if d, err := headgate.Take(context.Background(), r.mem, theirs); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, more := range []int64{0, 1} {
			c.Mode, c.Cost = headgate.Check, held+more
			if d := r.take(c); d.Allowed != (more == 0) {
				t.Errorf("%d of %d in hand, nothing elsewhere: %+v", c.Cost, held, d)
			}
		}
	})
}
