package leasestore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"pgregory.net/rapid"
)

// denyWorld is a random life of a deny cache and its store.
type denyWorld struct {
	*denyRig
	rt *rapid.T
	// twin, if not nil, is a store that is asked for everything and has no cache.
	twin  *memstore.Store
	slots []denySlot
	paid  []denyPaid
	// freed tells until when the cache may deny a key wrongly: something happened to it that the cache could not see.
	freed map[[2]string]time.Time
	// unwritten are the keys whose limit has changed and that no take has come for that writes it: until then the store answers by
	// what the state would be if the limit had changed at that moment, and a check is told another time every time.
	unwritten map[[2]string]bool

	waits []time.Time
	last  []headgate.Charge
	lines []string
}

type denySlot struct {
	name    string
	limit   headgate.Limit
	lockout *headgate.Lockout
}

type denyPaid struct {
	charges []headgate.Charge
	d, twin headgate.Decision
}

var denyLimits = []string{
	"token_bucket 1/1s burst=3", "token_bucket 2/3s burst=2", "token_bucket 0/1s", "fixed_window 3/5s", "fixed_window 2/1m", "sliding_log 3/4s",
	"sliding_window 4/6s cells=3", "sliding_window 2/7s", "leaky_bucket 1/1s capacity=2", "leaky_bucket 1/2s max_wait=3s", "concurrency 2 ttl=5s",
}

func drawDenyLimit(t *rapid.T) headgate.Limit {
	return headgate.MustParseLimit(rapid.SampledFrom(denyLimits).Draw(t, "limit"))
}

func newDenyWorld(t *testing.T, rt *rapid.T, twin bool) *denyWorld {
	w := &denyWorld{rt: rt, freed: map[[2]string]time.Time{}, unwritten: map[[2]string]bool{}}
	w.denyRig = newDenyRig(t, leasestore.DenyConfig{MaxKeys: rapid.SampledFrom([]int{2, 6, 100}).Draw(rt, "max"), MaxAge: 20 * time.Second})
	if twin {
		w.twin = memstore.New(memstore.Config{Now: func() time.Time { return w.now }, SweepInterval: -1})
		t.Cleanup(func() { _ = w.twin.Close() })
	}
	for i := range rapid.IntRange(1, 3).Draw(rt, "slots") {
		s := denySlot{name: fmt.Sprint("s", i), limit: drawDenyLimit(rt)}
		if rapid.IntRange(0, 2).Draw(rt, "locks") == 2 {
			s.lockout = &headgate.Lockout{
				After: rapid.Int64Range(1, 4).Draw(rt, "after"), Within: 10 * time.Second,
				For: time.Duration(rapid.IntRange(1, 8).Draw(rt, "for")) * time.Second, Max: 10 * time.Second,
			}
		}
		w.slots = append(w.slots, s)
		w.log("%s is %s, lockout %+v", s.name, s.limit, s.lockout)
	}
	return w
}

func (w *denyWorld) log(format string, args ...any) {
	w.lines = append(w.lines, w.now.Format("04:05.000000 ")+fmt.Sprintf(format, args...))
}

func (w *denyWorld) fail(format string, args ...any) {
	w.rt.Helper()
	w.rt.Fatalf("%s after\n\t%s", fmt.Sprintf(format, args...), strings.Join(w.lines, "\n\t"))
}

func (w *denyWorld) slot() *denySlot {
	return &w.slots[rapid.IntRange(0, len(w.slots)-1).Draw(w.rt, "slot")]
}

func (w *denyWorld) key() string { return rapid.SampledFrom([]string{"a", "b"}).Draw(w.rt, "key") }

// move lets time pass: often to where an answer changes.
func (w *denyWorld) move() {
	by := rapid.SampledFrom([]time.Duration{0, 0, us, time.Millisecond, 100 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second, 30 * time.Second}).Draw(w.rt, "by")
	if len(w.waits) > 0 && rapid.IntRange(0, 3).Draw(w.rt, "to a change") == 3 {
		at := rapid.SampledFrom(w.waits).Draw(w.rt, "change").Add(rapid.SampledFrom([]time.Duration{-2 * us, -us, 0}).Draw(w.rt, "near"))
		by = max(0, at.Sub(w.now))
	}
	w.now = w.now.Add(by)
}

func (w *denyWorld) draw() (charges []headgate.Charge) {
	modes := []headgate.Mode{headgate.Pay, headgate.Pay, headgate.Pay, headgate.Check, headgate.Settle, headgate.Shadow}
	for i := range w.slots {
		if len(w.slots) > 1 && rapid.Bool().Draw(w.rt, "without") {
			continue
		}
		s := &w.slots[i]
		c := headgate.Charge{Slot: s.name, Key: w.key(), Limit: s.limit, Lockout: s.lockout, Mode: rapid.SampledFrom(modes).Draw(w.rt, "mode")}
		c.Cost = rapid.SampledFrom([]int64{1, 1, 1, 2, 2, 3, 4, 0}).Draw(w.rt, "cost")
		if _, ok := c.Limit.(headgate.Concurrency); ok {
			c.Cost, c.Holder = min(c.Cost, 1), rapid.SampledFrom([]string{"A", "B", "C"}).Draw(w.rt, "holder")
		}
		if rapid.IntRange(0, 9).Draw(w.rt, "plain") == 0 {
			c.Lockout = nil
		}
		charges = append(charges, c)
	}
	return charges
}

// ask takes through the cache, and checks what is denied without a call against the store.
func (w *denyWorld) ask() {
	charges := w.last
	if len(charges) == 0 || rapid.IntRange(0, 2).Draw(w.rt, "anew") == 0 {
		charges = w.draw()
	}
	w.last = charges
	d, asked := w.take(charges...)
	w.log("take %s -> %+v, asked: %v", showCharges(charges), d, asked)
	p := denyPaid{charges: charges, d: d}
	if asked {
		w.written(charges)
	} else {
		w.justified(charges, &d)
	}
	if w.twin != nil {
		if err := w.twin.Take(context.Background(), charges, &p.twin); err != nil {
			w.fail("the twin: %v", err)
		}
		if p.twin.Allowed != d.Allowed {
			w.fail("a store alone answers %+v", p.twin)
		}
	}
	for i := range d.Outcomes {
		if r := d.Outcomes[i].RetryAfter; r.State == headgate.RetryAfter && r.After > 0 {
			w.waits = append(w.waits[max(0, len(w.waits)-7):], w.now.Add(r.After))
		}
	}
	if d.Allowed && len(charges) > 0 {
		w.paid = append(w.paid, p)
	}
}

// written notes which keys a take that has reached the store has written.
func (w *denyWorld) written(charges []headgate.Charge) {
	for _, c := range charges {
		if c.Cost > 0 && (c.Mode == headgate.Pay || c.Mode == headgate.Settle) {
			delete(w.unwritten, [2]string{c.Slot, c.Key})
		}
	}
}

// justified checks a denial without a call: the store would deny each of the charges that the cache has denied, for the same
// reason and no shorter, and has no lockout that waits for denials.
func (w *denyWorld) justified(charges []headgate.Charge, d *headgate.Decision) {
	binding := headgate.Decision{Outcomes: d.Outcomes}
	if binding.Conclude(charges); d.Allowed || binding.Binding != d.Binding || binding.Allowed {
		w.fail("the cache binds %d", d.Binding)
	}
	for i, c := range charges {
		id := [2]string{c.Slot, c.Key}
		free := w.now.Before(w.freed[id]) || w.unwritten[id]
		in, _ := w.store.Inspect(context.Background(), c.Slot, c.Key)
		shut := in.LockedUntil.After(w.now)
		if c.Lockout != nil && c.Mode != headgate.Settle && c.Cost > 0 && !shut && !free {
			w.fail("charge %d has a lockout that is not shut", i)
		}
		o := d.Outcomes[i]
		if o.Allowed {
			continue
		}
		c.Mode = headgate.Check // denied or not, and changes nothing
		if free {
			continue
		}
		truth, err := headgate.Take(context.Background(), w.store, c)
		if err != nil {
			w.fail("the store: %v", err)
		}
		switch t := truth.Outcomes[0]; {
		case t.Allowed:
			w.fail("the store would allow charge %d: %+v", i, t)
		case (t.Reason == headgate.ReasonLockedOut) != (o.Reason == headgate.ReasonLockedOut):
			w.fail("the store would deny charge %d with %s", i, t.Reason)
		case t.RetryAfter.State == headgate.RetryAfter && (o.RetryAfter.State != headgate.RetryAfter || o.RetryAfter.After > t.RetryAfter.After):
			w.fail("the store would deny charge %d for %s", i, t.RetryAfter)
		}
	}
}

func showCharges(charges []headgate.Charge) string {
	var b strings.Builder
	for _, c := range charges {
		fmt.Fprintf(&b, "[%s %s/%s %d %s lockout=%v]", c.Mode, c.Slot, c.Key, c.Cost, c.Limit, c.Lockout != nil)
	}
	return b.String()
}

// free notes that a key may have become free unseen.
func (w *denyWorld) free(slot, key string) {
	w.freed[[2]string{slot, key}] = w.now.Add(20 * time.Second)
}

// giveBack refunds the last take of those that are left, through the cache or elsewhere.
func (w *denyWorld) giveBack(here bool) {
	if len(w.paid) == 0 {
		return
	}
	p := w.paid[len(w.paid)-1]
	w.paid = w.paid[:len(w.paid)-1]
	w.log("refund %s, here: %v", showCharges(p.charges), here)
	var limiter headgate.Refunder = w.cache
	if !here {
		limiter = w.store
		for _, c := range p.charges {
			w.free(c.Slot, c.Key)
		}
	}
	if err := limiter.Refund(context.Background(), p.charges, &p.d); err != nil {
		w.fail("refund: %v", err)
	}
	if w.twin != nil {
		_ = w.twin.Refund(context.Background(), p.charges, &p.twin)
	}
}

func (w *denyWorld) reset(here bool) {
	slot, key := w.slot().name, w.key()
	w.log("reset %s/%s, here: %v", slot, key, here)
	var limiter headgate.Resetter = w.cache
	if !here {
		limiter = w.store
		w.free(slot, key)
	}
	if err := limiter.Reset(context.Background(), slot, key); err != nil {
		w.fail("reset: %v", err)
	}
	if w.twin != nil {
		_ = w.twin.Reset(context.Background(), slot, key)
	}
}

// elsewhere is what another instance does, or the broadcast that comes of it.
func (w *denyWorld) elsewhere() {
	switch rapid.IntRange(0, 3).Draw(w.rt, "what elsewhere") {
	case 0:
		w.giveBack(false)
	case 1:
		w.reset(false)
	case 2:
		charges := w.draw()
		d, _ := headgate.Take(context.Background(), w.store, charges...)
		w.written(charges)
		w.log("elsewhere take %s -> %+v", showCharges(charges), d)
	case 3:
		slot, key := w.slot().name, w.key()
		w.log("forget %s/%s", slot, key)
		w.cache.Forget(slot, key)
		delete(w.freed, [2]string{slot, key})
	}
}

func (w *denyWorld) change() {
	s := w.slot()
	s.limit = drawDenyLimit(w.rt)
	w.last = nil
	w.unwritten[[2]string{s.name, "a"}], w.unwritten[[2]string{s.name, "b"}] = true, true
	w.log("%s becomes %s", s.name, s.limit)
	w.cache.ForgetAll() // as a change of the policy does
}

// manyTraces runs five times as many traces as rapid does by default: most of them are short of something.
func manyTraces(t *testing.T, trace func(*rapid.T)) {
	t.Helper()
	for range 5 {
		rapid.Check(t, trace)
	}
}

// TestDenyIsJustified: whatever happens here and elsewhere, a denial without a call is one that the store would give at that
// moment, but for keys that became free elsewhere.
func TestDenyIsJustified(t *testing.T) {
	t.Parallel()
	hits := uint64(0)
	manyTraces(t, func(rt *rapid.T) {
		w := newDenyWorld(t, rt, false)
		for range rapid.IntRange(30, 80).Draw(rt, "steps") {
			w.move()
			switch rapid.IntRange(0, 11).Draw(rt, "what") {
			case 11:
				w.giveBack(true)
			case 10:
				w.reset(true)
			case 9:
				w.elsewhere()
			case 8:
				w.change()
			default:
				w.ask()
			}
		}
		hits += w.cache.Stats().Hits
	})
	if hits < 500 {
		t.Errorf("only %d denials without a call were judged", hits)
	}
}

// TestDenyIsUnseen: a store behind the cache and one without it, asked for the same, allow the same, and shut the same keys until
// the same times.
func TestDenyIsUnseen(t *testing.T) {
	t.Parallel()
	hits, shut := uint64(0), 0
	manyTraces(t, func(rt *rapid.T) {
		w := newDenyWorld(t, rt, true)
		for range rapid.IntRange(30, 80).Draw(rt, "steps") {
			w.move()
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 9:
				w.giveBack(true)
			case 8:
				w.reset(true)
			default:
				w.ask()
			}
			for _, s := range w.slots {
				for _, key := range []string{"a", "b"} {
					a, _ := w.store.Inspect(context.Background(), s.name, key)
					b, _ := w.twin.Inspect(context.Background(), s.name, key)
					if !a.LockedUntil.Equal(b.LockedUntil) || a.Used != b.Used {
						w.fail("the state of %s/%s is %+v, and without the cache %+v", s.name, key, a, b)
					}
					if !a.LockedUntil.IsZero() {
						shut++
					}
				}
			}
		}
		hits += w.cache.Stats().Hits
	})
	if hits < 500 || shut < 500 {
		t.Errorf("only %d denials without a call and %d shut keys were judged", hits, shut)
	}
}
