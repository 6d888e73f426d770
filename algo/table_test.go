package algo

import (
	"fmt"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// key is one cell and what is needed to take from it, at times that the test says.
type key struct {
	cell  Cell
	zones Zones
}

// fataler is a test, of the testing package or of rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// take takes from the key and returns the outcome; it fails the test if a decision of one charge is not its outcome's.
func (k *key) take(t fataler, now int64, c headgate.Charge) headgate.Outcome {
	t.Helper()
	var d headgate.Decision
	Take(&k.zones, now, []headgate.Charge{c}, []*Cell{&k.cell}, &d)
	if (c.Mode == headgate.Pay || c.Mode == headgate.Check) && d.Allowed != d.Outcomes[0].Allowed {
		t.Fatalf("the decision allows: %t, its outcome: %t", d.Allowed, d.Outcomes[0].Allowed)
	}
	return d.Outcomes[0]
}

// show writes an outcome in one line: what passed, and what is left and when it is back.
func show(o headgate.Outcome) string {
	s := "allow"
	if !o.Allowed {
		s = "deny " + o.RetryAfter.String()
	}
	if o.Wait > 0 {
		s += fmt.Sprint(" wait ", o.Wait)
	}
	if o.HasRemaining {
		s += fmt.Sprint(" left ", o.Remaining)
	}
	return s + fmt.Sprint(" reset ", o.ResetAfter)
}

type attempt struct {
	at   time.Duration // from the start of the case
	cost int64
	want string
}

func TestExactValues(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		limit, start string // start: the epoch if empty
		attempts     []attempt
	}{
		{"token_bucket 1000000000000/1us burst=1000000000000", "", []attempt{
			{0, 1_000_000_000_000, "allow left 0 reset 1µs"},
			{0, 1, "deny 1µs left 0 reset 1µs"},
			{1000, 1_000_000_000_000, "allow left 0 reset 1µs"},
			{2000, 999_999_999_999, "allow left 1 reset 1µs"},
			{2000, 1, "allow left 0 reset 1µs"},
			{2000, 1, "deny 1µs left 0 reset 1µs"},
		}},
		{"token_bucket 1/36500d", "", []attempt{
			{0, 1, "allow left 0 reset 876000h0m0s"},
			{36500*day - 1000, 1, "deny 1µs left 0 reset 1µs"},
			{36500 * day, 1, "allow left 0 reset 876000h0m0s"},
		}},
		{"token_bucket 999999999999.999/1s burst=1000000000000", "", []attempt{
			{0, 1_000_000_000_000, "allow left 0 reset 1.000001s"},
			{1000, 1_000_000, "deny 1µs left 999999 reset 1s"},
			{1000, 999_999, "allow left 0 reset 1s"},
			{time.Second, 1_000_000_000_000, "deny 1µs left 999999000000 reset 1µs"},
			{time.Second + 1000, 1_000_000_000_000, "allow left 0 reset 1.000001s"},
		}},
		{"token_bucket 0.3/s burst=2", "", []attempt{
			{0, 2, "allow left 0 reset 6.666667s"},
			{3333333000, 1, "deny 1µs left 0 reset 3.333334s"},
			{3333334000, 1, "allow left 0 reset 6.666666s"},
			{6666666000, 1, "deny 1µs left 0 reset 3.333334s"},
			{6666667000, 1, "allow left 0 reset 6.666667s"},
			{10000000000, 1, "allow left 0 reset 6.666667s"},
		}},
		{"token_bucket 7/s burst=3", "1969-12-31T23:59:59.999995Z", []attempt{
			{0, 3, "allow left 0 reset 428.572ms"},
			{4000, 1, "deny 142.854ms left 0 reset 428.568ms"},
			{142857000, 1, "deny 1µs left 0 reset 285.715ms"},
			{142858000, 1, "allow left 0 reset 428.571ms"},
			{142858000, 0, "allow left 0 reset 428.571ms"},
			{142858000, 4, "deny never left 0 reset 428.571ms"},
		}},
		{"fixed_window 1000000000000/36500d", "", []attempt{
			{0, 1_000_000_000_000, "allow left 0 reset 876000h0m0s"},
			{36500*day - 1000, 1, "deny 1µs left 0 reset 1µs"},
			{36500 * day, 1, "allow left 999999999999 reset 876000h0m0s"},
		}},
		{"fixed_window 3/1us", "1850-01-01T00:00:00Z", []attempt{
			{0, 3, "allow left 0 reset 1µs"},
			{0, 1, "deny 1µs left 0 reset 1µs"},
			{1000, 1, "allow left 2 reset 1µs"},
		}},
		{"fixed_window 10/7s", "1969-12-31T23:59:50Z", []attempt{ // windows begin at -14 s, -7 s, 0
			{0, 4, "allow left 6 reset 3s"},
			{2999999000, 7, "deny 1µs left 6 reset 1µs"},
			{3 * time.Second, 7, "allow left 3 reset 7s"},
			{10 * time.Second, 11, "deny never left 10 reset 0s"},
		}},
		{"fixed_window 5/day zone=America/New_York", "2026-03-08T05:00:00Z", []attempt{ // a day of 23 hours
			{0, 5, "allow left 0 reset 23h0m0s"},
			{23*time.Hour - 1000, 1, "deny 1µs left 0 reset 1µs"},
			{23 * time.Hour, 1, "allow left 4 reset 24h0m0s"},
		}},
		{"sliding_log 3/36500d", "", []attempt{
			{0, 1, "allow left 2 reset 876000h0m0s"},
			{time.Hour, 2, "allow left 0 reset 876000h0m0s"},
			{2 * time.Hour, 1, "deny 875998h0m0s left 0 reset 875999h0m0s"},
			{2 * time.Hour, 2, "deny 875999h0m0s left 0 reset 875999h0m0s"},
			{36500*day - 1000, 1, "deny 1µs left 0 reset 1h0m0.000001s"},
			{36500 * day, 1, "allow left 0 reset 876000h0m0s"},
		}},
		{"sliding_window 1000000000000/36500d", "", []attempt{
			{0, 1_000_000_000_000, "allow left 0 reset 1752000h0m0s"},
			{36500 * day, 1, "deny 3.154ms left 0 reset 876000h0m0s"}, // 3153.6 µs a unit, rounded up
			{36500*day + 3153*time.Microsecond, 1, "deny 1µs left 0 reset 875999h59m59.996847s"},
			{36500*day + 3154*time.Microsecond, 1, "allow left 0 reset 1751999h59m59.996846s"},
		}},
		{"sliding_window 600/1m cells=6", "2026-01-01T00:00:00Z", []attempt{
			{0, 600, "allow left 0 reset 1m10s"},
			{59 * time.Second, 1, "deny 1.016667s left 0 reset 11s"},
			{60 * time.Second, 1, "deny 16.667ms left 0 reset 10s"},
			{60*time.Second + 16666*time.Microsecond, 1, "deny 1µs left 0 reset 9.983334s"},
			{60*time.Second + 16667*time.Microsecond, 1, "allow left 0 reset 1m9.983333s"},
			{65 * time.Second, 299, "allow left 0 reset 1m5s"},
			{70 * time.Second, 300, "allow left 0 reset 1m10s"},
		}},
		{"leaky_bucket 3/1s capacity=5", "", []attempt{
			{0, 1, "allow left 4 reset 333.334ms"},
			{0, 4, "allow wait 333.334ms left 0 reset 1.666667s"},
			{0, 1, "deny 333.334ms left 0 reset 1.666667s"},
			{333333000, 1, "deny 1µs left 0 reset 1.333334s"},
			{333334000, 1, "allow wait 1.333333s left 0 reset 1.666666s"},
			{333334000, 6, "deny never left 0 reset 1.666666s"},
		}},
		{"leaky_bucket 4/1s max_wait=500ms", "", []attempt{
			{0, 10, "allow reset 2.5s"},
			{0, 1, "deny 2s reset 2.5s"},
			{2 * time.Second, 1, "allow wait 500ms reset 750ms"},
			{2 * time.Second, 0, "allow wait 750ms reset 750ms"},
			{2 * time.Second, 1_000_000_000_000, "deny never reset 750ms"},
		}},
	} {
		t.Run(c.limit, func(t *testing.T) {
			l := headgate.MustParseLimit(c.limit)
			start := int64(0)
			if c.start != "" {
				start = at(t, c.start)
			}
			var k key
			for i, a := range c.attempts {
				charge := headgate.Charge{Limit: l, Cost: a.cost}
				if got := show(k.take(t, start+a.at.Microseconds(), charge)); got != a.want {
					t.Errorf("attempt %d, %d at %s: %s, want %s", i, a.cost, a.at, got, a.want)
				}
			}
		})
	}
}

// count0 is every algorithm with a count of zero.
var count0 = []string{"token_bucket 0/s burst=5", "fixed_window 0/1s", "fixed_window 0/day", "sliding_log 0/1s", "sliding_window 0/1s cells=2", "leaky_bucket 0/s capacity=3", "leaky_bucket 0/s max_wait=1s", "concurrency 0 ttl=1s"}

func TestCountZeroDeniesAndErases(t *testing.T) {
	one := headgate.MustParseLimit("token_bucket 1/1h burst=1")
	for _, text := range count0 {
		t.Run(text, func(t *testing.T) {
			zero := headgate.MustParseLimit(text)
			var k key
			if o := k.take(t, 0, headgate.Charge{Limit: zero}); show(o) != "allow left 0 reset 0s" {
				t.Errorf("a peek: %s", show(o))
			}
			k.take(t, 0, headgate.Charge{Limit: one, Cost: 1})
			if o := k.take(t, 1, headgate.Charge{Limit: zero, Cost: 1, Mode: headgate.Check, Holder: "h"}); show(o) != "deny never left 0 reset 0s" || o.Reason != headgate.ReasonCostExceedsLimit {
				t.Errorf("a check: %s, %s", show(o), o.Reason)
			}
			if o := k.take(t, 2, headgate.Charge{Limit: one, Cost: 1}); o.Allowed {
				t.Error("a check erased the state")
			}
			if o := k.take(t, 3, headgate.Charge{Limit: zero, Cost: 1, Mode: headgate.Settle, Holder: "h"}); !o.Allowed || o.Receipt.Charged != 0 {
				t.Errorf("a settling charge: %+v", o)
			}
			if o := k.take(t, 4, headgate.Charge{Limit: one, Cost: 1}); !o.Allowed {
				t.Error("the state outlived a limit of count 0")
			}
		})
	}
}

func TestZeroLimitsDeny(t *testing.T) {
	for _, l := range []headgate.Limit{headgate.TokenBucket{}, headgate.FixedWindow{}, headgate.SlidingLog{}, headgate.SlidingWindow{}, headgate.LeakyBucket{}, headgate.Concurrency{}} {
		var k key
		if o := k.take(t, 0, headgate.Charge{Limit: l, Cost: 1, Holder: "h"}); o.Allowed || o.RetryAfter.State != headgate.RetryNever {
			t.Errorf("the zero %s: %s", l.Algorithm(), show(o))
		}
	}
}

func TestLockoutLadder(t *testing.T) {
	l := headgate.MustParseLimit("fixed_window 1/1h")
	lockout := &headgate.Lockout{After: 2, Within: 10 * time.Second, For: time.Minute, Max: 3 * time.Minute}
	var k key
	for i, a := range []struct {
		at   time.Duration
		cost int64
		want string
	}{
		{0, 1, "allow left 0 reset 1h0m0s"},
		{1 * time.Second, 1, "deny 59m59s left 0 reset 59m59s"},
		{12 * time.Second, 1, "deny 59m48s left 0 reset 59m48s"}, // later than within: the count starts again
		{22 * time.Second, 1, "deny 1m0s left 0 reset 59m38s"},   // within to the microsecond
		{23 * time.Second, 0, "deny 59s left 0 reset 59m37s"},    // shut for a peek too
		{81999999 * time.Microsecond, 1, "deny 1µs left 0 reset 58m38.000001s"},
		{82 * time.Second, 0, "allow left 0 reset 58m38s"},
		{140 * time.Second, 1, "deny 57m40s left 0 reset 57m40s"},
		{142 * time.Second, 1, "deny 2m0s left 0 reset 57m38s"}, // again within 1 min of reopening: doubled
		{322 * time.Second, 1, "deny 54m38s left 0 reset 54m38s"},
		{322 * time.Second, 1, "deny 3m0s left 0 reset 54m38s"}, // doubled, up to max
		{563 * time.Second, 1, "deny 50m37s left 0 reset 50m37s"},
		{563 * time.Second, 1, "deny 3m0s left 0 reset 50m37s"}, // later than for, not later than max: the same again
		{924 * time.Second, 1, "deny 44m36s left 0 reset 44m36s"},
		{924 * time.Second, 1, "deny 1m0s left 0 reset 44m36s"}, // forgotten
		{3600 * time.Second, 1, "allow left 0 reset 1h0m0s"},
	} {
		o := k.take(t, a.at.Microseconds(), headgate.Charge{Limit: l, Cost: a.cost, Lockout: lockout})
		if got := show(o); got != a.want {
			t.Errorf("take %d at %s: %s, want %s", i, a.at, got, a.want)
		}
		if shut := o.Reason == headgate.ReasonLockedOut; shut != (o.RetryAfter.After > 0 && o.RetryAfter.After < 4*time.Minute) {
			t.Errorf("take %d at %s: reason %q", i, a.at, o.Reason)
		}
	}
}

func TestLockoutAndTheClock(t *testing.T) {
	l := headgate.MustParseLimit("fixed_window 0/1h")
	lockout := &headgate.Lockout{After: 1, For: time.Minute, Max: time.Hour}
	second := int64(1_000_000)
	var k key
	k.take(t, 1000*second, headgate.Charge{Limit: l, Cost: 1, Lockout: lockout})
	if until, ok := k.cell.LockedUntil(1000 * second); !ok || until != 1060*second {
		t.Fatalf("locked until %d, %t", until, ok)
	}
	if o := k.take(t, -9000*second, headgate.Charge{Limit: l, Lockout: lockout}); o.RetryAfter.After != time.Hour {
		t.Errorf("a peek after a long way back: %s", show(o))
	}
	if until, _ := k.cell.LockedUntil(0); until != 1060*second {
		t.Errorf("a peek moved the end to %d", until)
	}
	k.take(t, -9000*second, headgate.Charge{Limit: l, Cost: 1, Lockout: lockout})
	if until, _ := k.cell.LockedUntil(-9000 * second); until != -5400*second {
		t.Errorf("a take did not heal the end: %d", until)
	}
	if at := k.cell.IdleAt(); at != -5400*second+3600*second+1 {
		t.Errorf("idle at %d", at)
	}
}

func TestConcurrencyMisc(t *testing.T) {
	l := headgate.MustParseLimit("concurrency 2 ttl=10s").(headgate.Concurrency)
	second := int64(1_000_000)
	var k key
	acquire := func(now int64, holder string) string {
		return show(k.take(t, now*second, headgate.Charge{Limit: l, Cost: 1, Holder: holder}))
	}
	for _, c := range []struct {
		what, got, want string
	}{
		{"the first", acquire(0, "a"), "allow left 1 reset 10s"},
		{"the second", acquire(1, "b"), "allow left 0 reset 10s"},
		{"no room", acquire(2, "c"), "deny unknown left 0 reset 9s"},
		{"again", acquire(3, "a"), "allow left 0 reset 8s"},
		{"a dead slot's room", acquire(10, "c"), "allow left 0 reset 10s"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	if !Renew(&k.cell, l, "b", 10*second) || Renew(&k.cell, l, "a", 10*second) {
		t.Error("renewing: the living is gone or the dead lives")
	}
	Release(&k.cell, l, "late", 11*second)
	if got := acquire(12, "late"); got != "deny unknown left 0 reset 8s" {
		t.Errorf("an acquire after its release: %s", got)
	}
	Release(&k.cell, l, "b", 12*second)
	Release(&k.cell, l, "c", 12*second)
	if at := k.cell.IdleAt(); at != 21*second { // the tombstone's end
		t.Errorf("idle at %d", at)
	}
	if used := k.cell.Used(12 * second); used != 0 {
		t.Errorf("%d used", used)
	}
}

func TestUsedAndIdle(t *testing.T) {
	for _, c := range []struct {
		limit      string
		cost       int64
		after      time.Duration
		used, idle int64 // idle in ms
	}{
		{"token_bucket 2/s burst=10", 5, time.Second, 3, 2500},
		{"token_bucket 2/s burst=10", 5, 999 * time.Millisecond, 4, 2500},
		{"fixed_window 10/10s", 7, time.Second, 7, 10000},
		{"fixed_window 10/day", 7, time.Second, 7, 86400000},
		{"sliding_log 10/10s", 3, time.Second, 3, 10000},
		{"sliding_window 10/10s cells=5", 3, 11 * time.Second, 3, 12000},
		{"leaky_bucket 2/s capacity=10", 5, time.Second, 3, 2500},
		{"leaky_bucket 2/s max_wait=9s", 5, 999 * time.Millisecond, 4, 2500},
	} {
		var k key
		k.take(t, 0, headgate.Charge{Limit: headgate.MustParseLimit(c.limit), Cost: c.cost})
		if got := k.cell.Used(c.after.Microseconds()); got != c.used {
			t.Errorf("%s: %d used, want %d", c.limit, got, c.used)
		}
		if got := k.cell.IdleAt(); got != c.idle*1000 {
			t.Errorf("%s: idle at %d µs, want %d ms", c.limit, got, c.idle)
		}
		if got := k.cell.Used(k.cell.IdleAt()); got != 0 {
			t.Errorf("%s: %d used when idle", c.limit, got)
		}
	}
	if new(Cell).IdleAt() != headgate.MinTime || new(Cell).Used(0) != 0 {
		t.Error("the zero Cell is in use")
	}
}
