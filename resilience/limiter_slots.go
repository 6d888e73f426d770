package resilience

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

// Renew implements [headgate.Slots]. A slot that was taken locally is renewed there.
func (l *Limiter) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	slots, ok := l.store.(headgate.Slots)
	if !ok {
		return false, unsupported("renew a slot")
	}
	if l.slots.any() {
		if alive, err := l.local.Renew(ctx, c); err != nil {
			return false, err
		} else if limit, ok := c.Limit.(headgate.Concurrency); alive && ok {
			l.slots.taken(limit.TTL())
			return true, nil
		}
	}
	if l.barred() {
		return false, lost()
	}
	return slots.Renew(ctx, c)
}

// Release implements [headgate.Slots]. A slot that was taken locally is released there, and in the store only if it is there as
// well: releasing what is not there would shut out the same holder for a while.
func (l *Limiter) Release(ctx context.Context, c *headgate.Charge) error {
	slots, ok := l.store.(headgate.Slots)
	if !ok {
		return unsupported("release a slot")
	}
	if !l.slots.any() {
		return l.releaseInStore(ctx, slots, c)
	}
	alive, err := l.local.Renew(ctx, c)
	if err != nil || !alive {
		return l.releaseInStore(ctx, slots, c)
	}
	if err := l.local.Release(ctx, c); err != nil {
		return err
	}
	if l.barred() {
		return nil
	}
	if both, err := slots.Renew(ctx, c); err != nil || !both {
		return nil //nolint:nilerr // the slot was released where it was taken; one that the store may have dies at its ttl
	}
	return slots.Release(ctx, c)
}

func (l *Limiter) releaseInStore(ctx context.Context, slots headgate.Slots, c *headgate.Charge) error {
	if l.barred() {
		return lost()
	}
	return slots.Release(ctx, c)
}

// lost is the error of what only the store could answer.
func lost() error {
	return &headgate.Error{Code: headgate.CodeUnavailable, Charge: -1, Message: "resilience: the store is lost, and its breaker open"}
}
