package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// outbox has the rows of the relay's lane, and is nothing else of Orders.
type outbox struct {
	flashsale.Orders
	rows    []flashsale.Event
	sent    map[int64]bool
	readErr error
	markErr error
}

func newOutbox(n int) *outbox {
	o := &outbox{sent: map[int64]bool{}}
	for range n {
		o.add()
	}
	return o
}

func (o *outbox) add() {
	id := int64(len(o.rows) + 1)
	o.rows = append(o.rows, flashsale.Event{ID: id, RID: fmt.Sprintf("r%d", id), Version: 1, Key: flashsale.Key{Sale: "spring", SKU: "phone"}, State: flashsale.Reserved})
}

func (o *outbox) Unsent(_ context.Context, lane flashsale.Lane, _ time.Duration, _ int64, limit int) (list []flashsale.Event, err error) {
	if lane != flashsale.LaneRelay {
		return nil, errors.New("another lane")
	}
	for _, e := range o.rows {
		if !o.sent[e.ID] && len(list) < limit {
			list = append(list, e)
		}
	}
	return list, o.readErr
}

func (o *outbox) Sent(_ context.Context, lane flashsale.Lane, _ int64, ids []int64) error {
	if lane != flashsale.LaneRelay || o.markErr != nil {
		return orElse(o.markErr, "another lane")
	}
	for _, id := range ids {
		o.sent[id] = true
	}
	return nil
}

func orElse(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// fakeBroker takes events, refuses those it is told to, or all of them, or none.
type fakeBroker struct {
	refuses func(id int64) bool
	down    error
	calls   int
	taken   []int64
}

func (b *fakeBroker) Publish(_ context.Context, events []flashsale.Event) error {
	b.calls++
	if b.down != nil {
		return b.down
	}
	var err error
	for i := range events {
		if b.refuses != nil && b.refuses(events[i].ID) {
			err = &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "refused"}
			continue
		}
		b.taken = append(b.taken, events[i].ID)
	}
	return err
}

func (b *fakeBroker) Close() error { return nil }

type noStock struct{ engine.Stock }

// relayScene is an engine with an outbox and a broker, at a time that the test sets.
type relayScene struct {
	*engine.Engine
	t      *testing.T
	outbox *outbox
	broker *fakeBroker
	alarms *alarmLog
	now    time.Time
}

type alarmLog struct {
	engine.Observer
	lines []string
}

func (a *alarmLog) Alarm(kind, _ string, on bool, value float64, _ string) {
	a.lines = append(a.lines, fmt.Sprintf("%s %v %v", kind, on, value))
}

func newRelayScene(t *testing.T, rows int) *relayScene {
	t.Helper()
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	s := &relayScene{t: t, outbox: newOutbox(rows), broker: &fakeBroker{}, alarms: &alarmLog{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.Engine, err = engine.New(engine.Config{
		Stock: noStock{}, Orders: s.outbox, Keys: keys, Relay: s.broker, Observer: s.alarms, Now: func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass makes a pass and expects how many were sent.
func (s *relayScene) pass(want int, code flashsale.Code) {
	s.t.Helper()
	n, err := s.RelayOnce(s.t.Context())
	if n != want || flashsale.CodeOf(err) != code {
		s.t.Fatalf("%d events were sent, %v; want %d, %q", n, err, want, code)
	}
}

func (s *relayScene) wantAlarms(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.alarms.lines, want) {
		s.t.Fatalf("alarms %q, want %q", s.alarms.lines, want)
	}
}

func TestRelayOnceSendsAllInOrder(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 1201)
	s.pass(1201, "")
	if s.broker.calls != 3 || !slices.IsSorted(s.broker.taken) || len(s.broker.taken) != 1201 {
		t.Fatalf("%d calls, %d events", s.broker.calls, len(s.broker.taken))
	}
	s.pass(0, "")
	if s.broker.calls != 3 {
		t.Fatal("what was sent is sent again")
	}
	s.wantAlarms()
}

// TestRelayOnceFindsWhatComesLate: rows whose ids lie below what was sent already, since their transactions ended later.
func TestRelayOnceFindsWhatComesLate(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 10)
	late := s.outbox.rows[3]
	s.outbox.rows = slices.Delete(slices.Clone(s.outbox.rows), 3, 4)
	s.pass(9, "")
	s.outbox.rows = append(s.outbox.rows, late)
	s.pass(1, "")
	if got := s.broker.taken[9]; got != 4 {
		t.Fatalf("sent %d", got)
	}
}

// TestRelayOnceLeavesABrokenBrokerAlone, for longer and longer, and goes on at once when it is back.
func TestRelayOnceLeavesABrokenBrokerAlone(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 3)
	s.broker.down = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "down"}
	s.pass(0, flashsale.CodeUnavailable)
	var waits []time.Duration
	for range 9 {
		began, calls := s.now, s.broker.calls
		for s.broker.calls == calls {
			s.now = s.now.Add(50 * time.Millisecond)
			if _, err := s.RelayOnce(t.Context()); (err != nil) != (s.broker.calls > calls) {
				t.Fatalf("%d calls, %v", s.broker.calls-calls, err)
			}
		}
		waits = append(waits, s.now.Sub(began))
	}
	ms := time.Millisecond
	if want := []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 15000 * ms, 15000 * ms, 15000 * ms}; !reflect.DeepEqual(waits, want) {
		t.Fatalf("waited %v", waits)
	}
	s.wantAlarms("relay true 3")
	s.broker.down = nil
	s.now = s.now.Add(15 * time.Second)
	s.pass(3, "")
	s.wantAlarms("relay true 3", "relay false 0")
	// The next failure begins with the shortest wait.
	s.outbox.add()
	s.broker.down = errors.New("an error of no code")
	if _, err := s.RelayOnce(t.Context()); err == nil {
		t.Fatal("no error")
	}
	s.broker.down = nil
	s.now = s.now.Add(250 * time.Millisecond)
	s.pass(1, "")
}

// TestRelayOnceSetsPoisonAside: any events that are refused for good hold up none of the others, and are tried again after growing times.
func TestRelayOnceSetsPoisonAside(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4, 5} {
		random := rand.New(rand.NewPCG(seed, 0))
		poison := map[int64]bool{1: true, 1201: true}
		for range random.IntN(12) {
			poison[1+random.Int64N(1201)] = true
		}
		s := newRelayScene(t, 1201)
		s.broker.refuses = func(id int64) bool { return poison[id] }
		s.pass(1201-len(poison), "")
		for id := range poison {
			if s.outbox.sent[id] {
				t.Fatalf("seed %d: %d is marked as sent", seed, id)
			}
		}
		if len(s.alarms.lines) != 1 {
			t.Fatalf("seed %d: alarms %v", seed, s.alarms.lines)
		}
		calls := s.broker.calls
		s.outbox.add()
		s.pass(1, "")
		if s.broker.calls != calls+1 {
			t.Fatalf("seed %d: what was set aside was tried %d times in the next pass", seed, s.broker.calls-calls-1)
		}
		s.now = s.now.Add(asideWait)
		s.pass(0, "")
		if s.broker.calls != calls+1+len(poison) {
			t.Fatalf("seed %d: %d calls for %d events that are due", seed, s.broker.calls-calls-1, len(poison))
		}
		s.broker.refuses = nil
		s.now = s.now.Add(asideWait)
		s.pass(0, "") // the second wait is twice as long
		s.now = s.now.Add(asideWait)
		s.pass(len(poison), "")
		if len(s.outbox.sent) != 1202 {
			t.Fatalf("seed %d: %d were sent", seed, len(s.outbox.sent))
		}
		if len(s.alarms.lines) != 2 || s.alarms.lines[1] != "relay false 0" {
			t.Fatalf("seed %d: alarms %v", seed, s.alarms.lines)
		}
	}
}

const asideWait = 10 * time.Second

// TestRelayOnceManyAsideHideNothing: more than a page of refused events.
func TestRelayOnceManyAsideHideNothing(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 700)
	s.broker.refuses = func(id int64) bool { return id <= 700 }
	s.pass(0, "")
	s.pass(0, "")
	for range 50 {
		s.outbox.add()
	}
	s.pass(50, "")
	// At most 16 of them are tried again in one pass.
	s.now = s.now.Add(asideWait)
	calls := s.broker.calls
	s.pass(0, "")
	if got := s.broker.calls - calls; got != 16 {
		t.Fatalf("%d calls", got)
	}
}

// TestRelayOnceWhenAllIsRefused: then the settings are wrong and not the events, and the broker is left alone.
func TestRelayOnceWhenAllIsRefused(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 3000)
	s.broker.refuses = func(int64) bool { return true }
	s.pass(0, "")
	s.pass(0, flashsale.CodeUnavailable)
	calls := s.broker.calls
	s.pass(0, "")
	if s.broker.calls != calls {
		t.Fatal("the broker is not left alone")
	}
	s.broker.refuses = nil
	for range 300 {
		s.now = s.now.Add(asideWait)
		if _, err := s.RelayOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.outbox.sent) != 3000 {
		t.Fatalf("%d were sent", len(s.outbox.sent))
	}
	s.wantAlarms("relay true 500", "relay false 0")
}

// TestRelayOnceForgetsWhatAnotherInstanceHasSent: nothing is kept for rows that are not there any more, and no alarm for them.
func TestRelayOnceForgetsWhatAnotherInstanceHasSent(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 5)
	s.broker.refuses = func(id int64) bool { return id == 2 }
	s.pass(4, "")
	s.outbox.sent[2] = true
	s.pass(0, "")
	s.wantAlarms("relay true 1", "relay false 0")
}

// TestRelayOncePublishesAgainWhatIsNotMarked: at least once, whatever SQL does.
func TestRelayOncePublishesAgainWhatIsNotMarked(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 2)
	s.outbox.markErr = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "SQL is away"}
	s.pass(0, flashsale.CodeUnavailable)
	s.outbox.markErr = nil
	s.pass(2, "")
	if !slices.Equal(s.broker.taken, []int64{1, 2, 1, 2}) {
		t.Fatalf("taken %v", s.broker.taken)
	}
	s.outbox.readErr = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "SQL is away"}
	s.pass(0, flashsale.CodeUnavailable)
	s.wantAlarms()
}

// TestRelayOnceThatIsEnded: the end of a pass is no fault of the broker.
func TestRelayOnceThatIsEnded(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.broker.down = ctx.Err()
	if _, err := s.RelayOnce(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.wantAlarms()
	s.broker.down = nil
	s.pass(2, "")
}

// TestRelayOnceWithoutARelay: what nobody reads is not kept for ever.
func TestRelayOnceWithoutARelay(t *testing.T) {
	t.Parallel()
	s := newRelayScene(t, 7)
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if s.Engine, err = engine.New(engine.Config{Stock: noStock{}, Orders: s.outbox, Keys: keys}); err != nil {
		t.Fatal(err)
	}
	s.pass(7, "")
	s.pass(0, "")
	if s.broker.calls != 0 {
		t.Fatal("the broker was called")
	}
}
