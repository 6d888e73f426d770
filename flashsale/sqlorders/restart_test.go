package sqlorders

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/testservers"
)

// server is what the tests need of a server of their own.
type server interface {
	Database(tb testservers.TB) string
	Kill()
	Stop() error
	Restart() error
}

func eachServer(t *testing.T, f func(t *testing.T, s server)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) server{
		"postgres": func(t *testing.T) server { return testservers.Postgres(t, testservers.DurableData()) },
		"mariadb":  func(t *testing.T) server { return testservers.MariaDB(t, testservers.DurableData()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, start(t))
		})
	}
}

func TestDurableServers(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s server) {
		noError(t, "Durable", mustOpen(t, Config{URL: s.Database(t)}).Durable(t.Context()))
	})
}

func TestServerThatGoesAndComesBack(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s server) {
		o := mustOpen(t, Config{URL: s.Database(t), Timeout: 20 * time.Second})
		createSale(t, o)
		for i, end := range []func() error{s.Stop, func() error { s.Kill(); return nil }} {
			noError(t, "end", end())
			// A killed PostgreSQL has children that live a moment longer.
			noError(t, "read", pollUntil(t, func() (bool, error) {
				_, err := o.SKU(t.Context(), testKey)
				if err == nil {
					return false, nil
				}
				wantCode(t, "read", err, flashsale.CodeUnavailable)
				return true, nil
			}))
			_, err := o.BeginOperation(t.Context(), topUp("op", 1))
			wantCode(t, "write", err, flashsale.CodeUnavailable)
			wantCode(t, "snapshot", o.Snapshot(t.Context(), testKey, 1, nil), flashsale.CodeUnavailable)
			noError(t, "Restart", s.Restart())
			// The pool may still have connections to the server that was: the first calls may meet them.
			var op *flashsale.Operation
			noError(t, "write", pollUntil(t, func() (bool, error) {
				op, err = o.BeginOperation(t.Context(), topUp(fmt.Sprintf("op%d", i), 1))
				if flashsale.CodeOf(err) == flashsale.CodeUnavailable {
					return false, nil
				}
				return err == nil, err
			}))
			if op.State != flashsale.OpCommitted {
				t.Fatalf("got %+v", op)
			}
			totalIs(t, o, int64(101+i))
		}
	})
}

// While the server is killed again and again, whoever got an answer finds what it said, and whoever got none repeats the call and has it once.
func TestKilledServerHasWhatItCommitted(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s server) {
		const writers, kills = 4, 3
		o := mustOpen(t, Config{URL: s.Database(t), Timeout: 5 * time.Second})
		createSale(t, o)
		var committed, unknown atomic.Int64
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if !repeat(t, o, topUp(fmt.Sprintf("w%d.%d", w, i), 1), &unknown) {
						return
					}
					committed.Add(1)
				}
			})
		}
		for range kills {
			before := committed.Load()
			noError(t, "some commits", pollUntil(t, func() (bool, error) { return committed.Load() > before+20 || t.Failed(), nil }))
			s.Kill()
			noError(t, "Restart", s.Restart())
		}
		close(stop)
		wg.Wait()
		totalIs(t, o, 100+committed.Load())
		ops, _, err := o.OpenOperations(t.Context(), "", maxPage)
		noError(t, "OpenOperations", err)
		if int64(len(ops)) != committed.Load() {
			t.Fatalf("%d operations, want %d", len(ops), committed.Load())
		}
		if unknown.Load() == 0 {
			t.Fatal("no call met a server that was killed")
		}
	})
}

// repeat begins an operation until there is an answer, and reports whether it is a good one.
func repeat(t *testing.T, o *Orders, op *flashsale.Operation, unknown *atomic.Int64) bool {
	t.Helper()
	err := pollUntil(t, func() (bool, error) {
		_, err := o.BeginOperation(t.Context(), op)
		if flashsale.CodeOf(err) == flashsale.CodeUnavailable {
			unknown.Add(1)
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Errorf("%s: %v", op.ID, err)
	}
	return err == nil
}
