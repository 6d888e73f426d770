package sqlorders

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// DropSale implements [flashsale.Sales].
func (o *Orders) DropSale(ctx context.Context, d *flashsale.Drop) error {
	want := *d
	want.Reason, want.By = text(d.Reason), text(d.By)
	if err := checkDrop(&want); err != nil {
		return err
	}
	return o.write(ctx, "DropSale", func(t *tx) error {
		done, err := t.hasDropped(&want)
		if err != nil || done {
			return err
		}
		return t.dropSale(&want)
	})
}

func checkDrop(d *flashsale.Drop) error {
	if err := flashsale.CheckID("the id of the operation", d.ID); err != nil {
		return err
	}
	if err := flashsale.CheckID("the id of the sale", d.Sale); err != nil {
		return err
	}
	if len(d.By) > flashsale.MaxReason {
		return invalidf("operation %s: By has %d bytes, more than %d", d.ID, len(d.By), flashsale.MaxReason)
	}
	return flashsale.CheckReason(d.Reason)
}

// hasDropped reports whether this was done before. CodeConflict if another drop has the id.
func (t *tx) hasDropped(d *flashsale.Drop) (bool, error) {
	was := flashsale.Drop{ID: d.ID}
	found, err := t.one("SELECT sale, reason, by_whom FROM dropped WHERE operation = ? LIMIT 1", []any{d.ID}, &was.Sale, &was.Reason, &was.By)
	if err == nil && found && was != *d {
		err = errorf(flashsale.CodeConflict, "there is an operation %q that says something else; give this one an id of its own", d.ID)
	}
	return found, err
}

// dropSale removes a sale, if nothing was ever sold of it. Its skus are locked first, in one order, so that none is opened meanwhile.
func (t *tx) dropSale(d *flashsale.Drop) error {
	skus, err := t.skuIDs(d.Sale)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, id := range skus {
		s, err := t.lockSKU(flashsale.Key{Sale: d.Sale, SKU: id})
		if err != nil {
			return err
		}
		if s.Settings.Status != flashsale.Draft {
			return errorf(flashsale.CodeInvalidState, "%s is %s: a sale that was ever opened stays in the books; drain and close it", s.Key, s.Settings.Status)
		}
		rows = append(rows, []any{d.ID, d.Sale, id, s.Epoch, s.Settings.Version, int64(0), d.Reason, d.By, t.now})
	}
	found, err := t.one("SELECT 1 FROM reservation WHERE sale = ? LIMIT 1", []any{d.Sale}, new(int64))
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return errorf(flashsale.CodeUnknownSale, "there is no sale %q", d.Sale)
	case found:
		return errorf(flashsale.CodeInvalidState, "the sale %q has reservations, which stay in the books", d.Sale)
	}
	for _, from := range []string{"stock_ledger", "operation", "sale_sku"} {
		if _, err := t.exec("DELETE FROM "+from+" WHERE sale = ?", d.Sale); err != nil {
			return err
		}
	}
	if _, err := t.exec("DELETE FROM sale WHERE id = ?", d.Sale); err != nil {
		return err
	}
	return t.insert(columnsOf("dropped", "operation", "sale", "sku", "epoch int", "settings_version int", "removed int", "reason", "by_whom", "at int"), "", rows)
}

func (t *tx) skuIDs(sale string) (ids []string, err error) {
	err = t.query("SELECT sku FROM sale_sku WHERE sale = ? ORDER BY sku", []any{sale}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// begun is where the epochs and versions of a sku begin: after those of one of the same name that was dropped, so that nobody who remembers
// that one takes the later for the earlier.
type begun struct{ epoch, version int64 }

// beginnings are those of a sale's skus that are not 1.
func (t *tx) beginnings(sale string) (map[string]begun, error) {
	of := map[string]begun{}
	err := t.query("SELECT sku, MAX(epoch), MAX(settings_version) FROM dropped WHERE sale = ? GROUP BY sku", []any{sale}, func(scan func(...any) error) error {
		var sku string
		var b begun
		err := scan(&sku, &b.epoch, &b.version)
		of[sku] = b
		return err
	})
	return of, err
}

// Dropped implements [flashsale.Sales].
func (o *Orders) Dropped(ctx context.Context, age time.Duration, after flashsale.DroppedSKU, limit int) (all []flashsale.DroppedSKU, err error) {
	err = o.read(ctx, "Dropped", func(t *tx) error {
		if err := t.clock(); err != nil {
			return err
		}
		return t.query("SELECT operation, sale, sku, epoch FROM dropped WHERE removed = 0 AND at <= ? AND (operation > ? OR operation = ? AND sku > ?) ORDER BY operation, sku LIMIT ?",
			[]any{t.now - age.Microseconds(), after.Operation, after.Operation, after.Key.SKU, bounded(limit)}, func(scan func(...any) error) error {
				var d flashsale.DroppedSKU
				err := scan(&d.Operation, &d.Key.Sale, &d.Key.SKU, &d.Epoch)
				all = append(all, d)
				return err
			})
	})
	return all, err
}

// Removed implements [flashsale.Sales].
func (o *Orders) Removed(ctx context.Context, d *flashsale.DroppedSKU) error {
	return o.write(ctx, "Removed", func(t *tx) error {
		_, err := t.exec("UPDATE dropped SET removed = 1 WHERE operation = ? AND sku = ?", d.Operation, d.Key.SKU)
		return err
	})
}
