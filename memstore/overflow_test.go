package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// crowded returns a store without a sweeper whose slot "s" is full: it has room for one key, "resident".
func crowded(t *testing.T, l headgate.Limit) *Store {
	t.Helper()
	s := newStore(t, Config{MaxKeys: 100, MaxKeysPerSlot: 1, SweepInterval: -1})
	c := headgate.One("s", "resident", l)
	c.Holder = "resident"
	take(t, s.At(noon), c)
	return s
}

// TestAPeekBesideAChargeOpensNoSecondState: what a key may spend while it shares is the same, whatever is looked at beside it.
func TestAPeekBesideAChargeOpensNoSecondState(t *testing.T) {
	l := headgate.MustParseLimit("token_bucket 1/1h burst=2")
	at := crowded(t, l).At(noon)
	peek, pay := headgate.Charge{Slot: "s", Key: "a", Limit: l}, headgate.One("s", "b", l)
	allowed := 0
	for range 4 {
		if take(t, at, pay).Allowed {
			allowed++
		}
		if take(t, at, peek, pay).Allowed {
			allowed++
		}
	}
	if allowed != 2 {
		t.Errorf("%d allowed, want 2", allowed)
	}
}

func TestNewKeysShareOneStateWhenTheSlotIsFull(t *testing.T) {
	l := headgate.MustParseLimit("token_bucket 1/1h burst=2")
	s := crowded(t, l)
	at := s.At(noon)
	for i, want := range []bool{true, true, false, false} {
		if d := take(t, at, headgate.One("s", fmt.Sprint("new", i), l)); d.Allowed != want {
			t.Errorf("new key %d: allowed is %t, want %t", i, d.Allowed, want)
		}
	}
	if d := take(t, at, headgate.Charge{Slot: "s", Key: "peeking", Limit: l}); d.Outcomes[0].Remaining != 0 {
		t.Errorf("a peek at a new key: %d remain, want what it would share", d.Outcomes[0].Remaining)
	}
	if d := take(t, at, headgate.One("s", "resident", l)); !d.Allowed {
		t.Error("the resident is denied")
	}
	if d := take(t, at, headgate.One("other", "new", l)); !d.Allowed {
		t.Error("another slot is denied")
	}
	if got := s.Stats(); got.Overflowed != 4 || got.Keys != 2 || got.Slots != 2 {
		t.Errorf("the figures are %+v", got)
	}
}

func TestAKeyThatGetsRoomKeepsWhatItWasCharged(t *testing.T) {
	l := headgate.MustParseLimit("fixed_window 3/1h")
	s := crowded(t, l)
	at := s.At(noon)
	take(t, at, headgate.Charge{Slot: "s", Key: "new", Limit: l, Cost: 2})
	if err := s.Reset(context.Background(), "s", "resident"); err != nil {
		t.Fatal(err)
	}
	if d := take(t, at, headgate.One("s", "new", l)); !d.Allowed || d.Outcomes[0].Remaining != 0 {
		t.Errorf("the first take with room: %+v", d.Outcomes[0])
	}
	if d := take(t, at, headgate.One("s", "new", l)); d.Allowed {
		t.Error("room gave the key more than its limit")
	}
	if got := s.Stats(); got.Keys != 1 {
		t.Errorf("%d keys, want the one that got room", got.Keys)
	}
	// The others go on with what they share.
	if d := take(t, at, headgate.Charge{Slot: "s", Key: "late", Limit: l, Cost: 2}); d.Allowed {
		t.Error("the shared state forgot its charges")
	}
}

func TestRefundsFindTheStateThatWasCharged(t *testing.T) {
	l := headgate.MustParseLimit("fixed_window 3/1h")
	s := crowded(t, l)
	at := s.At(noon.Add(-time.Hour * 24 * 365 * 60)).(*view) // before 1970 as well
	ctx := context.Background()
	charges := []headgate.Charge{{Slot: "s", Key: "new", Limit: l, Cost: 2}}
	d := take(t, at, charges...)
	if err := s.Reset(ctx, "s", "resident"); err != nil {
		t.Fatal(err)
	}
	take(t, at, charges[0]) // denied, but has an entry of its own now
	if err := at.Refund(ctx, charges, &d); err != nil || d.Outcomes[0].Receipt.Charged != 0 {
		t.Fatalf("refund: %v, %+v", err, d.Outcomes[0].Receipt)
	}
	if got := take(t, at, headgate.Charge{Slot: "s", Key: "new", Limit: l}).Outcomes[0].Remaining; got != 1 {
		t.Errorf("%d remain of the key's own state, want 1: the refund was of the shared one", got)
	}
	if got := take(t, at, headgate.Charge{Slot: "s", Key: "never seen", Limit: l, Cost: 3}); !got.Allowed {
		t.Errorf("the shared state did not get its refund: %+v", got.Outcomes[0])
	}
}

func TestMarksOfOverflow(t *testing.T) {
	for _, mark := range []int64{headgate.MinTime, -1, 0, 1, headgate.MaxTime + 2*3153600000000000} {
		for _, nth := range []int{0, 1, headgate.MaxCharges} {
			if gotMark, gotNth := splitMark(markOverflow(mark, nth)); gotMark != mark || gotNth != nth {
				t.Errorf("mark %d of state %d comes back as %d of %d", mark, nth, gotMark, gotNth)
			}
		}
	}
}

func TestHoldersInOverflow(t *testing.T) {
	l := headgate.MustParseLimit("concurrency 1 ttl=1m")
	s := crowded(t, l)
	at := s.At(noon).(*view)
	ctx := context.Background()
	c := headgate.Charge{Slot: "s", Key: "new", Limit: l, Cost: 1, Holder: "h"}
	if d := take(t, at, c); !d.Allowed {
		t.Fatal("the first holder is denied")
	}
	if alive, err := at.Renew(ctx, &c); err != nil || !alive {
		t.Errorf("renew: %t, %v", alive, err)
	}
	other := c
	other.Key, other.Holder = "another", "g"
	if d := take(t, at, other); d.Allowed {
		t.Error("the shared slot is given twice")
	}
	if err := at.Release(ctx, &c); err != nil {
		t.Fatal(err)
	}
	if d := take(t, at, other); !d.Allowed {
		t.Error("the shared slot was not released")
	}
}

func TestChargesOfOneTakeOverflowApart(t *testing.T) {
	l := headgate.MustParseLimit("token_bucket 1/1h burst=2")
	s := crowded(t, l)
	at := s.At(noon)
	pair := []headgate.Charge{headgate.One("s", "x", l), headgate.One("s", "y", l)}
	for i, want := range []bool{true, true, false} {
		if d := take(t, at, pair...); d.Allowed != want || d.Outcomes[0].Remaining != d.Outcomes[1].Remaining {
			t.Errorf("pair %d: %+v", i, d)
		}
	}
}

func TestTooManySlots(t *testing.T) {
	s := newStore(t, Config{MaxSlots: 2, SweepInterval: -1})
	l := headgate.MustParseLimit("token_bucket 1/1h")
	at := s.At(noon)
	take(t, at, headgate.One("a", "k", l), headgate.One("b", "k", l))
	_, err := headgate.Take(context.Background(), at, headgate.One("a", "k2", l), headgate.One("c", "k", l))
	if e := (*headgate.Error)(nil); !errors.As(err, &e) || e.Code != headgate.CodeOverloaded || e.Charge != 1 {
		t.Errorf("a third slot: %v", err)
	}
	if d := take(t, at, headgate.One("a", "k2", l)); !d.Allowed {
		t.Error("a take that failed was charged")
	}
	// A slot without state is forgotten and gives way.
	if err := s.Reset(context.Background(), "b", "k"); err != nil {
		t.Fatal(err)
	}
	w := sweeper{s: s}
	for range 2 * shards {
		w.step(false)
	}
	take(t, at, headgate.One("c", "k", l))
}

// A flood of a million keys is limited as one, stays within its bounds, and does not make the store forget who is denied.
func TestFlood(t *testing.T) {
	var log bytes.Buffer
	s := newStore(t, Config{MaxKeys: 20_000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l := headgate.MustParseLimit("token_bucket 1/1h burst=2")
	ctx := context.Background()
	denied := headgate.One("login", "attacker", l)
	for range 3 {
		take(t, s, denied)
	}
	var allowed, leaks atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var d headgate.Decision
			charges := make([]headgate.Charge, 1)
			for i := g; i < flood; i += 4 {
				charges[0] = headgate.One("login", fmt.Sprint("bot-", i), l)
				if err := s.Take(ctx, charges, &d); err != nil {
					t.Error(err)
					return
				}
				if d.Allowed {
					allowed.Add(1)
				}
				if i%10_000 == g {
					charges[0] = denied
					if err := s.Take(ctx, charges, &d); err != nil || d.Allowed {
						leaks.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if leaks.Load() > 0 {
		t.Errorf("the denied key passed %d times", leaks.Load())
	}
	// Half of the keys for one slot; one is the attacker's. The rest shares a bucket of 2. The sweeper may take away an
	// entry that was made and not yet charged; the key that gets the room begins with what the others share.
	if got := allowed.Load(); got > 10_000-1+2 || got < 9_900 {
		t.Errorf("%d of the flood were allowed", got)
	}
	if got := s.Stats(); got.Keys > 10_000 || got.Overflowed < flood-10_000 {
		t.Errorf("the figures are %+v", got)
	}
	if d := take(t, s, headgate.One("buy", "shopper", l)); !d.Allowed {
		t.Error("the flood of one slot denies another")
	}
	if n := strings.Count(log.String(), "no room for more keys"); n != 1 {
		t.Errorf("%d warnings, want one for the slot:\n%s", n, log.String())
	}
}

func TestMemoryPerKey(t *testing.T) {
	const keys = flood / 5
	for _, text := range []string{"token_bucket 1/1h burst=5", "fixed_window 100/1000d"} {
		t.Run(text, func(t *testing.T) {
			s := newStore(t, Config{SweepInterval: -1})
			l := headgate.MustParseLimit(text)
			ctx := context.Background()
			var d headgate.Decision
			before := heap()
			for i := range keys {
				if err := s.Take(ctx, []headgate.Charge{headgate.One("s", fmt.Sprintf("%016d", i), l)}, &d); err != nil {
					t.Fatal(err)
				}
			}
			per := float64(heap()-before)/keys - 16
			t.Logf("%.1f bytes per key beside its text", per)
			if per > 120 || per < 48 {
				t.Errorf("%.1f bytes per key beside its text, want at most 120", per)
			}
			runtime.KeepAlive(s)
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTakesOnKnownKeysAllocateNothing(t *testing.T) {
	s := newStore(t, Config{SweepInterval: -1})
	var four []headgate.Charge
	for i, text := range []string{"token_bucket 1/s burst=1000000", "token_bucket 0.3/1s burst=100000", "fixed_window 1000000/1h", "fixed_window 1000000/day zone=Asia/Shanghai", "sliding_log 20/1h", "sliding_window 1000000/1h cells=6", "leaky_bucket 1000000/s capacity=1000000", "concurrency 5 ttl=1h"} {
		c := headgate.One(fmt.Sprint("slot", i), "key", headgate.MustParseLimit(text))
		c.Holder = "h"
		if i%2 == 0 {
			four = append(four, c)
		}
		if n := allocs(t, s, []headgate.Charge{c}); n != 0 {
			t.Errorf("%s: %v allocations for a take", text, n)
		}
	}
	if n := allocs(t, s, four); n != 0 {
		t.Errorf("%v allocations for a take of %d charges", n, len(four))
	}
}

func allocs(t *testing.T, s *Store, charges []headgate.Charge) float64 {
	t.Helper()
	ctx := context.Background()
	var d headgate.Decision
	for range 50 { // logs grow to their size
		if err := s.Take(ctx, charges, &d); err != nil {
			t.Fatal(err)
		}
	}
	return testing.AllocsPerRun(500, func() { _ = s.Take(ctx, charges, &d) })
}
