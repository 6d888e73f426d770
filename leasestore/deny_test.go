package leasestore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

const us = time.Microsecond

func after(d time.Duration) headgate.Retry { return headgate.Retry{After: d} }

func TestDenyCountsDown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit        string
		retry, reset time.Duration // of the denial, right after all was taken at 0
		remaining    int64
	}{
		{"fixed_window 2/10s", 10 * time.Second, 10 * time.Second, 0},
		{"token_bucket 2/10s burst=2", 5 * time.Second, 10 * time.Second, 0},
		{"sliding_log 2/10s", 10 * time.Second, 10 * time.Second, 0},
		{"sliding_window 2/10s", 15 * time.Second, 20 * time.Second, 0},
		{"leaky_bucket 2/10s capacity=2", 5 * time.Second, 10 * time.Second, 0},
	} {
		t.Run(tt.limit, func(t *testing.T) {
			t.Parallel()
			r := newDenyRig(t, leasestore.DenyConfig{})
			c := denyCharge("s", tt.limit)
			r.spend(withCost(c, 2))
			first := r.upstream(c).Outcomes[0]
			for _, at := range []time.Duration{0, 1, us, time.Second, tt.retry - 2*us} {
				r.at(at)
				for _, m := range []headgate.Mode{headgate.Pay, headgate.Check} {
					d := r.local(withMode(c, m))
					want := headgate.Outcome{Reason: headgate.ReasonLimited, HasRemaining: true, Remaining: tt.remaining,
						RetryAfter: after((tt.retry - at + us - 1).Truncate(us)), ResetAfter: (tt.reset - at + us - 1).Truncate(us)}
					if d.Outcomes[0] != want || d.Binding != 0 {
						t.Errorf("at %s as %s: got %+v, want %+v", at, m, d.Outcomes[0], want)
					}
				}
			}
			if first.RetryAfter != after(tt.retry) || first.ResetAfter != tt.reset {
				t.Errorf("the table is wrong: %+v", first)
			}
			r.at(tt.retry - us) // within the grain of the store's clock: asked
			r.upstream(c)
			r.at(tt.retry)
			r.spend(c)
		})
	}
}

func TestDenyOnlyWhatIsKnown(t *testing.T) {
	t.Parallel()
	c := denyCharge("s", "token_bucket 10/1m burst=10")
	other := denyCharge("s", "token_bucket 11/1m burst=11")
	for _, tt := range []struct {
		name  string
		ask   headgate.Charge
		local bool
	}{
		{"the same", withCost(c, 5), true},
		{"more", withCost(c, 6), true},
		{"more than ever fits", withCost(c, 11), true},
		{"checking more", withMode(withCost(c, 7), headgate.Check), true},
		{"less", withCost(c, 4), false},
		{"a peek", withCost(c, 0), false},
		{"settling", withMode(withCost(c, 5), headgate.Settle), false},
		{"shadow", withMode(withCost(c, 5), headgate.Shadow), false},
		{"another limit", withCost(other, 5), false},
		{"a limit that is equal", withCost(denyCharge("s", "gcra 10/1m burst=10"), 5), true},
		{"another key", headgate.Charge{Slot: "s", Key: "kk", Limit: c.Limit, Cost: 5}, false},
		{"another slot", headgate.Charge{Slot: "ss", Key: "k", Limit: c.Limit, Cost: 5}, false},
		{"the same letters", headgate.Charge{Slot: "", Key: "sk", Limit: c.Limit, Cost: 5}, false},
		{"a lockout that must count", withLockout(withCost(c, 5), headgate.Lockout{After: 9, Within: time.Hour, For: time.Hour}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newDenyRig(t, leasestore.DenyConfig{})
			r.spend(withCost(c, 7))
			r.upstream(withCost(c, 5))
			if _, asked := r.take(tt.ask); asked == tt.local {
				t.Errorf("the store was asked: %v", asked)
			}
		})
	}
}

func TestDenyKeepsTheLowestCost(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "token_bucket 1/1s burst=10")
	r.spend(withCost(c, 10))
	r.upstream(withCost(c, 3))
	r.upstream(withCost(c, 2))
	r.local(withCost(c, 2))
	r.at(time.Second)
	r.local(withCost(c, 5))
	r.at(2 * time.Second) // the denial of 2 is over
	r.upstream(withCost(c, 5))
	r.local(withCost(c, 5))
	r.spend(withCost(c, 2))
	r.local(withCost(c, 5)) // a take that was allowed makes nothing possible

	// What is answered late does not push out what says more: two takes are on the wire at a time.
	r.at(time.Hour)
	r.spend(withCost(c, 10))
	r.up.afterTake = func() { r.upstream(withCost(c, 2)) }
	r.upstream(withCost(c, 3))
	r.local(withCost(c, 2))

	// Nor does it stay for a denial by another limit.
	r.at(2 * time.Hour)
	other := denyCharge("s", "token_bucket 1/2s burst=10")
	r.spend(withCost(c, 10))
	r.up.beforeTake = func() { r.upstream(withCost(c, 2)) }
	r.upstream(withCost(other, 3))
	r.local(withCost(other, 3))
}

func TestDenyBoundsItsBelief(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	day, never := denyCharge("day", "fixed_window 1/1d"), withCost(denyCharge("never", "fixed_window 1/1d"), 2)
	r.spend(day)
	r.upstream(day)
	r.upstream(never)
	r.at(time.Minute - us)
	if o := r.local(day).Outcomes[0]; o.RetryAfter != after(24*time.Hour-time.Minute+us) {
		t.Errorf("the day: %+v", o)
	}
	want := headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, Remaining: 1, RetryAfter: headgate.Retry{State: headgate.RetryNever}}
	if o := r.local(never).Outcomes[0]; o != want {
		t.Errorf("never: %+v", o)
	}
	if o := r.local(withCost(never, 3)).Outcomes[0]; o.Reason != headgate.ReasonCostExceedsLimit {
		t.Errorf("never, and more: %+v", o)
	}
	r.spend(withCost(never, 1))
	r.at(time.Minute)
	r.upstream(day)
	r.upstream(never)

	r = newDenyRig(t, leasestore.DenyConfig{MaxAge: time.Hour})
	r.spend(day)
	r.upstream(day)
	r.at(time.Hour - us)
	r.local(day)
	r.at(time.Hour)
	r.upstream(day)
}

// TestDenySlowAnswers: what is believed is reckoned from the sending, so that it ends before the store would let the charge pass; what
// is told from the answer, so that nobody comes back too early.
func TestDenySlowAnswers(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "fixed_window 1/10s")
	r.spend(c)
	r.up.afterTake = func() { r.at(2 * time.Second) } // the store has said 10 s, at 0
	r.upstream(c)
	r.at(3 * time.Second)
	if o := r.local(c).Outcomes[0]; o.RetryAfter != after(9*time.Second) || o.ResetAfter != 9*time.Second {
		t.Errorf("got %+v", o)
	}
	r.at(10*time.Second - 2*us)
	r.local(c)
	r.at(10 * time.Second)
	r.spend(c)
	r.up.afterTake = func() { r.at(20 * time.Second) } // nothing of the time is left
	r.upstream(c)
	r.spend(c)
	if n := r.cache.Stats().Keys; n != 1 {
		t.Errorf("%d keys are kept, want that of 0 s alone", n)
	}
}

func TestDenyNeverConcurrency(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "concurrency 1 ttl=1h")
	c.Holder = "a"
	r.spend(c)
	c.Holder = "b"
	shut := withLockout(c, headgate.Lockout{After: 1, For: time.Hour})
	for range 3 {
		r.upstream(c)
		r.upstream(shut)
	}
	if n := r.cache.Stats().Keys; n != 0 {
		t.Errorf("%d keys are kept", n)
	}
}

func TestDenyForgets(t *testing.T) {
	t.Parallel()
	c := denyCharge("s", "fixed_window 1/1h")
	ctx := context.Background()
	for name, event := range map[string]func(r *denyRig, paid []headgate.Charge, d *headgate.Decision) error{
		"reset":  func(r *denyRig, _ []headgate.Charge, _ *headgate.Decision) error { return r.cache.Reset(ctx, "s", "k") },
		"refund": func(r *denyRig, p []headgate.Charge, d *headgate.Decision) error { return r.cache.Refund(ctx, p, d) },
		"forget": func(r *denyRig, _ []headgate.Charge, _ *headgate.Decision) error {
			r.cache.Forget("s", "k")
			return r.store.Reset(ctx, "s", "k")
		},
		"forgetall": func(r *denyRig, _ []headgate.Charge, _ *headgate.Decision) error {
			r.cache.ForgetAll()
			return r.store.Reset(ctx, "s", "k")
		},
	} {
		for _, key := range []string{"k", strings.Repeat("long ", 100)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if key != "k" && name != "refund" {
					t.Skip("the event names the short key")
				}
				r, c := newDenyRig(t, leasestore.DenyConfig{}), c
				c.Key = key
				paid := []headgate.Charge{c}
				d := r.spend(paid...)
				r.upstream(c)
				r.local(c)
				if err := event(r, paid, &d); err != nil {
					t.Fatal(err)
				}
				if n := r.cache.Stats().Keys; n != 0 {
					t.Errorf("%d keys are kept", n)
				}
				r.spend(c)
			})
		}
	}
}

func TestDenyForgetsOneKeyOnly(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{MaxKeys: 6}) // one bucket
	a, b := denyCharge("s", "fixed_window 0/1h"), denyCharge("t", "fixed_window 0/1h")
	r.upstream(a)
	r.upstream(b)
	r.cache.Forget("s", "k")
	r.local(b)
	r.upstream(a)
}

func TestDenyAndSettling(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "fixed_window 5/1h")
	settling := withMode(withCost(c, 9), headgate.Settle)
	r.spend(withCost(c, 3))
	r.upstream(withCost(c, 3))
	if o := r.local(withCost(c, 3)).Outcomes[0]; o.Remaining != 2 {
		t.Errorf("want 2 left, got %+v", o)
	}
	r.spend(settling)
	if o := r.upstream(withCost(c, 3)).Outcomes[0]; o.Remaining != 0 {
		t.Errorf("want nothing left, got %+v", o)
	}
	r.spend(settling) // nothing is left to be charged, so nothing has changed
	r.local(withCost(c, 3))
}

func TestDenyAndAChangedLimit(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	low, high := denyCharge("s", "fixed_window 1/1h"), denyCharge("s", "fixed_window 9/2h")
	r.spend(low)
	r.upstream(low)
	r.local(low)
	r.spend(high)
	r.spend(low) // another period has made the state start fresh
	r.upstream(low)
	// A denial by the old limit that was sent after the change and got to the store before it.
	r.up.beforeTake = func() { r.upstream(low) }
	r.spend(high)
	r.spend(low)
}

func TestDenyRefusesWhatTheStoreWould(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "fixed_window 0/1h")
	r.upstream(c)
	over, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("gone home")
	cancel(cause)
	d := headgate.Decision{Allowed: true, Outcomes: make([]headgate.Outcome, 3)}
	err := r.cache.Take(over, []headgate.Charge{c}, &d)
	if headgate.CodeOf(err) != headgate.CodeTimeout || !errors.Is(err, cause) || len(d.Outcomes) != 0 || d.Allowed {
		t.Errorf("a context that is over: %v, %+v", err, d)
	}
	for _, tt := range []struct {
		charges []headgate.Charge
		code    headgate.Code
	}{
		{[]headgate.Charge{c, c}, headgate.CodeDuplicateCharge},
		{[]headgate.Charge{c, {Slot: "x", Cost: 1}}, headgate.CodeInvalidLimit},
		{[]headgate.Charge{withCost(c, -1)}, headgate.CodeInvalidCost},
		{[]headgate.Charge{{}}, headgate.CodeInvalidLimit},
		{append(make([]headgate.Charge, headgate.MaxCharges), c), headgate.CodeTooManyCharges},
	} {
		if _, err := headgate.Take(context.Background(), r.cache, tt.charges...); headgate.CodeOf(err) != tt.code {
			t.Errorf("want %s, got %v", tt.code, err)
		}
	}
	if d, asked := r.take(); !d.Allowed || !asked {
		t.Errorf("no charges: %+v", d)
	}
	if s := r.cache.Stats(); s.Hits != 0 {
		t.Errorf("refusals are no hits: %+v", s)
	}
}

func TestDenyLongAndHostileKeys(t *testing.T) {
	t.Parallel()
	limit := headgate.MustParseLimit("fixed_window 0/1h")
	long := strings.Repeat("x", 1000)
	for _, tt := range []struct{ a, b headgate.Charge }{
		{headgate.One("s", long, limit), headgate.One("s", long+"x", limit)},
		{headgate.One("sx", long, limit), headgate.One("s", "x"+long, limit)},
		{headgate.One(long, "k", limit), headgate.One(long, "kk", limit)},
		{headgate.One("s", long[:254], limit), headgate.One("s", long[:255], limit)},
		{headgate.One("s", long[:255], limit), headgate.One("s", long[:256], limit)},
		{headgate.One("s", long[:79], limit), headgate.One("s", long[:80], limit)},
		{headgate.One("", "", limit), headgate.One("", "\x00", limit)},
		{headgate.One("a", "\x00b", limit), headgate.One("a\x00", "b", limit)},
	} {
		r := newDenyRig(t, leasestore.DenyConfig{MaxKeys: 6})
		r.upstream(tt.a)
		r.local(tt.a)
		r.upstream(tt.b)
		r.local(tt.b)
		r.local(tt.a)
	}
}

func TestDenyKeepsNothingOfTheCaller(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	lock := &headgate.Lockout{After: 1, For: 30 * time.Second}
	c := denyCharge("s", "fixed_window 0/1h")
	c.Lockout = lock
	r.upstream(c)
	lock.For = 20 * time.Second // another lockout from now on
	r.upstream(c)
	lock.For = 20 * time.Second
	r.local(c)
}

func TestDenyStats(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "fixed_window 1/10s")
	r.spend(c)
	r.upstream(c)
	for range 3 {
		r.local(c)
	}
	if s := r.cache.Stats(); s != (leasestore.DenyStats{Keys: 1, Hits: 3, Misses: 2}) {
		t.Errorf("got %+v", s)
	}
}
