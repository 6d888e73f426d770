package resilience

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// hanging is a store that gives no answer before its caller leaves.
type hanging struct{ asked atomic.Int64 }

func (h *hanging) Take(ctx context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	h.asked.Add(1)
	d.Reset(0)
	<-ctx.Done()
	return ctx.Err()
}

// TestLimiterOverAStoreThatHangs: a store that hangs is given up though every caller leaves before it would, but not for callers who
// hardly wait.
func TestLimiterOverAStoreThatHangs(t *testing.T) {
	t.Parallel()
	for patience, lost := range map[time.Duration]bool{5 * time.Millisecond: false, 100 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			store := &hanging{}
			l := NewLimiter(store, openMemory(t), LimiterConfig{})
			defer l.Close()
			c := headgate.One("s", "k", headgate.MustParseLimit("token_bucket 1000000/s"))
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if d, err := headgate.Take(ctx, l, c); err != nil || !d.Allowed {
					t.Fatalf("%+v %v", d, err)
				}
				cancel()
				time.Sleep(time.Millisecond)
			}
			if asked := store.asked.Load(); l.Lost() != lost || lost && asked > 30 {
				t.Errorf("callers who wait for %s: lost %t, asked %d times", patience, l.Lost(), asked)
			}
		})
	}
}
