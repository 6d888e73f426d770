package sqlorders

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const racers = 16

// race has many goroutines do a thing at the same time, and returns how often f has reported true.
func (s *shop) race(n int, f func(i int) (bool, error)) int {
	s.Helper()
	var wg sync.WaitGroup
	var yes atomic.Int64
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			did, err := f(i)
			if err != nil {
				s.Errorf("racer %d: %v", i, err)
			}
			if did {
				yes.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(yes.Load())
}

// once fails unless of many that do the same at the same time exactly one has done it.
func (s *shop) once(what string, f func(ctx context.Context) ([]flashsale.Decided, error)) {
	s.Helper()
	n := s.race(racers, func(int) (bool, error) {
		decided, err := f(s.Context())
		return len(decided) > 0 && decided[0].Outbox != 0, err
	})
	if n != 1 {
		s.Errorf("%s: %d of %d calls did it, want 1", what, n, racers)
	}
}

func one(d flashsale.Decided, err error) ([]flashsale.Decided, error) {
	return []flashsale.Decided{d}, err
}

func decidedOf(out *flashsale.PaymentOutcome, err error) ([]flashsale.Decided, error) {
	if err != nil {
		return nil, err
	}
	return out.Decided, nil
}

// TestEverythingOnce: sixteen of the same call at the same time are one.
func TestEverythingOnce(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.once("Decide", func(ctx context.Context) ([]flashsale.Decided, error) {
			return s.o.Decide(ctx, &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: jobs("r", 20)})
		})
		s.once("Tombstone", func(ctx context.Context) ([]flashsale.Decided, error) {
			return s.o.Tombstone(ctx, testKey, []flashsale.Entry{{RID: "t", User: "t", Quantity: 1}})
		})
		s.once("Cancel", func(ctx context.Context) ([]flashsale.Decided, error) {
			return one(s.o.Cancel(ctx, "r0", "user of r0", ""))
		})
		s.once("BeginPayment", func(ctx context.Context) ([]flashsale.Decided, error) {
			p, d, err := s.o.BeginPayment(ctx, "r1", "user of r1")
			if err == nil && p.IntentKey != "r1:1" {
				err = fmt.Errorf("the intent is %s", p.IntentKey)
			}
			return one(d, err)
		})
		s.once("Outcome, an event", func(ctx context.Context) ([]flashsale.Decided, error) {
			return decidedOf(s.o.Outcome(ctx, "e", &flashsale.ProviderPayment{IntentKey: "r1:1", Status: flashsale.PayFailed}))
		})
		s.begin("r1")
		s.once("Outcome, polls", func(ctx context.Context) ([]flashsale.Decided, error) {
			return decidedOf(s.o.Outcome(ctx, "", &flashsale.ProviderPayment{IntentKey: "r1:2", Status: flashsale.PayCaptured, Amount: 199_00, Currency: "CNY"}))
		})
		key := s.loose("again")
		s.decide(s.derived(key, "user of again"))
		s.once("ApplyCapture", func(ctx context.Context) ([]flashsale.Decided, error) { return decidedOf(s.o.ApplyCapture(ctx, key)) })
		gone := s.loose("gone")
		s.once("RefuseCapture", func(ctx context.Context) ([]flashsale.Decided, error) {
			return decidedOf(s.o.RefuseCapture(ctx, gone, "x"))
		})
		if n := s.race(racers, func(int) (bool, error) { err := s.o.Refunded(s.Context(), gone); return err == nil, err }); n != racers {
			t.Errorf("Refunded: %d of %d", n, racers)
		}
		s.pass(16 * time.Minute)
		s.once("Expire", func(ctx context.Context) ([]flashsale.Decided, error) { return one(s.o.Expire(ctx, "r2")) })
	})
}

// TestOneUserAtOnce is I6: many reservations of one user at the same time, in batches of their own.
func TestOneUserAtOnce(t *testing.T) {
	eachShop(t, func(s *shop) {
		n := s.race(100, func(i int) (bool, error) {
			d, err := s.o.Decide(s.Context(), &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: []flashsale.Job{job(fmt.Sprintf("r%d", i), "one", 1)}})
			return err == nil && d[0].State == flashsale.Reserved, err
		})
		if n != 2 {
			t.Errorf("%d were reserved, want 2", n)
		}
		s.units(testKey, 2, 0)
	})
}

// TestSoldOnceAtOnce is I1: more shoppers than units, in overlapping batches.
func TestSoldOnceAtOnce(t *testing.T) {
	eachShop(t, func(s *shop) {
		all := jobs("r", 160)
		var reserved atomic.Int64
		s.race(racers, func(i int) (bool, error) {
			d, err := s.o.Decide(s.Context(), &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: append(all[i*10:], all[:i*10]...)[:30]})
			for _, d := range d {
				if d.State == flashsale.Reserved && !d.Replayed {
					reserved.Add(1)
				}
			}
			return true, err
		})
		if n := reserved.Load(); n != 100 {
			t.Errorf("%d were reserved, want 100", n)
		}
		s.units(testKey, 100, 0)
	})
}

// TestEndsRace lets every way out of a reservation run against every other: one of them wins.
func TestEndsRace(t *testing.T) {
	eachShop(t, func(s *shop) {
		all := jobs("r", 12)
		s.decide(all...)
		s.pass(15*time.Minute + 10*time.Second)
		for i := range all {
			rid := all[i].RID
			mustExec(t, s.o, "UPDATE reservation SET until_at = ? WHERE rid = ?", s.at().Add(-10*time.Second+time.Duration(i%2)*time.Hour).UnixMicro(), rid)
			ends := []func() error{
				func() error { _, err := s.o.Cancel(s.Context(), rid, "", ""); return err },
				func() error { _, err := s.o.Expire(s.Context(), rid); return err },
				func() error { _, _, err := s.o.BeginPayment(s.Context(), rid, "user of "+rid); return err },
				func() error {
					_, err := s.o.Outcome(s.Context(), "", &flashsale.ProviderPayment{IntentKey: rid + ":1", Status: flashsale.PayCaptured, Amount: 199_00, Currency: "CNY"})
					return err
				},
				func() error {
					_, err := s.o.Outcome(s.Context(), "", &flashsale.ProviderPayment{IntentKey: rid + ":1", Status: flashsale.PayVoid})
					return err
				},
			}
			s.race(2*len(ends), func(i int) (bool, error) {
				err := ends[i%len(ends)]()
				switch flashsale.CodeOf(err) {
				case flashsale.CodeInvalidState, flashsale.CodePastDeadline, flashsale.CodeUnknownPayment:
					return false, nil
				}
				return err == nil, err
			})
		}
	})
}

// TestNoDeadlocks runs everything against everything on two skus of one sale: transactions may wait for each other, and never in a ring.
func TestNoDeadlocks(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} { // SQLite has one writer
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, name, Config{MaxConns: racers, Retried: func(method string, tries int, why error) {
				t.Errorf("%s was in the way of another, try %d: %v", method, tries, why)
			}})
			s.race(racers, func(i int) (bool, error) {
				for n := range 15 {
					if err := s.bustle(i, n); err != nil {
						return false, err
					}
				}
				return true, nil
			})
			s.o.noDeadlocks(t)
		})
	}
}

// bustle is one step of racer i: a few of all calls, on what others work on too.
func (s *shop) bustle(i, n int) error {
	ctx, key := s.Context(), testKey
	if (i+n)%2 == 0 {
		key = otherKey
	}
	rid := func(k int) string { return fmt.Sprintf("%s-%d-%d", key.SKU, (i+k)%4, n) }
	user := fmt.Sprintf("user %d", n%7)
	var batch []flashsale.Job
	for k := range 4 {
		batch = append(batch, job(rid(k), user, 1))
	}
	decided, err := s.o.Decide(ctx, &flashsale.Batch{Key: key, Epoch: 1, Jobs: batch})
	if err != nil {
		return err
	}
	var ids []int64
	for _, d := range decided {
		ids = append(ids, d.Outbox)
	}
	if _, err := s.o.Tombstone(ctx, key, []flashsale.Entry{{RID: rid(0) + "t", User: user, Quantity: 1}}); err != nil {
		return err
	}
	it := rid(n % 4)
	said := func(status flashsale.PayStatus) func() error {
		return func() error {
			_, err := s.o.Outcome(ctx, fmt.Sprintf("%s %s", it, status), &flashsale.ProviderPayment{IntentKey: it + ":1", Status: status, Amount: s.reservation(it).Amount, Currency: "CNY"})
			return err
		}
	}
	steps := []func() error{
		func() error { _, _, err := s.o.BeginPayment(ctx, it, user); return err },
		func() error { return s.o.Sent(ctx, flashsale.LaneStock, 1, ids) },
		said(flashsale.PayFailed),
		func() error { _, err := s.o.Cancel(ctx, rid(n+1), user, ""); return err },
		said(flashsale.PayCaptured),
		func() error { _, err := s.o.Expire(ctx, it); return err },
		func() error { return s.o.Sent(ctx, flashsale.LaneRelay, 1, ids) },
		func() error { _, err := s.o.Unsent(ctx, flashsale.LaneStock, 0, 0, 20); return err },
	}
	for _, step := range steps {
		switch err := step(); flashsale.CodeOf(err) {
		case flashsale.CodeInvalidState, flashsale.CodePastDeadline, flashsale.CodeUnknownPayment:
		default:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// noDeadlocks asks the server. MariaDB counts for all databases together; there it is what Retried is told that counts.
func (o *Orders) noDeadlocks(t *testing.T) {
	t.Helper()
	if !o.d.arrays {
		return
	}
	var n int64
	if err := o.db.QueryRowContext(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil || n != 0 {
		t.Errorf("the server has seen %d deadlocks (%v)", n, err)
	}
}
