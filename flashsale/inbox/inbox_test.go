package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/inbox"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		t.Helper()
		r := newReader(t, d, "ledger")
		r.once("r1:1", true)
		r.once("r1:1", false)
		// Ids are told apart byte by byte, and so are consumers.
		for _, id := range []string{"r1:1 ", "R1:1", "r1:10", "渠首", strings.Repeat("x", inbox.MaxMessageID)} {
			r.once(id, true)
			r.once(id, false)
		}
		r.wantBooked(6, 6)
		newReader(t, d, "Ledger").once("r1:1", true)
		newReader(t, d, "ledger").once("r1:1", false)
		r.wantBooked(7, 7)
	})
}

// note panics without a map.
func note(m map[string]int) { m["m"]++ }

func TestOnceUndoesAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		t.Helper()
		r := newReader(t, d, "")
		fault := errors.New("no such account")
		first, err := r.Once(t.Context(), "m", func(tx *sql.Tx) error { return errors.Join(r.book(tx, 1), fault) })
		if first || !errors.Is(err, fault) {
			t.Fatalf("%v, %v", first, err)
		}
		r.wantBooked(0, 0)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = r.Once(t.Context(), "m", func(tx *sql.Tx) error {
				_ = r.book(tx, 1)
				note(nil)
				return nil
			})
		}()
		r.wantBooked(0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		if first, err = r.Once(ctx, "m", func(tx *sql.Tx) error {
			err := r.book(tx, 1)
			cancel()
			return err
		}); first || err == nil {
			t.Fatalf("%v, %v", first, err)
		}
		r.wantBooked(0, 0)
		if first, err = r.Once(t.Context(), "m", func(tx *sql.Tx) error { return errors.Join(r.book(tx, 1), tx.Rollback()) }); first || !errors.Is(err, sql.ErrTxDone) {
			t.Fatalf("%v, %v", first, err)
		}
		r.wantBooked(0, 0)
		r.once("m", true)
		r.wantBooked(1, 1)
	})
}

// TestOnceAtTheSameTime: one message that comes 16 times at once, while the first of its tries are undone, has one effect.
func TestOnceAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		t.Helper()
		r := newReader(t, d, "ledger")
		for name, undone := range map[string]int64{"a": 0, "b": 3} {
			var firsts, calls, failed atomic.Int64
			var group sync.WaitGroup
			begin := make(chan struct{})
			for range 16 {
				group.Go(func() {
					<-begin
					for { // as a broker does, until it is taken
						first, err := r.Once(t.Context(), name, func(tx *sql.Tx) error {
							if err := r.book(tx, 1000); err != nil {
								return err
							}
							if calls.Add(1) <= undone {
								return errors.New("undone")
							}
							return nil
						})
						if first {
							firsts.Add(1)
						}
						if err == nil {
							return
						}
						if failed.Add(1) > 500 {
							t.Errorf("message %s: %v", name, err)
							return
						}
					}
				})
			}
			close(begin)
			group.Wait()
			if firsts.Load() != 1 {
				t.Errorf("message %s: %d calls were the first", name, firsts.Load())
			}
			t.Logf("message %s: %d calls, %d errors", name, calls.Load(), failed.Load())
		}
		r.wantBooked(2, 2000)
	})
}

// TestManyMessagesAtTheSameTime: every message comes four times, in different orders.
func TestManyMessagesAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		t.Helper()
		r := newReader(t, d, "ledger")
		const messages = 50
		var firsts atomic.Int64
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				for i := range messages {
					id := string(rune('A' + (i*7+worker*13)%messages))
					first, err := r.Once(t.Context(), id, func(tx *sql.Tx) error { return r.book(tx, 1) })
					for err != nil && t.Context().Err() == nil && strings.Contains(err.Error(), "serialize") {
						first, err = r.Once(t.Context(), id, func(tx *sql.Tx) error { return r.book(tx, 1) })
					}
					if err != nil {
						t.Error(err)
					}
					if first {
						firsts.Add(1)
					}
				}
			})
		}
		group.Wait()
		if firsts.Load() != messages {
			t.Errorf("%d messages were taken", firsts.Load())
		}
		r.wantBooked(messages, messages)
	})
}

func TestPrune(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		t.Helper()
		r, other := newReader(t, d, "ledger"), newReader(t, d, "other")
		begin := r.now
		for i, id := range []string{"a", "b", "c", "d"} {
			r.now, other.now = begin.Add(time.Duration(i)*time.Hour), begin
			r.once(id, true)
			other.once(id, true)
		}
		prune := func(age time.Duration, limit int, want int64) {
			t.Helper()
			if n, err := r.Prune(t.Context(), age, limit); err != nil || n != want {
				t.Fatalf("%d were pruned, %v; want %d", n, err, want)
			}
		}
		prune(3*time.Hour, 100, 0) // a is that old, and not older
		prune(30*time.Minute, 2, 2)
		r.once("c", false)
		r.once("d", false)
		prune(30*time.Minute, 2, 1)
		r.once("c", true)
		other.once("a", false)
	})
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:x?mode=memory")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, cfg := range map[string]inbox.Config{
		"no database":       {Dialect: inbox.SQLite},
		"no dialect":        {DB: db},
		"another dialect":   {DB: db, Dialect: "oracle"},
		"a long consumer":   {DB: db, Dialect: inbox.SQLite, Consumer: strings.Repeat("x", 65)},
		"no UTF-8":          {DB: db, Dialect: inbox.SQLite, Consumer: "\xff"},
		"a line of its own": {DB: db, Dialect: inbox.SQLite, Consumer: "a\nb"},
	} {
		if _, err := inbox.New(cfg); !errors.Is(err, inbox.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	box, err := inbox.New(inbox.Config{DB: db, Dialect: inbox.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"none": "", "long": strings.Repeat("x", 256), "no UTF-8": "a\xff", "with a NUL": "a\x00"} {
		called := false
		if _, err := box.Once(t.Context(), id, func(*sql.Tx) error { called = true; return nil }); !errors.Is(err, inbox.ErrInvalid) || called {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, limit := range []int{0, -1, 100_001} {
		if _, err := box.Prune(t.Context(), time.Hour, limit); !errors.Is(err, inbox.ErrInvalid) {
			t.Errorf("%d: %v", limit, err)
		}
	}
	if _, err := box.Prune(t.Context(), -1, 1); !errors.Is(err, inbox.ErrInvalid) {
		t.Error(err)
	}
	// Without a table, and without a database, there is an error and no answer.
	if first, err := box.Once(t.Context(), "m", func(*sql.Tx) error { return nil }); first || err == nil || errors.Is(err, inbox.ErrInvalid) {
		t.Errorf("%v, %v", first, err)
	}
}
