package sqlorders

import (
	"context"
	"time"
)

// progressMatch is the name under which the match notes how far it has come.
const progressMatch = "match"

// MatchSince implements [flashsale.PaymentBook]. No payment is older than the oldest sale.
func (o *Orders) MatchSince(ctx context.Context) (since time.Time, err error) {
	err = o.read(ctx, "MatchSince", func(t *tx) error {
		if err := t.clock(); err != nil {
			return err
		}
		at := t.now
		found, err := t.one("SELECT at FROM progress WHERE name = ?", []any{progressMatch}, &at)
		if err == nil && !found {
			_, err = t.one("SELECT created_at FROM sale ORDER BY created_at LIMIT 1", nil, &at)
		}
		since = timeAt(at)
		return err
	})
	return since, err
}

// Matched implements [flashsale.PaymentBook].
func (o *Orders) Matched(ctx context.Context, began time.Time) error {
	return o.write(ctx, "Matched", func(t *tx) error {
		_, err := t.exec("INSERT INTO progress (name, at) VALUES (?, ?)"+t.d.onConflict("name", "at = NEW(at)"), progressMatch, micros(began))
		return err
	})
}
