package sqlorders

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// shop is an open sale on a database whose clock the test sets.
type shop struct {
	*testing.T
	o   *Orders
	now *atomic.Int64 // microseconds
}

var otherKey = flashsale.Key{Sale: "sale", SKU: "other"}

// eachShop runs a test on every database, with a sale of "sku" (100 units, a purchase limit of 2, 19900 each) and "other" (10 units), both
// open in epoch 1: a hold of 15 min, a time to pay of 5 min, a grace of 10 s.
func eachShop(t *testing.T, f func(s *shop)) {
	t.Helper()
	for name := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(openShop(t, name, Config{}))
		})
	}
}

// heavyDBs are those for what takes long: "memory" is "sqlite" in another place.
var heavyDBs = []string{"sqlite", "postgres", "mariadb"}

func openShop(t *testing.T, name string, cfg Config) *shop {
	t.Helper()
	s := newShop(t, name, cfg)
	t.Cleanup(func() { s.checkBooks() })
	return s
}

// newShop is a shop whose books are not checked at the end.
func newShop(t *testing.T, name string, cfg Config) *shop {
	t.Helper()
	s := &shop{T: t, now: &atomic.Int64{}}
	s.now.Store(time.Date(2030, 1, 2, 10, 0, 0, 0, time.UTC).UnixMicro())
	cfg.URL, cfg.Timeout, cfg.MaxConns = urls[name](t), patience, max(cfg.MaxConns, 8)
	cfg.Now = func() time.Time { return time.UnixMicro(s.now.Load()) }
	s.o = mustOpen(t, cfg)
	createSale(t, s.o)
	mustExec(t, s.o, "UPDATE sale_sku SET status = 'open', rebuilding = 0")
	return s
}

func (s *shop) pass(d time.Duration) { s.now.Add(d.Microseconds()) }

func (s *shop) at() time.Time { return time.UnixMicro(s.now.Load()).UTC() }

// jobs are n jobs of one unit each, of users of their own.
func jobs(prefix string, n int) []flashsale.Job {
	all := make([]flashsale.Job, n)
	for i := range all {
		all[i] = job(fmt.Sprintf("%s%d", prefix, i), fmt.Sprintf("user of %s%d", prefix, i), 1)
		all[i].Seq = int64(i + 1)
	}
	return all
}

func job(rid, user string, quantity int64) flashsale.Job {
	return flashsale.Job{ID: "job of " + rid, RID: rid, User: user, Quantity: quantity}
}

func (s *shop) decide(of ...flashsale.Job) []flashsale.Decided {
	s.Helper()
	decided, err := s.o.Decide(s.Context(), &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: of})
	noError(s.T, "Decide", err)
	return decided
}

// reserve has a unit reserved for a user of its own.
func (s *shop) reserve(rid string) *flashsale.Reservation {
	s.Helper()
	if d := s.decide(job(rid, "user of "+rid, 1)); d[0].State != flashsale.Reserved {
		s.Fatalf("%s was not reserved: %+v", rid, d[0])
	}
	return s.reservation(rid)
}

func (s *shop) reservation(rid string) *flashsale.Reservation {
	s.Helper()
	r, err := s.o.Reservation(s.Context(), rid)
	noError(s.T, "Reservation", err)
	return r
}

func (s *shop) payment(key string) *flashsale.Payment {
	s.Helper()
	p, err := s.o.Payment(s.Context(), key)
	noError(s.T, "Payment", err)
	return p
}

// begin has a reservation of reserve be paid.
func (s *shop) begin(rid string) *flashsale.Payment {
	s.Helper()
	p, _, err := s.o.BeginPayment(s.Context(), rid, "user of "+rid)
	noError(s.T, "BeginPayment", err)
	return p
}

func (s *shop) outcome(key string, status flashsale.PayStatus) *flashsale.PaymentOutcome {
	s.Helper()
	p := s.payment(key)
	out, err := s.o.Outcome(s.Context(), "", &flashsale.ProviderPayment{IntentKey: key, Status: status, Amount: p.Amount, Currency: p.Currency})
	noError(s.T, "Outcome "+string(status), err)
	return out
}

// is fails unless a reservation and what SQL says beside it are as they are wanted.
func (s *shop) is(rid string, want flashsale.State, version int64) {
	s.Helper()
	if r := s.reservation(rid); r.State != want || r.Version != version {
		s.Fatalf("reservation %s is %s at version %d, want %s at %d", rid, r.State, r.Version, want, version)
	}
}

// units are what the counters of a sku say.
func (s *shop) units(key flashsale.Key, reserved, sold int64) {
	s.Helper()
	k, err := s.o.SKU(s.Context(), key)
	noError(s.T, "SKU", err)
	if k.Reserved != reserved || k.Sold != sold {
		s.Fatalf("%s has %d reserved and %d sold, want %d and %d", key, k.Reserved, k.Sold, reserved, sold)
	}
}

// paymentIs fails unless a payment is in a state, applied to a reservation or to none.
func (s *shop) paymentIs(key string, want flashsale.PaymentState, appliedTo, reason string) {
	s.Helper()
	if p := s.payment(key); p.State != want || p.AppliedTo != appliedTo || p.Reason != reason {
		s.Fatalf("payment %s is %s, applied to %q, reason %q; want %s, %q, %q", key, p.State, p.AppliedTo, p.Reason, want, appliedTo, reason)
	}
}
