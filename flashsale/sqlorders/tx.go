package sqlorders

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// maxTries bounds how often a transaction is tried that others are in the way of, duplicateTries that which meets a key that is
	// there: the second time it sees the row.
	maxTries       = 12
	duplicateTries = 3
	// Pauses between tries grow from at most firstPause to at most longestPause.
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// querier is what *sql.Tx and *sql.DB have in common.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tx is a transaction of a method. Statements are written with ? and run as the dialect wants them.
type tx struct {
	ctx context.Context
	q   querier
	d   *dialect
	cfg *Config
	// now is the time, in microseconds, after lock or clock.
	now int64
}

// write runs f in a transaction that writes, and commits. Where another transaction is in the way, or a key was inserted meanwhile
// that f has looked for in vain, it runs f again: f must not keep anything of an earlier run. The error is for the caller.
func (o *Orders) write(ctx context.Context, method string, f func(t *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	var err error
	for try := 1; ; try++ {
		if err = o.once(ctx, o.db, nil, f); err == nil {
			return nil
		}
		if !o.again(err, try) || !pause(ctx, try) {
			return o.failed(ctx, method, err)
		}
		o.cfg.Retried(method, try, err)
	}
}

// again reports whether a transaction that failed is tried once more.
func (o *Orders) again(err error, try int) bool {
	if o.closed.Load() {
		return false
	}
	switch o.d.classify(err).kind {
	case failRetry:
		return try < maxTries
	case failDuplicate:
		return try < duplicateTries
	}
	return false
}

// pause waits a random while, longer with every try, and reports whether there is time for another.
func pause(ctx context.Context, try int) bool {
	timer := time.NewTimer(rand.N(min(firstPause<<min(try, 10), longestPause)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// snapshot runs f in a transaction that only reads, and sees one moment. Only its wait for a connection is bounded.
func (o *Orders) snapshot(ctx context.Context, method string, f func(t *tx) error) error {
	waiting, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	conn, err := o.readers.Conn(waiting)
	if err != nil {
		return o.failed(waiting, method, err)
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	hurry, err := o.unhurry(waiting, conn)
	if err != nil {
		return o.failed(waiting, method, err)
	}
	defer hurry()
	options := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if o.d.clock == "" { // SQLite's transactions are all of one moment
		options = nil
	}
	if err := o.once(ctx, conn, options, f); err != nil {
		return o.failed(ctx, method, err)
	}
	return nil
}

// unhurry lets transactions of a connection stand still for snapshotIdle, where that is said of a connection, until it gets its bound back.
func (o *Orders) unhurry(ctx context.Context, conn *sql.Conn) (hurry func(), err error) {
	if o.d.standing == "" {
		return func() {}, nil
	}
	set := func(ctx context.Context, d time.Duration) error {
		_, err := conn.ExecContext(ctx, fmt.Sprintf(o.d.standing, wholeSeconds(d)))
		return err
	}
	if err := set(ctx, snapshotIdle); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.cfg.Timeout)
		defer cancel()
		if err := set(ctx, o.cfg.Timeout); err != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool forgets it
		}
	}, nil
}

// read runs f, which is one statement, without a transaction around it.
func (o *Orders) read(ctx context.Context, method string, f func(t *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	if err := f(&tx{ctx: ctx, q: o.readers, d: o.d, cfg: &o.cfg}); err != nil {
		return o.failed(ctx, method, err)
	}
	return nil
}

// beginner is what *sql.DB and *sql.Conn have in common.
type beginner interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
}

// once runs f in one transaction.
func (o *Orders) once(ctx context.Context, db beginner, options *sql.TxOptions, f func(t *tx) error) error {
	begun, err := db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := f(&tx{ctx: ctx, q: begun, d: o.d, cfg: &o.cfg}); err != nil {
		_ = begun.Rollback() // the first error says more, and a connection that cannot roll back is closed
		return err
	}
	if err := begun.Commit(); err != nil {
		return o.commitError(err)
	}
	return nil
}

// commitError tells a commit that the database has refused from one whose outcome nobody knows.
func (o *Orders) commitError(err error) error {
	switch o.d.classify(err).kind {
	case failRetry, failDuplicate, failConstraint:
		return err
	}
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "sqlorders: whether " + o.d.name + " has committed is not known; ask again", Err: err}
}

// exec runs a statement and returns how many rows it has found.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.q.ExecContext(t.ctx, t.d.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls each for every row; scan reads its columns. Nothing else may run in the transaction until it returns.
func (t *tx) query(query string, args []any, each func(scan func(dest ...any) error) error) (err error) {
	rows, err := t.q.QueryContext(t.ctx, t.d.bind(query), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one reads the first row of a query, and reports whether there is one.
func (t *tx) one(query string, args []any, dest ...any) (found bool, err error) {
	rows, err := t.q.QueryContext(t.ctx, t.d.bind(query), args...)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return false, rows.Err()
	}
	return true, rows.Scan(dest...)
}

// lock is one for a "SELECT columns FROM table WHERE …" whose row stays locked until the transaction ends. It sets now, to a time at
// which the lock was held, whether there is a row or not.
func (t *tx) lock(query string, args []any, dest ...any) (found bool, err error) {
	if t.d.clock == "" {
		found, err = t.one(query, args, dest...)
	} else {
		found, err = t.one(t.d.locking(query), args, append([]any{&t.now}, dest...)...)
	}
	switch {
	case err != nil:
		return false, err
	case t.d.clock == "" || t.cfg.Now != nil:
		t.now = t.processClock()
	case !found:
		return false, t.clock()
	}
	return found, nil
}

// clock sets now where nothing is locked.
func (t *tx) clock() error {
	if t.d.clock == "" || t.cfg.Now != nil {
		t.now = t.processClock()
		return nil
	}
	_, err := t.one("SELECT "+t.d.clock, nil, &t.now)
	return err
}

// processClock is Config.Now, or, for a database that runs in this process, the process's.
func (t *tx) processClock() int64 {
	if t.cfg.Now != nil {
		return t.cfg.Now().UnixMicro()
	}
	return time.Now().UnixMicro()
}
