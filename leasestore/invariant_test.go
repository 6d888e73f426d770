package leasestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

// world is a few instances with leases from one ledger, and what happens to them.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	ledger *ledger
	law    law
	// refunds: clients give back.
	refunds bool

	instances []*instance
	limits    []headgate.Limit // by key
}

type instance struct {
	line  *line
	store *leasestore.Store
}

func limitTexts() []string {
	return []string{
		"token_bucket 1000/s burst=200", "token_bucket 50/s burst=50", "token_bucket 3/1m burst=30", "fixed_window 300/1s", "fixed_window 40/100ms",
		"fixed_window 2000/hour", "sliding_window 500/1s cells=10", "sliding_window 100/1s", "sliding_window 60/2s cells=4", "fixed_window 5/10ms",
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 2)), ledger: newLedger(seed)}
	w.law = law{life: time.Second, steady: seed%3 != 0}
	w.refunds = seed%5 > 1
	if seed%2 == 0 {
		w.ledger.trouble = 0.2
	}
	for range 1 + w.rand.IntN(4) {
		w.instances = append(w.instances, w.instance())
	}
	texts := limitTexts()
	for range 3 {
		w.limits = append(w.limits, headgate.MustParseLimit(texts[w.rand.IntN(len(texts))]))
	}
	return w
}

func (w *world) instance() *instance {
	n := &line{ledger: w.ledger}
	return &instance{line: n, store: leasestore.New(n, leasestore.Config{Elapsed: w.ledger.elapsed})}
}

// client asks an instance for this and that.
type client struct {
	w      *world
	on     *instance
	rand   *rand.Rand
	limits []headgate.Limit
	kept   []kept
}

// kept is a take that may be given back.
type kept struct {
	charges []headgate.Charge
	d       headgate.Decision
}

func (w *world) client() *client {
	return &client{w: w, on: w.instances[w.rand.IntN(len(w.instances))], rand: rand.New(rand.NewPCG(w.rand.Uint64(), 3)), limits: w.limits}
}

func (c *client) charges() []headgate.Charge {
	keys := c.rand.Perm(len(c.limits))[:1+c.rand.IntN(2)*c.rand.IntN(len(c.limits))]
	charges := make([]headgate.Charge, len(keys))
	for i, k := range keys {
		charges[i] = headgate.One("s", strconv.Itoa(k), c.limits[k])
		switch c.rand.IntN(8) {
		case 0:
			charges[i].Cost = 1 + c.rand.Int64N(12)
		case 1:
			charges[i].Mode = headgate.Check
		case 2:
			charges[i].Mode, charges[i].Cost = headgate.Settle, 1+c.rand.Int64N(3)
		}
	}
	return charges
}

func (c *client) run(takes int, pace time.Duration) {
	for range takes {
		charges := c.charges()
		k := kept{charges: charges}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+c.rand.IntN(400))*time.Millisecond)
		begun := c.w.ledger.clock()
		err := c.on.store.Take(ctx, charges, &k.d)
		cancel()
		if err != nil && headgate.CodeOf(err) == "" {
			c.w.t.Errorf("not a typed error: %v", err)
		}
		if err == nil && k.d.Allowed {
			c.w.ledger.note(begun, charges, admitted, func(i int) int64 { return k.d.Outcomes[i].Receipt.Charged })
			if c.w.refunds && c.rand.IntN(5) == 0 {
				c.kept = append(c.kept, k)
			}
		}
		if len(c.kept) > 0 && c.rand.IntN(8) == 0 {
			c.undo()
		}
		if pace > 0 {
			time.Sleep(time.Duration(c.rand.Int64N(int64(2 * pace))))
		}
	}
}

// undo gives back one of the takes, or a part of it.
func (c *client) undo() {
	at := c.rand.IntN(len(c.kept))
	k := c.kept[at]
	c.kept = append(c.kept[:at], c.kept[at+1:]...)
	before := make([]int64, len(k.charges))
	for i := range k.charges {
		before[i] = k.d.Outcomes[i].Receipt.Charged
		k.charges[i].Limit = c.limits[k.charges[i].Key[0]-'0']
		if c.rand.IntN(3) == 0 {
			k.charges[i].Cost = c.rand.Int64N(k.charges[i].Cost + 1)
		}
	}
	// It counts from when it begins: from then on its units may be spent again.
	c.w.ledger.note(c.w.ledger.clock(), k.charges, undone, func(i int) int64 { return min(before[i], k.charges[i].Cost) })
	_ = c.on.store.Refund(context.Background(), k.charges, &k.d)
}

// check judges all accounts.
func (w *world) check() error {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for key, a := range w.ledger.accounts {
		if wrong := w.law.broken(a); wrong != "" {
			return fmt.Errorf("key %s: %s", key, wrong)
		}
	}
	return nil
}

// event lets something happen between two phases.
func (w *world) event() {
	switch w.rand.IntN(8) {
	case 0: // the processes were stopped
		w.ledger.pass([]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}[w.rand.IntN(3)])
	case 1:
		time.Sleep(time.Duration(w.rand.Int64N(int64(3 * time.Second))))
	case 2: // one crashes, another comes
		at := w.rand.IntN(len(w.instances))
		w.instances[at].line.crash()
		_ = w.instances[at].store.Close() // nothing of it arrives any more
		w.instances[at] = w.instance()
	case 3: // one ends in good order
		at := w.rand.IntN(len(w.instances))
		_ = w.instances[at].store.Close()
		w.instances[at] = w.instance()
	}
	if w.law.steady {
		return
	}
	switch w.rand.IntN(3) {
	case 0:
		w.ledger.step([]time.Duration{time.Hour, -time.Hour, 700 * time.Millisecond, -700 * time.Millisecond}[w.rand.IntN(4)])
	case 1:
		texts := limitTexts()
		w.limits[w.rand.IntN(len(w.limits))] = headgate.MustParseLimit(texts[w.rand.IntN(len(texts))])
	}
}

func (w *world) phase() {
	var wg sync.WaitGroup
	limits := append([]headgate.Limit(nil), w.limits...)
	for range 1 + w.rand.IntN(6) {
		c := w.client()
		c.limits = limits
		takes, pace := 20+w.rand.IntN(120), []time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond, 30 * time.Millisecond}[w.rand.IntN(4)]
		wg.Go(func() { c.run(takes, pace) })
	}
	wg.Wait()
}

func (w *world) live(phases int) error {
	defer w.end()
	for range phases {
		w.phase()
		if err := w.check(); err != nil {
			return err
		}
		w.event()
	}
	return nil
}

func (w *world) end() {
	for _, n := range w.instances {
		_ = n.store.Close()
	}
	_ = w.ledger.mem.Close()
}

// TestEverythingAdmittedWasCharged lives through random schedules: several instances, refunds, crashes, a store that is slow and
// fails before and after it ran, clocks that are set, limits that change. HEADGATE_LEASE_WORLDS is how many; a world that
// fails is named by its seed and comes again with HEADGATE_LEASE_SEED.
func TestEverythingAdmittedWasCharged(t *testing.T) {
	worlds, from := fromEnv("HEADGATE_LEASE_WORLDS", 60), fromEnv("HEADGATE_LEASE_SEED", 0)
	if from > 0 {
		worlds = 1
	} else {
		from = int(rand.Uint32() >> 2)
	}
	for i := range worlds {
		seed := uint64(from + i)
		var err error
		synctest.Test(t, func(t *testing.T) { err = newWorld(t, seed).live(8) })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func fromEnv(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}
