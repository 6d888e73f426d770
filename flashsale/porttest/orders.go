package porttest

import (
	"context"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Orders is a database behind a gate.
type Orders struct {
	inner flashsale.Orders
	gate  *Gate
}

// NewOrders puts a database behind a gate.
func NewOrders(inner flashsale.Orders, gate *Gate) *Orders { return &Orders{inner: inner, gate: gate} }

// CreateSale asks the gate before and after.
func (g *Orders) CreateSale(ctx context.Context, s *flashsale.Sale) error {
	return g.gate.pass(ctx, "orders.CreateSale", func() error { return g.inner.CreateSale(ctx, s) })
}

// DropSale asks the gate before and after.
func (g *Orders) DropSale(ctx context.Context, d *flashsale.Drop) error {
	return g.gate.pass(ctx, "orders.DropSale", func() error { return g.inner.DropSale(ctx, d) })
}

// Dropped asks the gate before and after.
func (g *Orders) Dropped(ctx context.Context, age time.Duration, after flashsale.DroppedSKU, limit int) (r0 []flashsale.DroppedSKU, err error) {
	err = g.gate.pass(ctx, "orders.Dropped", func() (err error) {
		r0, err = g.inner.Dropped(ctx, age, after, limit)
		return err
	})
	return r0, err
}

// Removed asks the gate before and after.
func (g *Orders) Removed(ctx context.Context, d *flashsale.DroppedSKU) error {
	return g.gate.pass(ctx, "orders.Removed", func() error { return g.inner.Removed(ctx, d) })
}

// Sale asks the gate before and after.
func (g *Orders) Sale(ctx context.Context, id string) (r0 *flashsale.Sale, err error) {
	err = g.gate.pass(ctx, "orders.Sale", func() (err error) {
		r0, err = g.inner.Sale(ctx, id)
		return err
	})
	return r0, err
}

// SaleIDs asks the gate before and after.
func (g *Orders) SaleIDs(ctx context.Context, limit int) (r0 []string, err error) {
	err = g.gate.pass(ctx, "orders.SaleIDs", func() (err error) {
		r0, err = g.inner.SaleIDs(ctx, limit)
		return err
	})
	return r0, err
}

// SalesAfter asks the gate before and after.
func (g *Orders) SalesAfter(ctx context.Context, after string, limit int) (r0 []flashsale.Sale, r1 []flashsale.SKUState, err error) {
	err = g.gate.pass(ctx, "orders.SalesAfter", func() (err error) {
		r0, r1, err = g.inner.SalesAfter(ctx, after, limit)
		return err
	})
	return r0, r1, err
}

// SKU asks the gate before and after.
func (g *Orders) SKU(ctx context.Context, key flashsale.Key) (r0 *flashsale.SKUState, err error) {
	err = g.gate.pass(ctx, "orders.SKU", func() (err error) {
		r0, err = g.inner.SKU(ctx, key)
		return err
	})
	return r0, err
}

// SKUs asks the gate before and after.
func (g *Orders) SKUs(ctx context.Context) (r0 []flashsale.SKUState, err error) {
	err = g.gate.pass(ctx, "orders.SKUs", func() (err error) {
		r0, err = g.inner.SKUs(ctx)
		return err
	})
	return r0, err
}

// Retirable asks the gate before and after.
func (g *Orders) Retirable(ctx context.Context, after flashsale.Key, limit int) (r0 []flashsale.SKUState, err error) {
	err = g.gate.pass(ctx, "orders.Retirable", func() (err error) {
		r0, err = g.inner.Retirable(ctx, after, limit)
		return err
	})
	return r0, err
}

// Retire asks the gate before and after.
func (g *Orders) Retire(ctx context.Context, key flashsale.Key, epoch int64) (err error) {
	return g.gate.pass(ctx, "orders.Retire", func() (err error) {
		return g.inner.Retire(ctx, key, epoch)
	})
}

// Decide asks the gate before and after.
func (g *Orders) Decide(ctx context.Context, b *flashsale.Batch) (r0 []flashsale.Decided, err error) {
	err = g.gate.pass(ctx, "orders.Decide", func() (err error) {
		r0, err = g.inner.Decide(ctx, b)
		return err
	})
	return r0, err
}

// Tombstone asks the gate before and after.
func (g *Orders) Tombstone(ctx context.Context, key flashsale.Key, pending []flashsale.Entry) (r0 []flashsale.Decided, err error) {
	err = g.gate.pass(ctx, "orders.Tombstone", func() (err error) {
		r0, err = g.inner.Tombstone(ctx, key, pending)
		return err
	})
	return r0, err
}

// Cancel asks the gate before and after.
func (g *Orders) Cancel(ctx context.Context, rid string, user string, reason string) (r0 flashsale.Decided, err error) {
	err = g.gate.pass(ctx, "orders.Cancel", func() (err error) {
		r0, err = g.inner.Cancel(ctx, rid, user, reason)
		return err
	})
	return r0, err
}

// Expire asks the gate before and after.
func (g *Orders) Expire(ctx context.Context, rid string) (r0 flashsale.Decided, err error) {
	err = g.gate.pass(ctx, "orders.Expire", func() (err error) {
		r0, err = g.inner.Expire(ctx, rid)
		return err
	})
	return r0, err
}

// Expiring asks the gate before and after.
func (g *Orders) Expiring(ctx context.Context, limit int) (r0 []flashsale.Reservation, err error) {
	err = g.gate.pass(ctx, "orders.Expiring", func() (err error) {
		r0, err = g.inner.Expiring(ctx, limit)
		return err
	})
	return r0, err
}

// Reservation asks the gate before and after.
func (g *Orders) Reservation(ctx context.Context, rid string) (r0 *flashsale.Reservation, err error) {
	err = g.gate.pass(ctx, "orders.Reservation", func() (err error) {
		r0, err = g.inner.Reservation(ctx, rid)
		return err
	})
	return r0, err
}

// Reservations asks the gate before and after.
func (g *Orders) Reservations(ctx context.Context, rids []string) (r0 []flashsale.Reservation, err error) {
	err = g.gate.pass(ctx, "orders.Reservations", func() (err error) {
		r0, err = g.inner.Reservations(ctx, rids)
		return err
	})
	return r0, err
}

// OfUser asks the gate before and after.
func (g *Orders) OfUser(ctx context.Context, sale string, user string, limit int) (r0 []flashsale.Reservation, err error) {
	err = g.gate.pass(ctx, "orders.OfUser", func() (err error) {
		r0, err = g.inner.OfUser(ctx, sale, user, limit)
		return err
	})
	return r0, err
}

// Unsent asks the gate before and after.
func (g *Orders) Unsent(ctx context.Context, lane flashsale.Lane, age time.Duration, after int64, limit int) (r0 []flashsale.Event, err error) {
	err = g.gate.pass(ctx, "orders.Unsent", func() (err error) {
		r0, err = g.inner.Unsent(ctx, lane, age, after, limit)
		return err
	})
	return r0, err
}

// UnsentOf asks the gate before and after.
func (g *Orders) UnsentOf(ctx context.Context, key flashsale.Key, after int64, limit int) (r0 []flashsale.Event, err error) {
	err = g.gate.pass(ctx, "orders.UnsentOf", func() (err error) {
		r0, err = g.inner.UnsentOf(ctx, key, after, limit)
		return err
	})
	return r0, err
}

// Sent asks the gate before and after.
func (g *Orders) Sent(ctx context.Context, lane flashsale.Lane, epoch int64, ids []int64) error {
	return g.gate.pass(ctx, "orders.Sent", func() error { return g.inner.Sent(ctx, lane, epoch, ids) })
}

// UnsentCount asks the gate before and after.
func (g *Orders) UnsentCount(ctx context.Context, key flashsale.Key) (r0 int64, err error) {
	err = g.gate.pass(ctx, "orders.UnsentCount", func() (err error) {
		r0, err = g.inner.UnsentCount(ctx, key)
		return err
	})
	return r0, err
}

// PruneOutbox asks the gate before and after.
func (g *Orders) PruneOutbox(ctx context.Context, age time.Duration, limit int) (r0 int64, err error) {
	err = g.gate.pass(ctx, "orders.PruneOutbox", func() (err error) {
		r0, err = g.inner.PruneOutbox(ctx, age, limit)
		return err
	})
	return r0, err
}

// Lease asks the gate before and after.
func (g *Orders) Lease(ctx context.Context, name string, holder string, ttl time.Duration) (r0 int64, r1 bool, err error) {
	err = g.gate.pass(ctx, "orders.Lease", func() (err error) {
		r0, r1, err = g.inner.Lease(ctx, name, holder, ttl)
		return err
	})
	return r0, r1, err
}

// Release asks the gate before and after.
func (g *Orders) Release(ctx context.Context, name string, holder string) error {
	return g.gate.pass(ctx, "orders.Release", func() error { return g.inner.Release(ctx, name, holder) })
}

// BeginOperation asks the gate before and after.
func (g *Orders) BeginOperation(ctx context.Context, op *flashsale.Operation) (r0 *flashsale.Operation, err error) {
	err = g.gate.pass(ctx, "orders.BeginOperation", func() (err error) {
		r0, err = g.inner.BeginOperation(ctx, op)
		return err
	})
	return r0, err
}

// CommitWithdrawal asks the gate before and after.
func (g *Orders) CommitWithdrawal(ctx context.Context, id string, epoch int64) (r0 *flashsale.Operation, err error) {
	err = g.gate.pass(ctx, "orders.CommitWithdrawal", func() (err error) {
		r0, err = g.inner.CommitWithdrawal(ctx, id, epoch)
		return err
	})
	return r0, err
}

// FinishOperation asks the gate before and after.
func (g *Orders) FinishOperation(ctx context.Context, id string, epoch int64, state flashsale.OperationState, detail string) error {
	return g.gate.pass(ctx, "orders.FinishOperation", func() error { return g.inner.FinishOperation(ctx, id, epoch, state, detail) })
}

// OpenOperations asks the gate before and after.
func (g *Orders) OpenOperations(ctx context.Context, cursor string, limit int) (r0 []flashsale.Operation, r1 string, err error) {
	err = g.gate.pass(ctx, "orders.OpenOperations", func() (err error) {
		r0, r1, err = g.inner.OpenOperations(ctx, cursor, limit)
		return err
	})
	return r0, r1, err
}

// OpenCount asks the gate before and after.
func (g *Orders) OpenCount(ctx context.Context, key flashsale.Key) (r0 int64, err error) {
	err = g.gate.pass(ctx, "orders.OpenCount", func() (err error) {
		r0, err = g.inner.OpenCount(ctx, key)
		return err
	})
	return r0, err
}

// OperationsOf asks the gate before and after.
func (g *Orders) OperationsOf(ctx context.Context, key flashsale.Key, limit int) (r0 []flashsale.Operation, err error) {
	err = g.gate.pass(ctx, "orders.OperationsOf", func() (err error) {
		r0, err = g.inner.OperationsOf(ctx, key, limit)
		return err
	})
	return r0, err
}

// BeginRebuild asks the gate before and after.
func (g *Orders) BeginRebuild(ctx context.Context, key flashsale.Key, lease string, fence int64) (r0 int64, err error) {
	err = g.gate.pass(ctx, "orders.BeginRebuild", func() (err error) {
		r0, err = g.inner.BeginRebuild(ctx, key, lease, fence)
		return err
	})
	return r0, err
}

// Snapshot asks the gate before and after the moment of the snapshot. The parts come afterwards, so that others can make their calls
// between them whatever the database is.
func (g *Orders) Snapshot(ctx context.Context, key flashsale.Key, epoch int64, f func(part *flashsale.LoadPart) error) error {
	var parts []*flashsale.LoadPart
	err := g.gate.pass(ctx, "orders.Snapshot", func() error {
		parts = nil
		return g.inner.Snapshot(ctx, key, epoch, func(part *flashsale.LoadPart) error {
			kept := *part
			kept.Entries, kept.Buyers, kept.Adjusted = slices.Clone(part.Entries), slices.Clone(part.Buyers), slices.Clone(part.Adjusted)
			parts = append(parts, &kept)
			return nil
		})
	})
	for _, part := range parts {
		if err == nil {
			err = f(part)
		}
	}
	return err
}

// EndRebuild asks the gate before and after.
func (g *Orders) EndRebuild(ctx context.Context, key flashsale.Key, epoch int64, storeRun string) error {
	return g.gate.pass(ctx, "orders.EndRebuild", func() error { return g.inner.EndRebuild(ctx, key, epoch, storeRun) })
}

// Books asks the gate before and after.
func (g *Orders) Books(ctx context.Context, key flashsale.Key) (r0 *flashsale.Books, err error) {
	err = g.gate.pass(ctx, "orders.Books", func() (err error) {
		r0, err = g.inner.Books(ctx, key)
		return err
	})
	return r0, err
}

// Durable asks the gate before and after.
func (g *Orders) Durable(ctx context.Context) error {
	return g.gate.pass(ctx, "orders.Durable", func() error { return g.inner.Durable(ctx) })
}

// Now asks the gate before and after.
func (g *Orders) Now(ctx context.Context) (r0 time.Time, err error) {
	err = g.gate.pass(ctx, "orders.Now", func() (err error) {
		r0, err = g.inner.Now(ctx)
		return err
	})
	return r0, err
}

// Close closes what is behind the gate.
func (g *Orders) Close() error { return g.inner.Close() }
