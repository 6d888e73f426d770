package sqlorders

import (
	"context"
	"time"
)

// maxPrune bounds what one call looks at.
const maxPrune = 10_000

// PruneOutbox removes rows that both lanes have delivered. It walks by id, in which order rows become old, so that a call reads as many
// rows as it was given: those that wait for a broker, and those of the last hour, can be millions.
func (o *Orders) PruneOutbox(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	if limit <= 0 {
		return 0, nil
	}
	next := int64(0)
	err = o.write(ctx, "PruneOutbox", func(t *tx) error {
		n = 0
		if err := t.clock(); err != nil {
			return err
		}
		var ids []int64
		if ids, next, err = t.delivered(o.pruned.Load(), t.now-age.Microseconds(), min(limit, maxPrune)); err != nil {
			return err
		}
		n, err = remove(t, "outbox", "id", ids)
		return err
	})
	if err == nil {
		o.pruned.Store(next)
	}
	return n, err
}

// delivered returns which of the next rows after an id are to be removed, and after which one to go on, 0: from the beginning.
func (t *tx) delivered(after, until int64, limit int) (ids []int64, next int64, err error) {
	looked, old := 0, true
	err = t.query("SELECT id, at, stock_sent, relay_sent FROM outbox WHERE id > ? ORDER BY id LIMIT ?", []any{after, limit}, func(scan func(...any) error) error {
		var id, at, stock, relay int64
		if err := scan(&id, &at, &stock, &relay); err != nil {
			return err
		}
		if old = old && at <= until; old && stock == 1 && relay == 1 {
			ids = append(ids, id)
		}
		looked, next = looked+1, id
		return nil
	})
	if looked < limit || !old {
		next = 0
	}
	return ids, next, err
}

// PruneEvents removes events of the provider whose payments have come to their end.
func (o *Orders) PruneEvents(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	if limit <= 0 {
		return 0, nil
	}
	err = o.write(ctx, "PruneEvents", func(t *tx) error {
		n = 0
		if err := t.clock(); err != nil {
			return err
		}
		var events []string
		err := t.query("SELECT e.event_id FROM payment_event e JOIN payment p ON p.intent_key = e.intent_key WHERE e.at <= ? AND p.state NOT IN ('live', 'refunding') "+
			"AND (p.state <> 'captured' OR p.applied_to IS NOT NULL) ORDER BY e.at LIMIT ?", []any{t.now - age.Microseconds(), min(limit, maxPrune)},
			func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				events = append(events, id)
				return err
			})
		if err != nil {
			return err
		}
		n, err = remove(t, "payment_event", "event_id", events)
		return err
	})
	return n, err
}

// remove removes rows by their keys.
func remove[T value](t *tx, table, column string, keys []T) (n int64, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = inParts(t.d, keys, func(part []T) error {
		those, args := in(t.d, column, part)
		removed, err := t.exec("DELETE FROM "+table+" WHERE "+those, args...)
		n += removed
		return err
	})
	return n, err
}
