package chaos

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// tap sits between an instance and its store and notes, for the request whose context comes along, how its take went. What
// it lets through it does not change. It has the abilities of the store.
type tap struct{ headgate.Limiter }

var (
	_ headgate.Refunder  = tap{}
	_ headgate.Slots     = tap{}
	_ headgate.Resetter  = tap{}
	_ headgate.Inspector = tap{}
	_ headgate.Timed     = tap{}
)

// call is what became of a request's take in the store.
type call struct {
	asked bool
	err   error
}

type callKey struct{}

// Take implements [headgate.Limiter].
func (t tap) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	err := t.Limiter.Take(ctx, charges, d)
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.asked, c.err = true, err
	}
	return err
}

func lacks(ability string) error {
	return &headgate.Error{Code: headgate.CodeUnsupported, Charge: -1, Message: "the store is no " + ability}
}

// Refund implements [headgate.Refunder].
func (t tap) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if r, ok := t.Limiter.(headgate.Refunder); ok {
		return r.Refund(ctx, charges, d)
	}
	return lacks("Refunder")
}

// Renew implements [headgate.Slots].
func (t tap) Renew(ctx context.Context, c *headgate.Charge) (bool, error) {
	if s, ok := t.Limiter.(headgate.Slots); ok {
		return s.Renew(ctx, c)
	}
	return false, lacks("Slots")
}

// Release implements [headgate.Slots].
func (t tap) Release(ctx context.Context, c *headgate.Charge) error {
	if s, ok := t.Limiter.(headgate.Slots); ok {
		return s.Release(ctx, c)
	}
	return lacks("Slots")
}

// Reset implements [headgate.Resetter].
func (t tap) Reset(ctx context.Context, slot, key string) error {
	if r, ok := t.Limiter.(headgate.Resetter); ok {
		return r.Reset(ctx, slot, key)
	}
	return lacks("Resetter")
}

// Inspect implements [headgate.Inspector].
func (t tap) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	if i, ok := t.Limiter.(headgate.Inspector); ok {
		return i.Inspect(ctx, slot, key)
	}
	return headgate.Inspection{}, lacks("Inspector")
}

// At implements [headgate.Timed]. A store without a time to pass in answers with an error.
func (t tap) At(now time.Time) headgate.Limiter {
	if l, ok := t.Limiter.(headgate.Timed); ok {
		return tap{l.At(now)}
	}
	return untimed{}
}

type untimed struct{}

func (untimed) Take(_ context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	return lacks("Timed")
}
