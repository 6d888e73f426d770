package leasestore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// rtt is how long a call of the rig's upstream takes.
const rtt = time.Millisecond

// rig is a leased store over one in memory, in virtual time.
type rig struct {
	t     *testing.T
	mem   *memstore.Store
	calls *counted
	*leasestore.Store
}

// counted is an upstream that takes its time, counts the calls and can fail.
type counted struct {
	*memstore.Store
	mu             sync.Mutex
	takes, refunds int
	last           []headgate.Charge // of the last take
	fail           error
	hang           bool
}

func (c *counted) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	c.mu.Lock()
	c.takes++
	c.last = append([]headgate.Charge(nil), charges...)
	fail, hang := c.fail, c.hang
	c.mu.Unlock()
	d.Reset(0)
	if hang {
		<-ctx.Done()
		return &headgate.Error{Code: headgate.CodeIndeterminate, Charge: -1, Err: ctx.Err()}
	}
	time.Sleep(rtt / 2)
	if fail != nil {
		return fail
	}
	err := c.Store.Take(context.Background(), charges, d)
	time.Sleep(rtt / 2)
	return err
}

func (c *counted) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	c.mu.Lock()
	c.refunds++
	hang := c.hang
	c.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Store.Refund(context.Background(), charges, d)
}

func (c *counted) set(fail error, hang bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail, c.hang = fail, hang
}

func (c *counted) count() (takes, refunds int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takes, c.refunds
}

// inBubble runs a test on a rig in virtual time, which begins at a whole second.
func inBubble(t *testing.T, cfg leasestore.Config, do func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New(memstore.Config{Now: time.Now})
		c := &counted{Store: m}
		r := &rig{t: t, mem: m, calls: c, Store: leasestore.New(c, cfg)}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			_ = m.Close()
		}()
		do(r)
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

// allow takes and expects an allowance.
func (r *rig) allow(charges ...headgate.Charge) headgate.Decision {
	r.t.Helper()
	d := r.take(charges...)
	if !d.Allowed {
		r.t.Fatalf("denied: %+v", d)
	}
	return d
}

// warm takes so often, every so often, and expects allowances.
func (r *rig) warm(times int, every time.Duration, charges ...headgate.Charge) {
	r.t.Helper()
	for range times {
		r.allow(charges...)
		time.Sleep(every)
	}
}

// left is what the upstream has left.
func (r *rig) left(c headgate.Charge) int64 { return r.strict(c, 0).Remaining }

// pause lets virtual time pass.
func pause(d time.Duration) { time.Sleep(d) }

// strict is what the upstream says of a cost.
func (r *rig) strict(c headgate.Charge, cost int64) headgate.Outcome {
	r.t.Helper()
	c.Cost, c.Mode = cost, headgate.Check
	d, err := headgate.Take(context.Background(), r.mem, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return d.Outcomes[0]
}

func charge(limit string) headgate.Charge {
	return headgate.One("s", "k", headgate.MustParseLimit(limit))
}

func refund(r *rig, d *headgate.Decision, charges ...headgate.Charge) {
	r.t.Helper()
	if err := r.Refund(context.Background(), charges, d); err != nil {
		r.t.Error(err)
	}
}
