package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of a reconciliation.
const (
	comparePage  = 500
	comparePages = 200 // of one key in one pass; the next goes on where it ended
	maxNamed     = 16  // rids that a report names
	// backwards is every which pass looks from SQL to the Stock too, without being asked by the counters.
	backwards = 20
)

// ReconcileReport is what a pass of the reconciler has found.
type ReconcileReport struct {
	At   time.Time
	Took time.Duration
	Keys []KeyReport
}

// KeyReport is the part of one key.
type KeyReport struct {
	Key flashsale.Key
	// Skipped says why nothing was compared, "" if it was.
	Skipped string
	// Compared counts the reservations of the Stock that were looked at, Replayed those that were behind SQL and have followed now.
	Compared, Replayed int
	// Ahead names reservations of which the Stock knows more than SQL does, Missing those that SQL holds units for and the Stock does
	// not know: losses, after which the Stock is rebuilt. At most 16 each.
	Ahead, Missing []string
	// Drift is a difference of counters while nothing is under way, if it was the same in the pass before.
	Drift *Drift
}

// Drift is a difference of the counters.
type Drift struct {
	Epoch      int64
	Stock, SQL Counters
}

// Counters are those of a key.
type Counters struct{ Total, Available, Held, Sold int64 }

func (d *Drift) String() string {
	return fmt.Sprintf("the stock has %+v, SQL %+v", d.Stock, d.SQL)
}

// LastReconciliation returns the report of the last pass that this instance has made, nil if it has made none.
func (e *Engine) LastReconciliation() *ReconcileReport {
	e.care.mu.Lock()
	defer e.care.mu.Unlock()
	return e.care.report
}

// ReconcileOnce compares Stock and SQL by reservation, and lets the Stock follow where it is behind. It sets no counter: a difference
// that no replay explains is reported, and is an operator's to rebuild. It returns how many reservations it has repaired.
func (e *Engine) ReconcileOnce(ctx context.Context) (int, error) {
	began := time.Now()
	skus, err := e.orders.SKUs(ctx)
	if err != nil {
		return 0, err
	}
	e.care.mu.Lock()
	deep := e.care.passes%backwards == 0
	e.care.passes++
	e.care.mu.Unlock()
	report := &ReconcileReport{At: e.cfg.Now(), Keys: make([]KeyReport, len(skus))}
	did := 0
	var errs []error
	for i := range skus {
		k := &reconciliation{Engine: e, sku: &skus[i], report: &report.Keys[i]}
		k.report.Key = skus[i].Key
		errs = append(errs, k.run(ctx, deep))
		did += k.report.Replayed
	}
	e.endDrifts(skus)
	report.Took = time.Since(began)
	e.care.mu.Lock()
	e.care.report = report
	e.care.mu.Unlock()
	return did, errors.Join(errs...)
}

// reconciliation is that of one key.
type reconciliation struct {
	*Engine
	sku    *flashsale.SKUState
	report *KeyReport
}

func (k *reconciliation) run(ctx context.Context, deep bool) error {
	if k.sku.Rebuilding {
		k.report.Skipped = "it is being rebuilt"
		return nil
	}
	err := k.forwards(ctx)
	if err == nil {
		err = k.looseEnds(ctx, deep)
	}
	if isEpoch(err) {
		k.report.Skipped = "its epoch has changed meanwhile"
		return nil
	}
	if err != nil {
		k.report.Skipped = err.Error()
		return err
	}
	if len(k.report.Ahead)+len(k.report.Missing) > 0 {
		k.lost(k.sku.Key, k.sku.Epoch, "the reconciler found reservations that only one of the stores knows")
	}
	return nil
}

// forwards walks through the Stock and asks SQL about each reservation.
func (k *reconciliation) forwards(ctx context.Context) error {
	key, epoch := k.sku.Key, k.sku.Epoch
	cursor := k.care.walked("reconcile", key, epoch)
	for range comparePages {
		page, next, err := k.stock.Entries(ctx, key, epoch, cursor, comparePage)
		if err != nil {
			return err
		}
		if err := k.compare(ctx, page); err != nil {
			return err
		}
		k.care.walkOn("reconcile", key, epoch, next)
		if cursor = next; cursor == "" {
			return nil
		}
	}
	return nil
}

// compare asks SQL about a page. The Stock was read first, and follows SQL: so SQL must know at least as much.
func (k *reconciliation) compare(ctx context.Context, page []flashsale.Entry) error {
	rids := make([]string, len(page))
	for i := range page {
		rids[i] = page[i].RID
	}
	rows, err := k.rowsOf(ctx, rids)
	if err != nil {
		return err
	}
	var behind []flashsale.Effect
	for i := range page {
		entry, row := &page[i], rows[page[i].RID]
		switch {
		case row == nil && entry.State == flashsale.Pending:
		case row == nil || row.Version < entry.Version || row.Quantity != entry.Quantity || row.Key != k.sku.Key:
			k.report.Ahead = named(k.report.Ahead, entry.RID)
		case row.Version > entry.Version:
			behind = append(behind, flashsale.Effect{RID: row.RID, User: row.User, Quantity: row.Quantity, State: row.State, Version: row.Version})
		}
	}
	k.report.Compared += len(page)
	if len(behind) == 0 {
		return nil
	}
	applied, err := k.stock.Apply(ctx, k.sku.Key, k.sku.Epoch, behind, nil)
	for _, a := range applied {
		if a == flashsale.AppliedMoved {
			k.report.Replayed++
		}
	}
	return err
}

// looseEnds compares the counters, and looks from SQL to the Stock if they are a reason to, or if it is time.
func (k *reconciliation) looseEnds(ctx context.Context, deep bool) error {
	s, err := k.stand(ctx, k.sku.Key)
	if err != nil {
		return err
	}
	// The Stock takes before SQL does. If it has less taken, either units were given back between the two looks or it has lost some.
	if deep || s.view.Held+s.view.Sold < s.sku.Reserved+s.sku.Sold {
		if err := k.missing(ctx); err != nil {
			return err
		}
	}
	k.drift(s)
	return nil
}

// missing asks the Stock for everything that SQL holds units for.
func (k *reconciliation) missing(ctx context.Context) error {
	return k.orders.Snapshot(ctx, k.sku.Key, k.sku.Epoch, func(part *flashsale.LoadPart) error {
		var rids []string
		for i := range part.Entries {
			if part.Entries[i].State.Class() == flashsale.Held {
				rids = append(rids, part.Entries[i].RID)
			}
		}
		if len(rids) == 0 {
			return nil
		}
		entries, err := k.stock.Find(ctx, k.sku.Key, k.sku.Epoch, rids)
		for i := range entries {
			if entries[i].State == flashsale.None {
				k.report.Missing = named(k.report.Missing, rids[i])
			}
		}
		return err
	})
}

// drift reports counters that differ while nothing is under way, the second time that they differ in the same way.
func (k *reconciliation) drift(s *standing) {
	key := k.sku.Key
	found := s.drift()
	k.care.mu.Lock()
	before, had := k.care.drifts[key]
	again := found != nil && had && before.Drift == *found
	if found == nil {
		delete(k.care.drifts, key)
	} else {
		k.care.drifts[key] = knownDrift{*found, again || before.told}
	}
	k.care.mu.Unlock()
	switch {
	case again:
		k.report.Drift = found
		k.log.Error("the counters of stock and SQL differ", slog.String("sku", key.String()), slog.String("drift", found.String()))
		k.observer.Alarm(AlarmDrift, key.String(), true, float64(found.Stock.Available-found.SQL.Available), found.String())
	case found == nil && before.told:
		k.observer.Alarm(AlarmDrift, key.String(), false, 0, "they agree again")
	}
}

// endDrifts forgets drifts of all skus but these, and ends their alarms.
func (e *Engine) endDrifts(but []flashsale.SKUState) {
	kept := make(map[flashsale.Key]bool, len(but))
	for i := range but {
		kept[but[i].Key] = true
	}
	var ended []flashsale.Key
	e.care.mu.Lock()
	for key, d := range e.care.drifts {
		if kept[key] {
			continue
		}
		delete(e.care.drifts, key)
		if d.told {
			ended = append(ended, key)
		}
	}
	e.care.mu.Unlock()
	for _, key := range ended {
		e.observer.Alarm(AlarmDrift, key.String(), false, 0, "it is not compared here any more")
	}
}

func named(rids []string, rid string) []string {
	if len(rids) < maxNamed {
		rids = append(rids, rid)
	}
	return rids
}
