package leasestore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

// TestDenyHasTheAbilitiesOfTheStore: what is not remembered passes through, with its answers.
func TestDenyHasTheAbilitiesOfTheStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("slots", "concurrency 1 ttl=10s")
	c.Holder = "a"
	r.spend(c)
	if alive, err := r.cache.Renew(ctx, &c); !alive || err != nil {
		t.Errorf("renew: %v, %v", alive, err)
	}
	if err := r.cache.Release(ctx, &c); err != nil {
		t.Errorf("release: %v", err)
	}
	if alive, err := r.cache.Renew(ctx, &c); alive || err != nil {
		t.Errorf("renew after the release: %v, %v", alive, err)
	}
	w := denyCharge("s", "fixed_window 3/10s")
	d := r.spend(withCost(w, 2))
	if in, err := r.cache.Inspect(ctx, "s", "k"); err != nil || !in.Found || in.Used != 2 {
		t.Errorf("inspect: %+v, %v", in, err)
	}
	if err := r.cache.Refund(ctx, []headgate.Charge{withCost(w, 2)}, &d); err != nil || d.Outcomes[0].Receipt.Charged != 0 {
		t.Errorf("refund: %+v, %v", d, err)
	}
	if err := r.cache.Reset(ctx, "s", "k"); err != nil {
		t.Errorf("reset: %v", err)
	}
	if in, err := r.cache.Inspect(ctx, "s", "k"); err != nil || in.Found {
		t.Errorf("inspect after the reset: %+v, %v", in, err)
	}
}

// TestDenyAtATimeIsTheStores: a time that is passed in has nothing to do with the time of the cache.
func TestDenyAtATimeIsTheStores(t *testing.T) {
	t.Parallel()
	r := newDenyRig(t, leasestore.DenyConfig{})
	c := denyCharge("s", "fixed_window 1/10s")
	r.spend(c)
	r.upstream(c)
	if d, err := headgate.Take(context.Background(), r.cache.At(r.now.Add(10*time.Second)), c); err != nil || !d.Allowed {
		t.Errorf("ten seconds on: %+v, %v", d, err)
	}
}

// TestDenyWithoutAbilities: over a Limiter that can only take, the others are refused, and say so.
func TestDenyWithoutAbilities(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cache := leasestore.NewDenyCache(nothing{}, leasestore.DenyConfig{})
	c := denyCharge("s", "fixed_window 1/10s")
	d := headgate.Decision{Allowed: true}
	_, renew := cache.Renew(ctx, &c)
	_, inspect := cache.Inspect(ctx, "s", "k")
	for name, err := range map[string]error{
		"refund": cache.Refund(ctx, []headgate.Charge{c}, &d), "renew": renew, "release": cache.Release(ctx, &c),
		"reset": cache.Reset(ctx, "s", "k"), "inspect": inspect, "at": cache.At(time.Now()).Take(ctx, []headgate.Charge{c}, &d),
	} {
		if headgate.CodeOf(err) != headgate.CodeUnsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Allowed {
		t.Error("a take that was refused is allowed")
	}
}

// TestDenyPassesErrorsOn: an error is no denial, and nothing is learned from it.
func TestDenyPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	cache := leasestore.NewDenyCache(failing{broken}, leasestore.DenyConfig{})
	for range 2 {
		if _, err := headgate.Take(context.Background(), cache, denyCharge("s", "fixed_window 1/10s")); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	if s := cache.Stats(); s != (leasestore.DenyStats{Misses: 2}) {
		t.Errorf("%+v", s)
	}
}

// failing is a Limiter that leaves something that looks like a denial beside its error.
type failing struct{ err error }

func (f failing) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	d.Reset(len(charges))
	for i := range d.Outcomes {
		d.Outcomes[i] = headgate.Outcome{Reason: headgate.ReasonLimited, RetryAfter: headgate.Retry{After: time.Hour}}
	}
	return f.err
}

// TestDenyAllocatesNothing: neither a denial in process nor what a take pays that is passed on.
func TestDenyAllocatesNothing(t *testing.T) { // not parallel: it counts what all allocate
	ctx := context.Background()
	r := newDenyRig(t, leasestore.DenyConfig{})
	denied, fine := denyCharge("s", "fixed_window 0/10s"), denyCharge("fine", "fixed_window 9/10s")
	r.upstream(denied)
	var d headgate.Decision
	hit, miss := []headgate.Charge{fine, denied}, []headgate.Charge{fine}
	if n := testing.AllocsPerRun(100, func() { _ = r.cache.Take(ctx, hit, &d) }); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
	if d.Allowed {
		t.Error("it was no hit")
	}
	cache := leasestore.NewDenyCache(nothing{}, leasestore.DenyConfig{})
	if n := testing.AllocsPerRun(100, func() { _ = cache.Take(ctx, miss, &d) }); n != 0 {
		t.Errorf("a miss allocates %v times", n)
	}
}
