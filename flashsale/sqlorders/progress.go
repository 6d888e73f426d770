package sqlorders

import (
	"context"
	"time"
)

// progressMatch is the name under which it is noted from when on the next match has to look.
const progressMatch = "match"

// MatchSince implements [flashsale.PaymentBook]. No payment is older than the oldest sale.
func (o *Orders) MatchSince(ctx context.Context) (since time.Time, err error) {
	err = o.read(ctx, "MatchSince", func(t *tx) error {
		at, _, err := t.matchSince()
		since = timeAt(at)
		return err
	})
	return since, err
}

// matchSince is what is noted, or what stands for it as long as nothing is.
func (t *tx) matchSince() (at int64, noted bool, err error) {
	if err := t.clock(); err != nil {
		return 0, false, err
	}
	noted, err = t.one("SELECT at FROM progress WHERE name = ?", []any{progressMatch}, &at)
	if err == nil && !noted {
		at, err = t.oldestSale()
	}
	return at, noted, err
}

// oldestSale is when the oldest sale was created, or now, which is known already.
func (t *tx) oldestSale() (at int64, err error) {
	at = t.now
	_, err = t.one("SELECT created_at FROM sale ORDER BY created_at LIMIT 1", nil, &at)
	return at, err
}

// Matched implements [flashsale.PaymentBook].
func (o *Orders) Matched(ctx context.Context, was, from time.Time) (noted bool, err error) {
	err = o.write(ctx, "Matched", func(t *tx) error {
		n, err := t.exec("UPDATE progress SET at = ? WHERE name = ? AND at = ?", micros(from), progressMatch, micros(was))
		if noted = n == 1; err != nil || noted {
			return err
		}
		if _, there, err := t.matchSince(); err != nil || there {
			return err
		}
		noted = true
		return t.noteMatch(micros(from))
	})
	return noted && err == nil, err
}

// MatchAgain implements [flashsale.PaymentBook].
func (o *Orders) MatchAgain(ctx context.Context, since time.Time) error {
	return o.write(ctx, "MatchAgain", func(t *tx) error {
		if err := t.clock(); err != nil {
			return err
		}
		oldest, err := t.oldestSale()
		if err != nil {
			return err
		}
		from := max(micros(since), oldest)
		n, err := t.exec("UPDATE progress SET at = CASE WHEN at < ? THEN at ELSE ? END - 1 WHERE name = ?", from, from, progressMatch)
		if err != nil || n > 0 {
			return err
		}
		at, _, err := t.matchSince()
		if err != nil {
			return err
		}
		return t.noteMatch(min(at, from) - 1)
	})
}

// noteMatch is for what is not noted yet. If it is by now, the transaction is tried again, and sees it.
func (t *tx) noteMatch(at int64) error {
	_, err := t.exec("INSERT INTO progress (name, at) VALUES (?, ?)", progressMatch, at)
	return err
}
