package leasestore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// bench is a leased store over one in memory, in virtual time.
type rig struct {
	t     *testing.T
	mem   *memstore.Store
	calls *counted
	*leasestore.Store
}

// counted counts the takes and refunds that reach the upstream.
type counted struct {
	*memstore.Store
	takes, refunds int
	last           []headgate.Charge
	fail           error
}

func (c *counted) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	c.takes++
	c.last = append([]headgate.Charge(nil), charges...)
	time.Sleep(time.Millisecond)
	if c.fail != nil {
		d.Reset(0)
		return c.fail
	}
	return c.Store.Take(ctx, charges, d)
}

func (c *counted) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	c.refunds++
	return c.Store.Refund(ctx, charges, d)
}

func inBubble(t *testing.T, cfg leasestore.Config, do func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New(memstore.Config{Now: time.Now})
		c := &counted{Store: m}
		r := &rig{t: t, mem: m, calls: c, Store: leasestore.New(c, cfg)}
		do(r)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		_ = m.Close()
	})
}

func (r *rig) take(charges ...headgate.Charge) headgate.Decision {
	r.t.Helper()
	d, err := headgate.Take(context.Background(), r.Store, charges...)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// left is what the upstream has left.
func (r *rig) left(c headgate.Charge) int64 {
	r.t.Helper()
	c.Cost = 0
	d, err := headgate.Take(context.Background(), r.mem, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return d.Outcomes[0].Remaining
}

func TestGrowsWithTheLoadAndGivesBack(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := headgate.One("s", "k", headgate.MustParseLimit("fixed_window 1000000/1h"))
		for range 20_000 { // 2 s at 10,000/s
			if d := r.take(c); !d.Allowed {
				t.Fatalf("denied: %+v", d)
			}
			time.Sleep(100 * time.Microsecond)
		}
		if st := r.Stats(); r.calls.takes > 100 || st.Held > 1100 {
			t.Errorf("%d calls for 20,000 takes, %+v", r.calls.takes, st)
		}
		time.Sleep(3 * time.Second)
		if st := r.Stats(); st.Held != 0 || st.Lost != 0 || st.Keys != 0 {
			t.Errorf("an idle store holds %+v", st)
		}
		if got := r.left(c); got != 1_000_000-20_000 {
			t.Errorf("%d left", got)
		}
	})
}
