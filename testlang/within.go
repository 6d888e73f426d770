package testlang

import (
	"context"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Within returns a view of a limiter in which every slot carries a prefix, so that tests that share a store do not meet.
// It has all optional abilities; one that the limiter lacks answers [headgate.CodeUnsupported].
func Within(l headgate.Limiter, prefix string) headgate.Limiter {
	return &within{l, prefix}
}

type within struct {
	limiter headgate.Limiter
	prefix  string
}

func (w *within) charges(charges []headgate.Charge) []headgate.Charge {
	own := slices.Clone(charges)
	for i := range own {
		own[i].Slot = w.prefix + own[i].Slot
	}
	return own
}

// Take implements [headgate.Limiter].
func (w *within) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	return w.limiter.Take(ctx, w.charges(charges), d)
}

// At implements [headgate.Timed].
func (w *within) At(now time.Time) headgate.Limiter {
	if timed, ok := w.limiter.(headgate.Timed); ok {
		return &within{timed.At(now), w.prefix}
	}
	return untimed{}
}

// Refund implements [headgate.Refunder].
func (w *within) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if refunder, ok := w.limiter.(headgate.Refunder); ok {
		return refunder.Refund(ctx, w.charges(charges), d)
	}
	return unsupported("refund")
}

// Renew implements [headgate.Slots].
func (w *within) Renew(ctx context.Context, c *headgate.Charge) (bool, error) {
	if slots, ok := w.limiter.(headgate.Slots); ok {
		own := *c
		own.Slot = w.prefix + own.Slot
		return slots.Renew(ctx, &own)
	}
	return false, unsupported("renew")
}

// Release implements [headgate.Slots].
func (w *within) Release(ctx context.Context, c *headgate.Charge) error {
	if slots, ok := w.limiter.(headgate.Slots); ok {
		own := *c
		own.Slot = w.prefix + own.Slot
		return slots.Release(ctx, &own)
	}
	return unsupported("release")
}

// Reset implements [headgate.Resetter].
func (w *within) Reset(ctx context.Context, slot, key string) error {
	if resetter, ok := w.limiter.(headgate.Resetter); ok {
		return resetter.Reset(ctx, w.prefix+slot, key)
	}
	return unsupported("reset")
}

// Inspect implements [headgate.Inspector].
func (w *within) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	if inspector, ok := w.limiter.(headgate.Inspector); ok {
		return inspector.Inspect(ctx, w.prefix+slot, key)
	}
	return headgate.Inspection{}, unsupported("inspect")
}

// untimed is the view at a time of a limiter that knows no times.
type untimed struct{}

func (untimed) Take(_ context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	return unsupported("pass a time")
}

func unsupported(what string) error {
	return &headgate.Error{Code: headgate.CodeUnsupported, Charge: -1, Message: "the limiter cannot " + what}
}
