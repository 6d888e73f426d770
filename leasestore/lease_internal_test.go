package leasestore

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// TestRetireAndSpend: while a lease is retired, some spend it and some put back. What was spent and what was unspent is never more
// than there was.
func TestRetireAndSpend(t *testing.T) {
	for range 2000 {
		l := newLease(nil, 40, &answer{Outcome: &headgate.Outcome{}})
		var spent, unspent atomic.Int64
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for worker := range 4 {
			wg.Go(func() {
				<-begin
				for range 20 {
					if _, ok := l.take(3); ok {
						spent.Add(3)
						if worker == 0 {
							spent.Add(-l.restore(3))
						}
					}
				}
			})
		}
		wg.Go(func() {
			<-begin
			unspent.Add(l.retire())
		})
		close(begin)
		wg.Wait()
		if got := spent.Load() + unspent.Load(); got > 40 || got < 0 {
			t.Fatalf("%d spent and %d unspent of 40", spent.Load(), unspent.Load())
		}
		if _, ok := l.take(1); ok || l.held() != 0 || l.restore(1) != 0 || l.retire() != 0 {
			t.Fatal("a retired lease is used")
		}
	}
}

// TestTakesAtOnce: those that find too little disturb nobody's units for longer than a moment.
func TestTakesAtOnce(t *testing.T) {
	l := newLease(nil, 5, &answer{Outcome: &headgate.Outcome{}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500_000 { // now and then two find enough for one
				if _, ok := l.take(3); ok {
					l.restore(3)
				}
			}
		})
	}
	wg.Wait()
	if got := l.left.Load(); got != 5 {
		t.Errorf("%d left of 5", got)
	}
}

func TestRestoreIsBounded(t *testing.T) {
	l := newLease(nil, 10, &answer{Outcome: &headgate.Outcome{}})
	if left, ok := l.take(7); left != 3 || !ok {
		t.Fatalf("%d left", left)
	}
	if _, ok := l.take(4); ok || l.held() != 3 {
		t.Fatal("more than there was")
	}
	if back := l.restore(5); back != 5 || l.held() != 8 {
		t.Errorf("%d restored", back)
	}
	if back := l.restore(5); back != 2 || l.held() != 10 {
		t.Errorf("%d restored beyond what was granted", back)
	}
}

// TestReceiptOfSeveralLeases is of the earliest: when that bucket would be full, a refund gives nothing more.
func TestReceiptOfSeveralLeases(t *testing.T) {
	h := &holding{limit: headgate.MustParseLimit("token_bucket 10/s burst=100")}
	for _, mark := range []int64{7, 5, 9} {
		h.leases = append(h.leases, newLease(h.limit, 10, &answer{Outcome: &headgate.Outcome{Receipt: headgate.Receipt{Mark: mark}}}))
	}
	from, remaining := h.spend(25)
	if from == nil || from.mark != 5 || remaining != 5 || h.held() != 5 {
		t.Errorf("%+v, %d remain, %d in hand", from, remaining, h.held())
	}
	if from, _ := h.spend(6); from != nil || h.held() != 5 {
		t.Errorf("%+v, %d in hand", from, h.held())
	}
}

// TestLeasesAreBounded: of too many a spent one goes, or else the oldest, whose units are given back.
func TestLeasesAreBounded(t *testing.T) {
	s := &Store{cfg: Config{}.withDefaults(), base: time.Now()}
	s.returns.wake = make(chan struct{}, 1)
	h := &holding{}
	for i := range 3 * int64(maxLeases) {
		l := newLease(nil, 10+i, &answer{Outcome: &headgate.Outcome{ResetAfter: time.Hour}, got: s.now()})
		if s.stock(h, l); i == 5 {
			l.take(l.held())
		}
	}
	units := int64(0)
	for _, one := range s.returns.list {
		units += one.units
	}
	all, dropped := int64(0), 2*maxLeases-1
	for i := range int64(dropped + 1) {
		if i != 5 {
			all += 10 + i
		}
	}
	if len(h.leases) != maxLeases || len(s.returns.list) != dropped || units != all {
		t.Errorf("%d leases; %d units of %d given back, want %d of %d", len(h.leases), units, len(s.returns.list), all, dropped)
	}
}

// TestFrontComparesNames: that two keys lead to one place mixes nothing up.
func TestFrontComparesNames(t *testing.T) {
	var f front
	h := &holding{slot: "a", key: "k"}
	for i := range f.places {
		f.places[i].Store(h)
	}
	if f.find("a", "k") != h || f.find("b", "k") != nil || f.find("a", "x") != nil || f.find("", "ak") != nil {
		t.Error("another key's holding was found, or not its own")
	}
}

// TestFrontForgetsWhatIsSwept, so that it keeps no key from the garbage collector.
func TestFrontForgetsWhatIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil, Config{})
		defer s.Close()
		s.hold("a", "k")
		if s.front.find("a", "k") == nil {
			t.Fatal("it is not there")
		}
		time.Sleep(4 * time.Second)
		if s.front.find("a", "k") != nil || s.Stats().Keys != 0 {
			t.Error("it is still there")
		}
	})
}

func TestDemand(t *testing.T) {
	const ms = int64(time.Millisecond)
	d := demand{}
	for _, tt := range []struct {
		at, total, want int64
	}{
		{0, 0, 0}, {1 * ms, 50, 50}, {50 * ms, 500, 500},
		{100 * ms, 1000, 1000}, {150 * ms, 1500, 1000}, {250 * ms, 2500, 1000}, // 10 per ms
		{300 * ms, 2500, 500}, {1250 * ms, 2500, 0}, {1260 * ms, 2520, 20}, // it was idle, and begins again
		{1260 * ms, 2400, 0}, // refunds
	} {
		if got := d.recent(tt.at, tt.total, 100*time.Millisecond); got != tt.want {
			t.Errorf("at %d ms, %d in all: want %d, got %d", tt.at/ms, tt.total, tt.want, got)
		}
	}
}

func TestCanLease(t *testing.T) {
	for text, want := range map[string][2]bool{ // whether its kind can be leased; whether this one is, at a cost of 1
		"token_bucket 5/s": {true, true}, "token_bucket 0/s": {true, false}, "fixed_window 5/day": {true, true}, "fixed_window 5/1m": {true, true},
		"fixed_window 5/10ms": {true, false}, "fixed_window 0/1m": {true, false}, "sliding_window 5/1s cells=10": {true, true},
		"sliding_window 5/100ms cells=10": {true, false}, "sliding_log 5/1m": {}, "leaky_bucket 5/s capacity=5": {}, "concurrency 5 ttl=1m": {},
	} {
		l := headgate.MustParseLimit(text)
		c := headgate.One("s", "", l)
		c.Holder = "A"
		if got := [2]bool{CanLease(l), leasable(&c)}; got != want {
			t.Errorf("%s: want %v, got %v", text, want, got)
		}
		c.Lockout = &headgate.Lockout{After: 1, For: time.Minute}
		if leasable(&c) {
			t.Errorf("%s with a lockout is leased", text)
		}
	}
	if CanLease(nil) {
		t.Error("no limit can be leased")
	}
}
