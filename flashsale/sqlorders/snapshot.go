package sqlorders

import (
	"bytes"
	"context"
	"slices"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// partSize is how many entries, or buyers, a part of a snapshot has at most.
	partSize = 1000
	// maxBuyerRIDs is how many rids a Buyer has at most, the latest.
	maxBuyerRIDs = 16
)

// Snapshot implements [flashsale.Rebuilds]. While f runs the moment is held, which keeps the database from tidying up behind it, but
// keeps nobody from writing; only in memory, where there is one connection, f is called when all has been read.
func (o *Orders) Snapshot(ctx context.Context, key flashsale.Key, epoch int64, f func(part *flashsale.LoadPart) error) error {
	give, end := f, func() error { return nil }
	if o.single {
		give, end = kept(f)
	}
	err := o.snapshot(ctx, "Snapshot", func(t *tx) error { return t.snapshotSKU(key, epoch, give) })
	if err != nil {
		return err
	}
	if err := end(); err != nil {
		return o.failed(ctx, "Snapshot", err)
	}
	return nil
}

// kept keeps what it is given, and gives all of it to f in the end.
func kept(f func(part *flashsale.LoadPart) error) (keep func(part *flashsale.LoadPart) error, end func() error) {
	var parts []*flashsale.LoadPart
	keep = func(part *flashsale.LoadPart) error {
		parts = append(parts, part)
		return nil
	}
	end = func() error {
		for _, part := range parts {
			if err := f(part); err != nil {
				return err
			}
		}
		return nil
	}
	return keep, end
}

func (t *tx) snapshotSKU(key flashsale.Key, epoch int64, f func(part *flashsale.LoadPart) error) error {
	if err := t.unhurried(); err != nil {
		return err
	}
	sku, err := t.readSKU(key) // the first statement: the moment
	if err != nil {
		return err
	}
	if err := inEpoch(sku, epoch); err != nil {
		return err
	}
	if err := t.clock(); err != nil {
		return err
	}
	if err := t.snapshotEntries(key, f); err != nil {
		return err
	}
	if err := t.snapshotBuyers(key, f); err != nil {
		return err
	}
	last := &flashsale.LoadPart{Last: true, Total: sku.Total, Reserved: sku.Reserved, Sold: sku.Sold, Settings: sku.Settings}
	if last.Adjusted, err = t.openTopUps(key); err != nil {
		return err
	}
	return f(last)
}

// unhurried lifts the bounds on statements, for one that is read as fast as f takes its rows.
func (t *tx) unhurried() error {
	for _, statement := range t.d.unhurried {
		if _, err := t.exec(statement); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) snapshotEntries(key flashsale.Key, f func(part *flashsale.LoadPart) error) error {
	var entries []flashsale.Entry
	flush := func() error {
		if len(entries) == 0 {
			return nil
		}
		part := &flashsale.LoadPart{Entries: entries}
		entries = nil
		return f(part)
	}
	since := t.now - flashsale.Retention.Microseconds()
	err := t.query("SELECT rid, user_id, quantity, state, version, changed_at FROM reservation WHERE sale = ? AND sku = ? AND (ended_at IS NULL OR ended_at > ?)",
		[]any{key.Sale, key.SKU, since}, func(scan func(...any) error) error {
			var e flashsale.Entry
			var user []byte
			var state, at int64
			if err := scan(&e.RID, &user, &e.Quantity, &state, &e.Version, &at); err != nil {
				return err
			}
			e.User, e.State, e.At = string(user), flashsale.State(state), timeAt(at)
			if entries = append(entries, e); len(entries) < partSize {
				return nil
			}
			return flush()
		})
	if err != nil {
		return err
	}
	return flush()
}

// snapshotBuyers gives the buyers, a page at a time, each with the rids of what it holds and has bought.
func (t *tx) snapshotBuyers(key flashsale.Key, f func(part *flashsale.LoadPart) error) error {
	after := []byte{} // less than every user
	for {
		var buyers []flashsale.Buyer
		first := after
		err := t.query("SELECT user_id, quantity FROM buyer WHERE sale = ? AND sku = ? AND user_id > ? AND quantity > 0 ORDER BY user_id LIMIT ?",
			[]any{key.Sale, key.SKU, after, int64(partSize)}, func(scan func(...any) error) error {
				var user []byte
				var quantity int64
				if err := scan(&user, &quantity); err != nil {
					return err
				}
				buyers = append(buyers, flashsale.Buyer{User: string(user), Quantity: quantity})
				after = bytes.Clone(user)
				return nil
			})
		if err != nil || len(buyers) == 0 {
			return err
		}
		if err := t.ridsOf(key, first, after, buyers); err != nil {
			return err
		}
		if err := f(&flashsale.LoadPart{Buyers: buyers}); err != nil || len(buyers) < partSize {
			return err
		}
	}
}

// ridsOf finds the rids of the buyers after one user and up to another: the latest, and of them the oldest first.
func (t *tx) ridsOf(key flashsale.Key, after, upTo []byte, buyers []flashsale.Buyer) error {
	of := make(map[string]*flashsale.Buyer, len(buyers))
	for i := range buyers {
		of[buyers[i].User] = &buyers[i]
	}
	err := t.query("SELECT user_id, rid FROM reservation WHERE sale = ? AND user_id > ? AND user_id <= ? AND sku = ? AND state IN (?, ?, ?) "+
		"ORDER BY user_id, created_at DESC, rid",
		[]any{key.Sale, after, upTo, key.SKU, int64(flashsale.Reserved), int64(flashsale.Confirming), int64(flashsale.Confirmed)},
		func(scan func(...any) error) error {
			var user []byte
			var rid string
			if err := scan(&user, &rid); err != nil {
				return err
			}
			if b := of[string(user)]; b != nil && len(b.RIDs) < maxBuyerRIDs {
				b.RIDs = append(b.RIDs, rid)
			}
			return nil
		})
	for i := range buyers {
		slices.Reverse(buyers[i].RIDs)
	}
	return err
}

func (t *tx) openTopUps(key flashsale.Key) ([]string, error) {
	var ids []string
	err := t.query("SELECT id FROM operation WHERE sale = ? AND sku = ? AND kind = 'top_up' AND state = 'committed' ORDER BY id", []any{key.Sale, key.SKU},
		func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		})
	return ids, err
}
