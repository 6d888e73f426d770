package sqlorders

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// addUnits is a transaction that locks a sku and adds a unit to its total.
func addUnits(key flashsale.Key) func(t *tx) error {
	return func(t *tx) error {
		if _, err := t.lockSKU(key); err != nil {
			return err
		}
		_, err := t.exec("UPDATE sale_sku SET total = total + 1 WHERE sale = ? AND sku = ?", key.Sale, key.SKU)
		return err
	}
}

func skuTotal(t *testing.T, o *Orders, key flashsale.Key) int64 {
	t.Helper()
	sku, err := o.SKU(t.Context(), key)
	noError(t, "SKU", err)
	return sku.Total
}

func TestWritesThatFailLeaveNothing(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		plain := errors.New("no")
		for what, f := range map[string]func(t *tx) error{
			"refusal":    func(*tx) error { return errorf(flashsale.CodeNotFound, "nothing here") },
			"error":      func(*tx) error { return plain },
			"constraint": func(t *tx) error { _, err := t.exec("UPDATE sale_sku SET reserved = -1"); return err },
			"statement":  func(t *tx) error { _, err := t.exec("UPDATE no_such_table SET x = 1"); return err },
		} {
			err := o.write(t.Context(), "Test", func(t *tx) error {
				if err := addUnits(testKey)(t); err != nil {
					return err
				}
				return f(t)
			})
			want := map[string]flashsale.Code{"refusal": flashsale.CodeNotFound}[what]
			if want == "" {
				want = flashsale.CodeInternal
			}
			wantCode(t, what, err, want)
			if what == "error" && !errors.Is(err, plain) || what == "constraint" && !strings.Contains(err.Error(), "sku_units") {
				t.Fatalf("%s: %v", what, err)
			}
			if got := skuTotal(t, o, testKey); got != 100 {
				t.Fatalf("%s: the total is %d", what, got)
			}
		}
	})
}

func TestConstraintsAreNamedAndValuesAreNot(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		for table, name := range map[string][]string{"orders": {"orders_rid", "orders.rid"}, "outbox": {"outbox_version", "outbox.rid"}} {
			query, args := insertion(table, override{"rid": "verysecret"})
			mustExec(t, o, query, args...)
			query, args = insertion(table, override{"rid": "verysecret", "order_id": "another"})
			tries := 0
			err := o.write(t.Context(), "Test", func(t *tx) error { tries++; _, err := t.exec(query, args...); return err })
			wantCode(t, table, err, flashsale.CodeInternal)
			if text := err.Error(); tries != duplicateTries || strings.Contains(text, "verysecret") || !strings.Contains(text, name[0]) && !strings.Contains(text, name[1]) {
				t.Fatalf("after %d tries: %q", tries, text)
			}
		}
	})
}

// Two transactions that lock two rows crosswise: one of them is thrown out, and repeated. SQLite runs one transaction at a time.
func TestDeadlocksAreRepeated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var retried atomic.Int64
			o := mustOpen(t, Config{URL: urls[name](t), Timeout: patience, Retried: func(method string, tries int, why error) {
				if method != "Crosswise" || tries < 1 || why == nil {
					t.Errorf("told of %s, %d, %v", method, tries, why)
				}
				retried.Add(1)
			}})
			createSale(t, o)
			var met sync.WaitGroup
			met.Add(2)
			both := func(first, second flashsale.Key) error {
				once := sync.Once{}
				return o.write(t.Context(), "Crosswise", func(t *tx) error {
					if err := addUnits(first)(t); err != nil {
						return err
					}
					once.Do(func() { met.Done(); met.Wait() }) // each holds its first row now
					return addUnits(second)(t)
				})
			}
			errs := make(chan error)
			go func() { errs <- both(testKey, otherKey) }()
			go func() { errs <- both(otherKey, testKey) }()
			noError(t, "one", <-errs)
			noError(t, "the other", <-errs)
			if a, b := skuTotal(t, o, testKey), skuTotal(t, o, otherKey); a != 102 || b != 12 || retried.Load() == 0 {
				t.Fatalf("totals %d and %d, %d retries", a, b, retried.Load())
			}
		})
	}
}

func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	var calls, told atomic.Int64
	o := mustOpen(t, Config{URL: urls["sqlite"](t), Retried: func(string, int, error) { told.Add(1) }})
	busy := lockedError(t)
	err := o.write(t.Context(), "Test", func(*tx) error { calls.Add(1); return busy })
	wantCode(t, "always busy", err, flashsale.CodeUnavailable)
	if calls.Load() != maxTries || told.Load() != maxTries-1 || !strings.Contains(err.Error(), "12 times") {
		t.Fatalf("%d calls, told of %d: %v", calls.Load(), told.Load(), err)
	}
}

// lockedError is a real SQLITE_BUSY.
func lockedError(t *testing.T) error {
	t.Helper()
	file := t.TempDir() + "/locked.db"
	first, err := openSQLite(fileURI(file)+"?_txlock=exclusive", 1)
	noError(t, "open", err)
	defer first.Close()
	begun, err := first.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = begun.Rollback() }()
	second, err := openSQLite(fileURI(file)+"?_txlock=exclusive", 1)
	noError(t, "open", err)
	defer second.Close()
	_, busy := second.BeginTx(t.Context(), nil)
	if classifySQLite(busy).kind != failRetry {
		t.Fatalf("got %v", busy)
	}
	return busy
}

// Whoever waits for a lock waits for Timeout at most, and what holds the lock is not harmed.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, slow *Orders) {
		o := &Orders{cfg: slow.cfg, d: slow.d, db: slow.db, readers: slow.readers} // the same pools, with less time
		o.cfg.Timeout = time.Second
		createSale(t, slow)
		held, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			done <- slow.write(t.Context(), "Holder", func(t *tx) error {
				if err := addUnits(testKey)(t); err != nil {
					return err
				}
				close(held)
				return keepBusy(t, release)
			})
		}()
		<-held
		begun := time.Now()
		err := o.write(t.Context(), "Waiter", addUnits(testKey))
		took := time.Since(begun)
		wantCode(t, "the waiter", err, flashsale.CodeUnavailable)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1s") || took > patience/2 {
			t.Fatalf("after %s: %v", took, err)
		}
		close(release)
		noError(t, "the holder", <-done)
		if got := skuTotal(t, slow, testKey); got != 101 {
			t.Fatalf("the total is %d", got)
		}
	})
}

// keepBusy runs statements until it is released: the server ends what stands still.
func keepBusy(t *tx, release <-chan struct{}) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-release:
			return nil
		case <-tick.C:
		}
		var one int
		if _, err := t.one("SELECT 1", nil, &one); err != nil {
			return err
		}
	}
}

// A caller that gives up in the middle leaves nothing, and no connection spoilt: not even the only one, which has all that is in memory.
func TestCallersThatGiveUp(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		for i := range 30 {
			ctx, cancel := context.WithCancel(t.Context())
			err := o.write(ctx, "Test", func(t *tx) error {
				if err := addUnits(testKey)(t); err != nil {
					return err
				}
				cancel()
				if i%2 == 0 {
					return nil // to the commit
				}
				_, err := t.exec("UPDATE sale_sku SET total = total + 1")
				return err
			})
			cancel()
			wantCode(t, "cancelled", err, flashsale.CodeUnavailable)
			ctx, cancel = context.WithCancel(t.Context())
			cancel()
			wantCode(t, "cancelled before", o.write(ctx, "Test", addUnits(testKey)), flashsale.CodeUnavailable)
		}
		if got := skuTotal(t, o, testKey); got != 100 {
			t.Fatalf("the total is %d", got)
		}
		noError(t, "write", o.write(t.Context(), "Test", addUnits(testKey)))
	})
}

func TestManyWriters(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 10 {
					if err := o.write(t.Context(), "Test", addUnits(testKey)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := skuTotal(t, o, testKey); got != 200 {
			t.Fatalf("the total is %d", got)
		}
	})
}

// The time that a transaction goes by is read once it has its lock, not when it began to wait.
func TestClockIsReadUnderTheLock(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		var mu sync.Mutex
		var last int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					err := o.write(t.Context(), "Test", func(x *tx) error {
						if err := addUnits(testKey)(x); err != nil {
							return err
						}
						mu.Lock() // in the order of the locks
						defer mu.Unlock()
						if x.now <= last {
							t.Errorf("at %d after %d", x.now, last)
						}
						last = x.now
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestLockOfNoRowReadsTheClock(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		err := o.write(t.Context(), "Test", func(x *tx) error {
			found, err := x.lock("SELECT fence FROM lease WHERE name = ?", []any{"none"}, new(int64))
			if found || x.now == 0 {
				return fmt.Errorf("found %v, now %d", found, x.now)
			}
			return err
		})
		noError(t, "lock", err)
	})
}
