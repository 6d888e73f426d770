package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds, in bytes.
const (
	MaxConsumer  = 64
	MaxMessageID = 255
)

// maxPrune bounds what one Prune removes.
const maxPrune = 100_000

// ErrInvalid is wrapped by errors that are the caller's: a setting or an id of a message that cannot be. Bringing the message again
// does not mend it.
var ErrInvalid = errors.New("inbox: invalid")

// Config is what an Inbox is made of.
type Config struct {
	// DB is the reader's own database. It is needed.
	DB *sql.DB
	// Dialect is needed.
	Dialect Dialect
	// Consumer names the reader: each of several that share a table takes every message once. 1 to 64 bytes of UTF-8 without control
	// characters. Default "default".
	Consumer string
	// Now is the clock, of which Prune takes the ages. Default time.Now.
	Now func() time.Time
}

// Inbox remembers which messages a consumer has taken. It is safe for concurrent use, also of several processes.
type Inbox struct {
	db       *sql.DB
	sql      statements
	consumer string
	now      func() time.Time
}

// New returns an inbox. The table has to be there before it is used: see the constants of its schema, and Init.
func New(cfg Config) (*Inbox, error) {
	if cfg.Consumer == "" {
		cfg.Consumer = "default"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s, known := cfg.Dialect.statements()
	switch {
	case cfg.DB == nil:
		return nil, fmt.Errorf("%w: Config.DB is missing", ErrInvalid)
	case !known:
		return nil, fmt.Errorf("%w: Config.Dialect is %q; give %s, %s or %s", ErrInvalid, cfg.Dialect, PostgreSQL, MySQL, SQLite)
	}
	if err := check("Config.Consumer", cfg.Consumer, MaxConsumer); err != nil {
		return nil, err
	}
	return &Inbox{db: cfg.DB, sql: s, consumer: cfg.Consumer, now: cfg.Now}, nil
}

// Init makes the table if there is none, for readers without migrations of their own.
func (b *Inbox) Init(ctx context.Context) error {
	if _, err := b.db.ExecContext(ctx, b.sql.schema); err != nil {
		return fmt.Errorf("inbox: making the table: %w", err)
	}
	return nil
}

// Once calls f in a transaction that also notes the message, if it was not noted before, and reports whether f's work was committed by
// this call. A message that was taken before is (false, nil), and f is not called. While another call with the same id is under way,
// this one waits for its end.
//
// With an error nothing has happened, unless the commit itself has failed: then that is open, and the next call with the id tells. The error
// of f is in the chain of the error. f must not end the transaction itself; a panic in it undoes the transaction, and goes on.
func (b *Inbox) Once(ctx context.Context, messageID string, f func(tx *sql.Tx) error) (first bool, err error) {
	if err := check("the id of the message", messageID, MaxMessageID); err != nil {
		return false, err
	}
	tx, mine, err := b.claimRepeatedly(ctx, messageID)
	if err != nil {
		return false, fmt.Errorf("inbox: noting message %q: %w", messageID, err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if !mine {
		return false, nil
	}
	if err := f(tx); err != nil {
		return false, fmt.Errorf("inbox: message %q: %w", messageID, err)
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("inbox: committing message %q: %w", messageID, err)
	}
	return true, nil
}

// claimTries is how often a claim is tried. Those who wait for one that is undone can meet in a deadlock, of which the database
// picks victims, or fail to be serialized; nothing of the caller's has run by then.
const claimTries = 4

func (b *Inbox) claimRepeatedly(ctx context.Context, messageID string) (tx *sql.Tx, mine bool, err error) {
	wait := 5 * time.Millisecond
	for try := 1; ; try++ {
		tx, mine, err = b.claim(ctx, messageID)
		if err == nil || try == claimTries {
			return tx, mine, err
		}
		select {
		case <-ctx.Done():
			return nil, false, err
		case <-time.After(wait):
			wait *= 4
		}
	}
}

// claim begins a transaction, and reports whether it is the first to note the message.
func (b *Inbox) claim(ctx context.Context, messageID string) (*sql.Tx, bool, error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, false, err
	}
	result, err := tx.ExecContext(ctx, b.sql.claim, b.consumer, messageID, b.now().UnixMicro())
	var rows int64
	if err == nil {
		rows, err = result.RowsAffected()
	}
	if err != nil {
		return nil, false, errors.Join(err, tx.Rollback())
	}
	return tx, rows == 1, nil
}

// Prune forgets messages of this consumer that it took longer ago than age, the oldest first and at most limit (1 to 100,000), and returns
// how many. A message that comes again after that is taken again: give an age that is longer than the broker keeps messages.
func (b *Inbox) Prune(ctx context.Context, age time.Duration, limit int) (int64, error) {
	if age < 0 || limit < 1 || limit > maxPrune {
		return 0, fmt.Errorf("%w: Prune(%s, %d); give an age of 0s or more and a limit of 1 to %d", ErrInvalid, age, limit, maxPrune)
	}
	result, err := b.db.ExecContext(ctx, b.sql.prune, b.consumer, b.now().Add(-age).UnixMicro(), limit)
	if err != nil {
		return 0, fmt.Errorf("inbox: pruning: %w", err)
	}
	return result.RowsAffected()
}

// check says what is wrong with a text that every dialect has to keep as it is.
func check(what, text string, most int) error {
	switch {
	case text == "" || len(text) > most:
		return fmt.Errorf("%w: %s has %d bytes; give 1 to %d", ErrInvalid, what, len(text), most)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %s is no UTF-8", ErrInvalid, what)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: %s has a control character", ErrInvalid, what)
		}
	}
	return nil
}
