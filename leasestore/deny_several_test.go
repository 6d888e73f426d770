package leasestore_test

import (
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

// TestDenySeveral: one charge that is known to be denied denies the take, unless another's lockout must count.
func TestDenySeveral(t *testing.T) {
	t.Parallel()
	denied, longer := denyCharge("denied", "fixed_window 0/1h"), denyCharge("longer", "sliding_log 1/2h")
	fine := denyCharge("fine", "fixed_window 9/1h")
	counting := withLockout(fine, headgate.Lockout{After: 2, Within: time.Hour, For: time.Hour})
	counting.Slot = "counting"
	empty := withLockout(denyCharge("empty", "fixed_window 0/1h"), headgate.Lockout{After: 9, Within: time.Hour, For: time.Hour})
	shut := withLockout(denyCharge("shut", "fixed_window 0/1h"), headgate.Lockout{After: 1, For: time.Hour})
	slot := denyCharge("slot", "concurrency 1 ttl=1h")
	slot.Holder = "a"
	for _, tt := range []struct {
		name    string
		charges []headgate.Charge
		local   bool
		binding int
	}{
		{"with a fine one", []headgate.Charge{fine, denied}, true, 1},
		{"never binds before a time", []headgate.Charge{longer, denied, fine}, true, 1},
		{"two times", []headgate.Charge{longer, fine}, true, 0},
		{"only checked", []headgate.Charge{fine, withMode(denied, headgate.Check)}, true, 1},
		{"with a slot", []headgate.Charge{slot, denied}, true, 1},
		{"settling does not bind", []headgate.Charge{fine, withMode(denied, headgate.Settle)}, false, 0},
		{"shadow does not bind", []headgate.Charge{fine, withMode(denied, headgate.Shadow)}, false, 0},
		{"a shadow that is shut does not bind", []headgate.Charge{fine, withMode(shut, headgate.Shadow)}, false, 0},
		{"a lockout of a charge that would pass", []headgate.Charge{denied, counting}, false, 0},
		{"a lockout that must count this one", []headgate.Charge{denied, empty}, false, 0},
		{"a lockout of a shadow", []headgate.Charge{denied, withMode(empty, headgate.Shadow)}, false, 0},
		{"a lockout of a check", []headgate.Charge{withMode(empty, headgate.Check), denied}, false, 0},
		{"a lockout of a settling one", []headgate.Charge{denied, withMode(empty, headgate.Settle)}, true, 0},
		{"a lockout of a peek", []headgate.Charge{denied, withCost(empty, 0)}, true, 0},
		{"settling what is denied", []headgate.Charge{denied, withMode(longer, headgate.Settle)}, true, 0},
		{"a lockout that has shut", []headgate.Charge{fine, shut}, true, 1},
		{"a lockout that has shut, of a shadow", []headgate.Charge{withMode(shut, headgate.Shadow), denied}, true, 1},
		{"shut, and one that must count", []headgate.Charge{shut, empty}, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newDenyRig(t, leasestore.DenyConfig{})
			r.spend(longer)
			for _, c := range []headgate.Charge{denied, longer, shut} {
				r.upstream(c)
				r.local(c)
			}
			d, asked := r.take(tt.charges...)
			if asked == tt.local {
				t.Fatalf("the store was asked: %v", asked)
			}
			if !tt.local {
				return
			}
			if d.Allowed || d.Binding != tt.binding {
				t.Errorf("got %+v, want %d to bind", d, tt.binding)
			}
			for i, o := range d.Outcomes {
				slot := tt.charges[i].Slot
				known := (slot == "denied" || slot == "longer" || slot == "shut") && tt.charges[i].Mode != headgate.Settle
				if !known && o != (headgate.Outcome{Allowed: true}) {
					t.Errorf("charge %d: want nothing to be known, got %+v", i, o)
				}
				if known && (o.Allowed || o.Reason == headgate.ReasonNone) {
					t.Errorf("charge %d: want it denied, got %+v", i, o)
				}
			}
		})
	}
}

// TestDenyLearnsFromSeveral: of a denied take every charge that was denied is remembered, and no other.
func TestDenyLearnsFromSeveral(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	a, b, fine := denyCharge("a", "fixed_window 0/1h"), denyCharge("b", "fixed_window 0/1h"), denyCharge("fine", "fixed_window 9/1h")
	shadow := withMode(denyCharge("shadow", "fixed_window 0/1h"), headgate.Shadow)
	r.upstream(fine, a, shadow, withMode(b, headgate.Check))
	r.local(a)
	r.local(b)
	r.spend(fine)
	r.upstream(withMode(shadow, headgate.Pay))
	// More charges than fit on the stack.
	var many []headgate.Charge
	for i := range 12 {
		c := fine
		c.Slot = string(rune('A' + i))
		many = append(many, c)
	}
	r.spend(many...)
	r.local(append(many, b)...)
}

func TestDenyLockout(t *testing.T) {
	t.Parallel()
	lock := headgate.Lockout{After: 3, Within: time.Minute, For: 50 * time.Second}
	plain := denyCharge("s", "fixed_window 1/1h")
	c := withLockout(plain, lock)
	r := newDenyRig(t, leasestore.DenyConfig{})
	r.spend(c)
	r.upstream(c)
	r.upstream(withMode(c, headgate.Check))
	if n := r.cache.Stats().Keys; n != 0 {
		t.Errorf("%d keys are kept though all denials must count", n)
	}
	r.upstream(withCost(c, 2)) // never fits, and counts: the third
	r.at(10 * time.Second)
	want := headgate.Outcome{Reason: headgate.ReasonLockedOut, HasRemaining: true, RetryAfter: after(40 * time.Second), ResetAfter: time.Hour - 10*time.Second}
	for _, ask := range []headgate.Charge{c, withCost(c, 0), withCost(c, 7), withMode(c, headgate.Check), withMode(withCost(c, 0), headgate.Check)} {
		if o := r.local(ask).Outcomes[0]; o != want {
			t.Errorf("%s of %d: got %+v, want %+v", ask.Mode, ask.Cost, o, want)
		}
	}
	r.spend(withMode(c, headgate.Settle))
	r.spend(withCost(plain, 0))
	r.upstream(plain) // not under the lockout
	r.local(c)        // which goes on
	longer := lock
	longer.For = time.Minute
	r.upstream(withLockout(plain, longer)) // nothing is known of another lockout
	r.upstream(c)
	r.local(c)
	r.at(50*time.Second - us)
	r.upstream(c)
	r.at(50 * time.Second)
	for range 3 { // open again: it counts from the beginning
		r.upstream(c)
	}
	r.local(c)
}

// TestDenyShadowLockout: a shadow's lockout is known once it has shut, so that it does not let an attack through to the store.
func TestDenyShadowLockout(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	denied := denyCharge("denied", "fixed_window 0/1h")
	shadow := withMode(withLockout(denyCharge("shadow", "fixed_window 0/1h"), headgate.Lockout{After: 2, Within: time.Hour, For: time.Hour}), headgate.Shadow)
	r.upstream(denied, shadow)
	r.upstream(denied, shadow)
	d := r.local(denied, shadow)
	if o := d.Outcomes[1]; o.Allowed || o.Reason != headgate.ReasonLockedOut || d.Binding != 0 {
		t.Errorf("got %+v", d)
	}
}
