package leasestore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

var (
	_ headgate.Limiter   = (*DenyCache)(nil)
	_ headgate.Refunder  = (*DenyCache)(nil)
	_ headgate.Slots     = (*DenyCache)(nil)
	_ headgate.Resetter  = (*DenyCache)(nil)
	_ headgate.Inspector = (*DenyCache)(nil)
	_ headgate.Timed     = (*DenyCache)(nil)
)

// Refund implements [headgate.Refunder], and forgets the keys.
func (c *DenyCache) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	r, ok := c.upstream.(headgate.Refunder)
	if !ok {
		return unsupported("give back")
	}
	c.forgetCharges(charges)
	defer c.forgetCharges(charges) // what was denied meanwhile may be of before it
	return r.Refund(ctx, charges, d)
}

func (c *DenyCache) forgetCharges(charges []headgate.Charge) {
	for i := range charges {
		c.Forget(charges[i].Slot, charges[i].Key)
	}
}

// Renew implements [headgate.Slots].
func (c *DenyCache) Renew(ctx context.Context, charge *headgate.Charge) (alive bool, err error) {
	s, ok := c.upstream.(headgate.Slots)
	if !ok {
		return false, unsupported("renew")
	}
	return s.Renew(ctx, charge)
}

// Release implements [headgate.Slots].
func (c *DenyCache) Release(ctx context.Context, charge *headgate.Charge) error {
	s, ok := c.upstream.(headgate.Slots)
	if !ok {
		return unsupported("release")
	}
	return s.Release(ctx, charge)
}

// Reset implements [headgate.Resetter], and forgets the key.
func (c *DenyCache) Reset(ctx context.Context, slot, key string) error {
	r, ok := c.upstream.(headgate.Resetter)
	if !ok {
		return unsupported("reset")
	}
	c.Forget(slot, key)
	defer c.Forget(slot, key) // what was denied meanwhile may be of before it
	return r.Reset(ctx, slot, key)
}

// Inspect implements [headgate.Inspector].
func (c *DenyCache) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	in, ok := c.upstream.(headgate.Inspector)
	if !ok {
		return headgate.Inspection{}, unsupported("inspect")
	}
	return in.Inspect(ctx, slot, key)
}

// At implements [headgate.Timed]: it returns the view of the Limiter behind, past the cache. If that has none, all takes of the
// view fail with headgate.CodeUnsupported.
func (c *DenyCache) At(now time.Time) headgate.Limiter {
	if t, ok := c.upstream.(headgate.Timed); ok {
		return t.At(now)
	}
	return unable{}
}
