package memstock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
)

// shop is a stock with a clock that is moved by hand, and one sku on sale in epoch 1.
type shop struct {
	*testing.T
	*memstock.Stock
	ctx context.Context
	now time.Time
	key flashsale.Key
}

func newShop(t *testing.T, cfg memstock.Config) *shop {
	s := &shop{T: t, ctx: t.Context(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), key: flashsale.Key{Sale: "s", SKU: "a"}}
	cfg.Now = func() time.Time { return s.now }
	s.Stock = memstock.New(cfg)
	t.Cleanup(func() { s.Close() })
	s.sell(1, 100)
	return s
}

func (s *shop) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) fails(err error, code flashsale.Code) {
	s.Helper()
	if flashsale.CodeOf(err) != code {
		s.Fatalf("want the code %q, got %q: %v", code, flashsale.CodeOf(err), err)
	}
}

// sell loads an epoch and puts it on sale at 10 jobs a second.
func (s *shop) sell(epoch, total int64) {
	s.Helper()
	_, err := s.Point(s.ctx, s.key, epoch)
	s.ok(err)
	s.ok(s.Load(s.ctx, s.key, epoch, &flashsale.LoadPart{Last: true, Total: total}))
	s.ok(s.Configure(s.ctx, s.key, epoch, &flashsale.Settings{
		Version: 1, Status: flashsale.Open, OpensAt: s.now.Add(-24 * time.Hour), ClosesAt: s.now.Add(48 * time.Hour), PurchaseLimit: 1, Rate: 10,
	}))
}

func (s *shop) reserve(epoch int64, rid string) flashsale.Answer {
	s.Helper()
	a, err := s.Reserve(s.ctx, s.key, epoch, &flashsale.Ask{RID: rid, User: "u-" + rid, Quantity: 1, Body: "b"})
	s.ok(err)
	return a
}

func (s *shop) pull(limit int) (rids []string) {
	s.Helper()
	jobs, err := s.Pull(s.ctx, s.key, 1, "c", limit, 5*time.Second)
	s.ok(err)
	for _, j := range jobs {
		rids = append(rids, j.RID)
	}
	return rids
}

func TestReservationsAreBounded(t *testing.T) {
	s := newShop(t, memstock.Config{MaxReservations: 3})
	for i := range 3 {
		if a := s.reserve(1, fmt.Sprint("r", i)); !a.Accepted {
			t.Fatalf("within the bound: %+v", a)
		}
	}
	if a := s.reserve(1, "r3"); a.Code != flashsale.CodeBusy || a.RetryAfter <= 0 {
		t.Errorf("beyond the bound: %+v", a)
	}
	if a := s.reserve(1, "r0"); !a.Known {
		t.Errorf("what is known, at the bound: %+v", a)
	}
	applied, err := s.Apply(s.ctx, s.key, 1, []flashsale.Effect{
		{RID: "r0", State: flashsale.Rejected, Version: 1}, {RID: "x", User: "u", Quantity: 1, State: flashsale.Rejected, Version: 1},
	}, nil)
	s.ok(err)
	if applied[0] != flashsale.AppliedMoved || applied[1] != flashsale.AppliedStored {
		t.Errorf("SQL is followed at the bound: %v", applied)
	}
	s.now = s.now.Add(flashsale.Retention + time.Second)
	if n, err := s.Forget(s.ctx, s.key, 1, []string{"r0", "x"}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	effects := []flashsale.Effect{{RID: "r1", State: flashsale.Reserved, Version: 1}, {RID: "r2", State: flashsale.Reserved, Version: 1}}
	_, err = s.Apply(s.ctx, s.key, 1, effects, []string{"1", "2", "3"})
	s.ok(err)
	if a := s.reserve(1, "r3"); !a.Accepted {
		t.Errorf("after some were forgotten: %+v", a)
	}
	s.sell(2, 100)
	if a := s.reserve(2, "r4"); a.Code != flashsale.CodeBusy {
		t.Errorf("the older epoch still has its own: %+v", a)
	}
	s.ok(s.Drop(s.ctx, s.key, 2, 1))
	if a := s.reserve(2, "r4"); !a.Accepted {
		t.Errorf("after the older epoch was dropped: %+v", a)
	}
}

func TestKeysAreBounded(t *testing.T) {
	s := newShop(t, memstock.Config{MaxKeys: 2})
	_, err := s.Point(s.ctx, flashsale.Key{Sale: "s", SKU: "b"}, 1)
	s.ok(err)
	_, err = s.Point(s.ctx, flashsale.Key{Sale: "s", SKU: "c"}, 1)
	s.fails(err, flashsale.CodeUnavailable)
	if !strings.Contains(err.Error(), "MaxKeys") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	s.sell(2, 10)
	if v, err := s.View(s.ctx, flashsale.Key{Sale: "s", SKU: "c"}); err != nil || v.Epoch != 0 {
		t.Errorf("a key that was refused: %+v, %v", v, err)
	}
	s.ok(s.Remove(s.ctx, s.key, 2))
	_, err = s.Point(s.ctx, flashsale.Key{Sale: "s", SKU: "c"}, 1)
	s.ok(err)
}

// TestRemovedReservationsMakeRoom: what is removed counts no more, whichever epoch it was of.
func TestRemovedReservationsMakeRoom(t *testing.T) {
	s := newShop(t, memstock.Config{MaxReservations: 2})
	s.reserve(1, "r0")
	s.sell(2, 100)
	s.reserve(2, "r1")
	if a := s.reserve(2, "r2"); a.Code != flashsale.CodeBusy {
		t.Fatalf("at the bound: %+v", a)
	}
	s.ok(s.Remove(s.ctx, s.key, 2))
	s.sell(1, 100)
	for _, rid := range []string{"r0", "r1"} {
		if a := s.reserve(1, rid); !a.Accepted {
			t.Errorf("after the removal: %+v", a)
		}
	}
}

// TestRemovedUnderwayIsFound: a rebuild that begins while the sku is removed is not lost with it.
func TestRemovedUnderwayIsFound(t *testing.T) {
	s := newShop(t, memstock.Config{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				_ = s.Remove(s.ctx, s.key, 1)
			}
		})
	}
	for epoch := int64(2); epoch < 500; epoch++ {
		_, err := s.Point(s.ctx, s.key, epoch)
		s.ok(err)
		if v, err := s.View(s.ctx, s.key); err != nil || v.Epoch != epoch {
			t.Fatalf("pointed to %d, the view says %d: %v", epoch, v.Epoch, err)
		}
	}
	all.Wait()
}

func TestDeadLettersAreBounded(t *testing.T) {
	s := newShop(t, memstock.Config{MaxDead: 2})
	for i := range 4 {
		s.reserve(1, fmt.Sprint("r", i))
		jobs, err := s.Pull(s.ctx, s.key, 1, "c", 1, time.Minute)
		s.ok(err)
		s.ok(s.Bury(s.ctx, s.key, 1, &jobs[0], strings.Repeat("é", flashsale.MaxReason)))
		s.now = s.now.Add(time.Second)
	}
	dead, err := s.Dead(s.ctx, s.key, 1, 10)
	s.ok(err)
	if len(dead) != 2 || dead[0].RID != "r2" || dead[1].RID != "r3" {
		t.Errorf("the last two are kept, got %+v", dead)
	}
	if n := len(dead[0].Reason); n != flashsale.MaxReason {
		t.Errorf("a reason of %d bytes is kept, at most %d are", n, flashsale.MaxReason)
	}
	s.now = s.now.Add(flashsale.PendingFor)
	if due, err := s.Due(s.ctx, s.key, 1, 10); len(due) != 4 || err != nil {
		t.Errorf("the sweeper finds all four: %v, %v", due, err)
	}
}

// A clock that goes back must neither stop anything for as long as it went back, nor give anything away.
func TestTheClockGoesBack(t *testing.T) {
	s := newShop(t, memstock.Config{})
	for _, rid := range []string{"r0", "r1", "r2"} {
		s.reserve(1, rid)
	}
	if got := s.pull(10); len(got) != 1 {
		t.Fatalf("pulled %v", got)
	}
	s.now = s.now.Add(-time.Hour)
	if got := s.pull(10); len(got) != 0 {
		t.Errorf("going back has earned %v", got)
	}
	if a := s.reserve(1, "earlier"); !a.Accepted {
		t.Fatalf("%+v", a)
	}
	s.now = s.now.Add(100 * time.Millisecond)
	if got := s.pull(10); len(got) != 1 || got[0] != "r1" {
		t.Errorf("at the rate from there on: pulled %v, want r1", got)
	}
	s.now = s.now.Add(5 * time.Second)
	if got := s.pull(10); len(got) != 1 || got[0] != "r0" {
		t.Errorf("a job that a consumer has is late by the new clock: pulled %v, want r0", got)
	}
	s.now = s.now.Add(flashsale.PendingFor)
	due, err := s.Due(s.ctx, s.key, 1, 10)
	s.ok(err)
	if len(due) != 1 || due[0].RID != "earlier" {
		t.Errorf("due: %v, want the one that was reserved last", due)
	}
	if v, err := s.View(s.ctx, s.key); err != nil || v.Queue.Oldest != 0 {
		t.Errorf("the oldest job comes from the future: %s, %v", v.Queue.Oldest, err)
	}
}

func TestWhatSQLNeverSaysIsRefused(t *testing.T) {
	s := newShop(t, memstock.Config{})
	s.reserve(1, "r0")
	before, _ := s.View(s.ctx, s.key)
	for _, state := range []flashsale.State{flashsale.None, flashsale.Pending, flashsale.Rejected + 1, 255} {
		_, err := s.Apply(s.ctx, s.key, 1, []flashsale.Effect{{RID: "r0", State: flashsale.Reserved, Version: 1}, {RID: "r0", State: state, Version: 2}}, nil)
		s.fails(err, flashsale.CodeInvalidArgument)
	}
	for _, delta := range []int64{-1 << 63, 1<<63 - 1, flashsale.MaxTotal + 1} {
		_, err := s.Adjust(s.ctx, s.key, 1, "op", delta)
		s.fails(err, flashsale.CodeInvalidQuantity)
	}
	if after, _ := s.View(s.ctx, s.key); after != before {
		t.Errorf("something has changed:\nbefore %+v\nafter  %+v", before, after)
	}
	_, err := s.Point(s.ctx, s.key, 2)
	s.ok(err)
	for _, part := range []flashsale.LoadPart{
		{Last: true, Total: 1, Reserved: 1, Sold: 1}, {Last: true, Total: 1, Reserved: -1}, {Last: true, Total: 1, Sold: -1}, {Last: true, Total: -1},
		{Last: true, Total: flashsale.MaxTotal + 1}, {Entries: []flashsale.Entry{{RID: "p", State: flashsale.Pending}}}, {Entries: []flashsale.Entry{{RID: "n"}}},
	} {
		s.fails(s.Load(s.ctx, s.key, 2, &part), flashsale.CodeInvalidArgument)
	}
	_, _, err = s.Entries(s.ctx, s.key, 2, "-1", 1)
	s.fails(err, flashsale.CodeInvalidArgument)
	_, err = s.Drain(s.ctx, s.key, 2, 1, "none", 1)
	s.fails(err, flashsale.CodeInvalidArgument)
}

func TestAClosedStockSaysSo(t *testing.T) {
	s := newShop(t, memstock.Config{})
	s.ok(s.Close())
	s.ok(s.Close())
	_, err := s.Reserve(s.ctx, s.key, 1, &flashsale.Ask{RID: "r", User: "u", Quantity: 1})
	s.fails(err, flashsale.CodeClosed)
	_, err = s.View(s.ctx, s.key)
	s.fails(err, flashsale.CodeClosed)
	_, err = s.Point(s.ctx, s.key, 2)
	s.fails(err, flashsale.CodeClosed)
}

func TestWhoHasGoneGetsNothing(t *testing.T) {
	s := newShop(t, memstock.Config{})
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.Reserve(ctx, s.key, 1, &flashsale.Ask{RID: "r", User: "u", Quantity: 1})
	s.fails(err, flashsale.CodeUnavailable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is missing: %v", err)
	}
	if v, _ := s.View(s.ctx, s.key); v.Held != 0 {
		t.Errorf("%d units were taken", v.Held)
	}
}

func TestRunsDiffer(t *testing.T) {
	a, b := memstock.New(memstock.Config{}), memstock.New(memstock.Config{})
	va, _ := a.View(t.Context(), flashsale.Key{})
	vb, _ := b.View(t.Context(), flashsale.Key{})
	if va.Run == vb.Run || len(va.Run) != 16 {
		t.Errorf("runs %q and %q", va.Run, vb.Run)
	}
	c := memstock.New(memstock.Config{Rand: strings.NewReader("12345678")})
	if vc, _ := c.View(t.Context(), flashsale.Key{}); vc.Run != "3132333435363738" {
		t.Errorf("the run %q is not made of what Rand gives", vc.Run)
	}
}

// A refusal is what a sale answers most: it must cost the collector nothing.
func TestRefusalsDoNotAllocate(t *testing.T) {
	s := newShop(t, memstock.Config{})
	s.sell(2, 1)
	s.reserve(2, "winner")
	ask := flashsale.Ask{RID: "loser", User: "loser", Quantity: 1, Body: "b"}
	n := testing.AllocsPerRun(100, func() {
		if a, err := s.Reserve(s.ctx, s.key, 2, &ask); err != nil || a.Code != flashsale.CodeSoldOut {
			t.Fatal(a, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for each", n)
	}
}
