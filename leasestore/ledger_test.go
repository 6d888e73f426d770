package leasestore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// slowest is the longest that the ledger lets a call take.
const slowest = 300 * time.Millisecond

// ledger is an upstream that writes down what is charged and given back, and has faults: it is slow, it fails before a call ran
// or after, and its clock is set.
type ledger struct {
	mem   *memstore.Store
	began time.Time

	mu sync.Mutex
	// passed is how much time has passed at once, on all clocks; set is by how much the store's clock was set.
	passed, set time.Duration
	accounts    map[string]*account
	trouble     float64 // how often a call fails
	rand        *rand.Rand
}

// account is what became of one key: events in order of time.
type account struct {
	limit   headgate.Limit
	charged []event
	// returned is what was offered back, whether or not the store took it: it must not be spent.
	returned []event
	admitted []event
	// undone is what was admitted and given back by whoever had asked for it.
	undone []event
}

// event is a number of units at a moment, in true time and by the store's clock. Of an admission it is when the take returned, and
// begun when it began.
type event struct {
	at           time.Duration
	begun, store time.Time
	units        int64
}

func newLedger(seed uint64) *ledger {
	l := &ledger{began: time.Now(), accounts: map[string]*account{}, rand: rand.New(rand.NewPCG(seed, 1))}
	l.mem = memstore.New(memstore.Config{Now: l.clock})
	return l
}

// clock is the store's.
func (l *ledger) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clockLocked()
}

func (l *ledger) clockLocked() time.Time { return time.Now().Add(l.passed + l.set) }

// elapsed is the true time, by which the instances' leases die.
func (l *ledger) elapsed() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.elapsedLocked()
}

func (l *ledger) elapsedLocked() time.Duration { return time.Since(l.began) + l.passed }

// pass lets time pass at once, as for processes that were stopped.
func (l *ledger) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed += d
}

// step sets the store's clock.
func (l *ledger) step(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set += d
}

func (l *ledger) account(c *headgate.Charge) *account {
	a := l.accounts[c.Key]
	if a == nil {
		a = &account{limit: c.Limit}
		l.accounts[c.Key] = a
	}
	return a
}

// note writes events down: units of each charge of what began at a time of the store.
func (l *ledger) note(begun time.Time, charges []headgate.Charge, list func(*account) *[]event, units func(i int) int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range charges {
		if n := units(i); n > 0 {
			events := list(l.account(&charges[i]))
			*events = append(*events, event{l.elapsedLocked(), begun, l.clockLocked(), n})
		}
	}
}

func charged(a *account) *[]event  { return &a.charged }
func returned(a *account) *[]event { return &a.returned }
func admitted(a *account) *[]event { return &a.admitted }
func undone(a *account) *[]event   { return &a.undone }

// fault draws what goes wrong with a call: it fails before it runs, or after.
func (l *ledger) fault() (wait time.Duration, before, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = time.Duration(l.rand.Int64N(int64(3 * time.Millisecond)))
	if l.rand.IntN(20) == 0 {
		wait = time.Duration(l.rand.Int64N(int64(slowest / 2)))
	}
	f := l.rand.Float64()
	return wait, f < l.trouble/2, f >= l.trouble/2 && f < l.trouble
}

// line is an instance's connection to the ledger, which can be cut for good.
type line struct {
	*ledger
	mu  sync.Mutex
	cut bool
}

func (n *line) down() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

func (n *line) crash() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = true
}

var (
	errDown = &headgate.Error{Code: headgate.CodeUnavailable, Charge: -1, Message: "down"}
	errLost = &headgate.Error{Code: headgate.CodeIndeterminate, Charge: -1, Message: "no answer"}
)

// call runs one call with what goes wrong.
func (n *line) call(ctx context.Context, do func() error) error {
	wait, before, after := n.fault()
	if sleep(ctx, wait) != nil || before || n.down() {
		return errDown
	}
	if err := do(); err != nil {
		return err
	}
	if wait, _, _ = n.fault(); sleep(ctx, wait) != nil || after || n.down() {
		return errLost
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *line) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	err := n.call(ctx, func() error {
		if err := n.mem.Take(context.Background(), charges, d); err != nil {
			return err
		}
		n.note(n.clock(), charges, charged, func(i int) int64 { return d.Outcomes[i].Receipt.Charged })
		return nil
	})
	if err != nil {
		d.Reset(0)
	}
	return err
}

func (n *line) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	n.note(n.clock(), charges, returned, func(i int) int64 { return min(charges[i].Cost, d.Outcomes[i].Receipt.Charged) })
	return n.call(ctx, func() error { return n.mem.Refund(context.Background(), charges, d) })
}

func (n *line) Reset(ctx context.Context, slot, key string) error { return n.mem.Reset(ctx, slot, key) }
