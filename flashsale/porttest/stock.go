package porttest

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// AnyStock is all that a store of stock can do.
type AnyStock interface {
	flashsale.Stock
	flashsale.Queue
	flashsale.Loader
}

// Stock is a store behind a gate.
type Stock struct {
	inner AnyStock
	gate  *Gate
}

// NewStock puts a store behind a gate.
func NewStock(inner AnyStock, gate *Gate) *Stock { return &Stock{inner: inner, gate: gate} }

// Reserve asks the gate before and after.
func (g *Stock) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (r0 flashsale.Answer, err error) {
	err = g.gate.pass(ctx, "stock.Reserve", func() (err error) {
		r0, err = g.inner.Reserve(ctx, key, epoch, ask)
		return err
	})
	return r0, err
}

// Apply asks the gate before and after.
func (g *Stock) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) (r0 []flashsale.Applied, err error) {
	err = g.gate.pass(ctx, "stock.Apply", func() (err error) {
		r0, err = g.inner.Apply(ctx, key, epoch, effects, acks)
		return err
	})
	return r0, err
}

// Adjust asks the gate before and after.
func (g *Stock) Adjust(ctx context.Context, key flashsale.Key, epoch int64, id string, delta int64) (r0 flashsale.AdjustResult, err error) {
	err = g.gate.pass(ctx, "stock.Adjust", func() (err error) {
		r0, err = g.inner.Adjust(ctx, key, epoch, id, delta)
		return err
	})
	return r0, err
}

// Configure asks the gate before and after.
func (g *Stock) Configure(ctx context.Context, key flashsale.Key, epoch int64, s *flashsale.Settings) error {
	return g.gate.pass(ctx, "stock.Configure", func() error { return g.inner.Configure(ctx, key, epoch, s) })
}

// Find asks the gate before and after.
func (g *Stock) Find(ctx context.Context, key flashsale.Key, epoch int64, rids []string) (r0 []flashsale.Entry, err error) {
	err = g.gate.pass(ctx, "stock.Find", func() (err error) {
		r0, err = g.inner.Find(ctx, key, epoch, rids)
		return err
	})
	return r0, err
}

// Holds asks the gate before and after.
func (g *Stock) Holds(ctx context.Context, key flashsale.Key, epoch int64, user string) (r0 []string, err error) {
	err = g.gate.pass(ctx, "stock.Holds", func() (err error) {
		r0, err = g.inner.Holds(ctx, key, epoch, user)
		return err
	})
	return r0, err
}

// Due asks the gate before and after.
func (g *Stock) Due(ctx context.Context, key flashsale.Key, epoch int64, limit int) (r0 []flashsale.Entry, err error) {
	err = g.gate.pass(ctx, "stock.Due", func() (err error) {
		r0, err = g.inner.Due(ctx, key, epoch, limit)
		return err
	})
	return r0, err
}

// Entries asks the gate before and after.
func (g *Stock) Entries(ctx context.Context, key flashsale.Key, epoch int64, cursor string, limit int) (r0 []flashsale.Entry, r1 string, err error) {
	err = g.gate.pass(ctx, "stock.Entries", func() (err error) {
		r0, r1, err = g.inner.Entries(ctx, key, epoch, cursor, limit)
		return err
	})
	return r0, r1, err
}

// Forget asks the gate before and after.
func (g *Stock) Forget(ctx context.Context, key flashsale.Key, epoch int64, rids []string) (r0 int, err error) {
	err = g.gate.pass(ctx, "stock.Forget", func() (err error) {
		r0, err = g.inner.Forget(ctx, key, epoch, rids)
		return err
	})
	return r0, err
}

// Lull asks the gate before and after.
func (g *Stock) Lull(ctx context.Context, key flashsale.Key, epoch int64, ask flashsale.LullAsk) (r0 flashsale.Lull, err error) {
	err = g.gate.pass(ctx, "stock.Lull", func() (err error) {
		r0, err = g.inner.Lull(ctx, key, epoch, ask)
		return err
	})
	return r0, err
}

// View asks the gate before and after.
func (g *Stock) View(ctx context.Context, key flashsale.Key) (r0 flashsale.StockView, err error) {
	err = g.gate.pass(ctx, "stock.View", func() (err error) {
		r0, err = g.inner.View(ctx, key)
		return err
	})
	return r0, err
}

// Close closes what is behind the gate.
func (g *Stock) Close() error { return g.inner.Close() }

// Pull asks the gate before and after.
func (g *Stock) Pull(ctx context.Context, key flashsale.Key, epoch int64, consumer string, limit int, reclaim time.Duration) (r0 []flashsale.Job, err error) {
	err = g.gate.pass(ctx, "stock.Pull", func() (err error) {
		r0, err = g.inner.Pull(ctx, key, epoch, consumer, limit, reclaim)
		return err
	})
	return r0, err
}

// Bury asks the gate before and after.
func (g *Stock) Bury(ctx context.Context, key flashsale.Key, epoch int64, job *flashsale.Job, reason string) error {
	return g.gate.pass(ctx, "stock.Bury", func() error { return g.inner.Bury(ctx, key, epoch, job, reason) })
}

// Dead asks the gate before and after.
func (g *Stock) Dead(ctx context.Context, key flashsale.Key, epoch int64, limit int) (r0 []flashsale.DeadJob, err error) {
	err = g.gate.pass(ctx, "stock.Dead", func() (err error) {
		r0, err = g.inner.Dead(ctx, key, epoch, limit)
		return err
	})
	return r0, err
}

// Revive asks the gate before and after.
func (g *Stock) Revive(ctx context.Context, key flashsale.Key, epoch int64, ids []string) (r0 int, err error) {
	err = g.gate.pass(ctx, "stock.Revive", func() (err error) {
		r0, err = g.inner.Revive(ctx, key, epoch, ids)
		return err
	})
	return r0, err
}

// Point asks the gate before and after.
func (g *Stock) Point(ctx context.Context, key flashsale.Key, epoch int64) (r0 []int64, err error) {
	err = g.gate.pass(ctx, "stock.Point", func() (err error) {
		r0, err = g.inner.Point(ctx, key, epoch)
		return err
	})
	return r0, err
}

// Drain asks the gate before and after.
func (g *Stock) Drain(ctx context.Context, key flashsale.Key, epoch int64, older int64, after string, limit int) (r0 []flashsale.Job, err error) {
	err = g.gate.pass(ctx, "stock.Drain", func() (err error) {
		r0, err = g.inner.Drain(ctx, key, epoch, older, after, limit)
		return err
	})
	return r0, err
}

// Load asks the gate before and after.
func (g *Stock) Load(ctx context.Context, key flashsale.Key, epoch int64, part *flashsale.LoadPart) error {
	return g.gate.pass(ctx, "stock.Load", func() error { return g.inner.Load(ctx, key, epoch, part) })
}

// Drop asks the gate before and after.
func (g *Stock) Drop(ctx context.Context, key flashsale.Key, epoch int64, older int64) error {
	return g.gate.pass(ctx, "stock.Drop", func() error { return g.inner.Drop(ctx, key, epoch, older) })
}

// Remove asks the gate before and after.
func (g *Stock) Remove(ctx context.Context, key flashsale.Key, epoch int64) (err error) {
	return g.gate.pass(ctx, "stock.Remove", func() (err error) {
		return g.inner.Remove(ctx, key, epoch)
	})
}
