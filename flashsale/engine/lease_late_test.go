package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// slowLeases answers the second call, which renews, when the lease has long ended.
type slowLeases struct {
	*leaseBook
	calls int
	slow  time.Duration
}

func (b *slowLeases) Lease(ctx context.Context, name, holder string, ttl time.Duration) (int64, bool, error) {
	if b.calls++; b.calls == 2 {
		time.Sleep(b.slow)
	}
	return b.leaseBook.Lease(ctx, name, holder, ttl)
}

// TestLeaseIsNotAskedForAgainWhenItIsLost: an answer comes so late that the lease has been given up and the time of the next renewal is
// there too. Who has to stop does not take the lease again, from whoever may have it by then.
func TestLeaseIsNotAskedForAgainWhenItIsLost(t *testing.T) {
	t.Parallel()
	for range 20 { // of two things that are ready, either may be seen first
		synctest.Test(t, func(t *testing.T) {
			b := &slowLeases{leaseBook: newLeaseBook(), slow: time.Minute}
			e := &Engine{cfg: Config{Instance: "i"}.withDefaults(), orders: b, care: newCare()}
			e.log = e.cfg.Logger
			_, err := e.underLease(t.Context(), "job", func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				return ctx.Err()
			})
			if flashsale.CodeOf(err) != flashsale.CodeFenced {
				t.Fatalf("the job ends with %v", err)
			}
			if b.calls != 2 {
				t.Fatalf("the lease was asked for %d times", b.calls)
			}
		})
	}
}
