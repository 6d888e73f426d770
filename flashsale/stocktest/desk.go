package stocktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// start is where virtual time begins.
func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// clock is virtual: it stands until it is moved.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time          { return start().Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// newKey names a sku that nobody else uses, in whatever store.
func newKey() flashsale.Key {
	return flashsale.Key{Sale: "st-" + rand.Text()[:16], SKU: "sku-1.a_b"}
}

// tb is what a desk needs of a test, be it an ordinary one or one of rapid's.
type tb interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// desk is a test's place at a stock: a clock, a key, the epoch that it believes in.
type desk struct {
	tb
	ctx      context.Context
	stock    Stock
	clock    *clock
	key      flashsale.Key
	epoch    int64
	settings flashsale.Settings
}

func newDesk(t *testing.T, open Open) *desk {
	t.Helper()
	c := &clock{}
	return &desk{
		tb: t, ctx: t.Context(), stock: open(t, c.now), clock: c, key: newKey(), epoch: 1,
		settings: flashsale.Settings{
			Version: 1, Status: flashsale.Open, OpensAt: start(), ClosesAt: start().Add(100 * time.Hour), PurchaseLimit: 5, Rate: 1000,
		},
	}
}

// on returns the same desk for a parallel test or another sku of the same store.
func (d *desk) on(key flashsale.Key) *desk {
	other := *d
	other.key = key
	return &other
}

// check fails the test unless an error is nil.
func (d *desk) check(what string, err error) {
	d.Helper()
	if err != nil {
		d.Fatalf("%s: %v", what, err)
	}
}

// fails makes the test fail unless an error has a code.
func (d *desk) fails(what string, err error, code flashsale.Code) {
	d.Helper()
	if flashsale.CodeOf(err) != code {
		d.Fatalf("%s: want an error with the code %q, got %q: %v", what, code, flashsale.CodeOf(err), err)
	}
}

func equal[T comparable](d *desk, what string, got, want T) {
	d.Helper()
	if got != want {
		d.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sell makes the sku one with total units, on sale.
func (d *desk) sell(total int64) {
	d.Helper()
	d.point()
	d.load(flashsale.LoadPart{Last: true, Total: total})
	d.configure()
}

func (d *desk) point() []int64 {
	d.Helper()
	older, err := d.stock.Point(d.ctx, d.key, d.epoch)
	d.check("Point", err)
	return older
}

// load loads a part with the settings of the desk, which are without force until configure.
func (d *desk) load(part flashsale.LoadPart) {
	d.Helper()
	part.Settings = d.settings
	d.check("Load", d.stock.Load(d.ctx, d.key, d.epoch, &part))
}

func (d *desk) configure() {
	d.Helper()
	d.check("Configure", d.stock.Configure(d.ctx, d.key, d.epoch, &d.settings))
}

// set changes the settings and puts them in force.
func (d *desk) set(change func(s *flashsale.Settings)) {
	d.Helper()
	d.settings.Version++
	change(&d.settings)
	d.configure()
}

func (d *desk) ask(rid, user string, quantity int64) *flashsale.Ask {
	return &flashsale.Ask{RID: rid, User: user, Quantity: quantity, Body: flashsale.BodyHash(d.key, user, quantity)}
}

// reserve calls T0; the figures must add up afterwards.
func (d *desk) reserve(ask *flashsale.Ask) flashsale.Answer {
	d.Helper()
	a, err := d.stock.Reserve(d.ctx, d.key, d.epoch, ask)
	d.check("Reserve", err)
	v := d.view()
	if a.Available != v.Available || a.Seq != v.Seq {
		d.Fatalf("Reserve says available %d at seq %d, the view %d at %d", a.Available, a.Seq, v.Available, v.Seq)
	}
	return a
}

// accept reserves, and fails the test unless that is accepted.
func (d *desk) accept(rid, user string, quantity int64) flashsale.Answer {
	d.Helper()
	a := d.reserve(d.ask(rid, user, quantity))
	if !a.Accepted || a.Known || a.Code != "" {
		d.Fatalf("%q for %q: want it accepted, got %+v", rid, user, a)
	}
	return a
}

// refuse reserves, and fails the test unless that is refused with a code and leaves no trace.
func (d *desk) refuse(ask *flashsale.Ask, code flashsale.Code) flashsale.Answer {
	d.Helper()
	before := d.view()
	a := d.reserve(ask)
	if a.Accepted || a.Known || a.Code != code {
		d.Fatalf("%q for %q: want it refused with %q, got %+v", ask.RID, ask.User, code, a)
	}
	if a.Entry != (flashsale.Entry{}) {
		d.Fatalf("a refusal with an entry: %+v", a.Entry)
	}
	if after := d.view(); after != before {
		d.Fatalf("a refusal leaves a trace:\nbefore %+v\nafter  %+v", before, after)
	}
	return a
}

// repeat reserves what is known, and fails the test unless it is answered as such and changes nothing.
func (d *desk) repeat(ask *flashsale.Ask, state flashsale.State, version int64) flashsale.Answer {
	d.Helper()
	before := d.view()
	a := d.reserve(ask)
	if a.Accepted || !a.Known || a.Code != "" {
		d.Fatalf("%q for %q again: want it known, got %+v", ask.RID, ask.User, a)
	}
	if e := a.Entry; e.RID != ask.RID || e.User != ask.User || e.Quantity != ask.Quantity || e.State != state || e.Version != version {
		d.Fatalf("%q again: want it %s at version %d, got %+v", ask.RID, state, version, e)
	}
	if after := d.view(); after != before {
		d.Fatalf("a repeat leaves a trace:\nbefore %+v\nafter  %+v", before, after)
	}
	return a
}

// view returns the figures, and fails the test unless they add up.
func (d *desk) view() flashsale.StockView {
	d.Helper()
	v, err := d.stock.View(d.ctx, d.key)
	d.check("View", err)
	if v.Available < 0 || v.Held < 0 || v.Sold < 0 || v.Available+v.Held+v.Sold != v.Total {
		d.Fatalf("the figures do not add up: %+v", v)
	}
	v.Now, v.Settings.OpensAt, v.Settings.ClosesAt = v.Now.UTC(), v.Settings.OpensAt.UTC(), v.Settings.ClosesAt.UTC()
	return v
}

// figures fails the test unless the counters are these.
func (d *desk) figures(available, held, sold int64) {
	d.Helper()
	v := d.view()
	if got, want := [3]int64{v.Available, v.Held, v.Sold}, [3]int64{available, held, sold}; got != want {
		d.Fatalf("available, held and sold: got %v, want %v", got, want)
	}
}

// depth fails the test unless the queue has so many jobs, so many of them pulled, and so many dead letters.
func (d *desk) depth(depth, pulled, dead int64) {
	d.Helper()
	q := d.view().Queue
	if got, want := [3]int64{q.Depth, q.Pulled, q.Dead}, [3]int64{depth, pulled, dead}; got != want {
		d.Fatalf("depth, pulled and dead: got %v, want %v", got, want)
	}
}

// effect is what SQL says of a reservation.
func effect(rid, user string, quantity int64, state flashsale.State, version int64) flashsale.Effect {
	return flashsale.Effect{RID: rid, User: user, Quantity: quantity, State: state, Version: version}
}

// apply lets the stock follow one effect, and fails the test unless this becomes of it.
func (d *desk) apply(e flashsale.Effect, want flashsale.Applied) {
	d.Helper()
	before := d.view()
	got, err := d.stock.Apply(d.ctx, d.key, d.epoch, []flashsale.Effect{e}, nil)
	d.check("Apply", err)
	if len(got) != 1 || got[0] != want {
		d.Fatalf("%s to %s at version %d: applied as %v, want %v", e.RID, e.State, e.Version, got, want)
	}
	after := d.view()
	if want != flashsale.AppliedMoved && want != flashsale.AppliedStored && after != before {
		d.Fatalf("%s to %s at version %d changes what it must not:\nbefore %+v\nafter  %+v", e.RID, e.State, e.Version, before, after)
	}
	if want == flashsale.AppliedMoved && after.Seq <= before.Seq {
		d.Fatalf("%s to %s: seq stays at %d", e.RID, e.State, after.Seq)
	}
}

// ack acknowledges jobs.
func (d *desk) ack(ids ...string) {
	d.Helper()
	applied, err := d.stock.Apply(d.ctx, d.key, d.epoch, nil, ids)
	d.check("Apply", err)
	equal(d, "results for no effects", len(applied), 0)
}

const reclaim = 5 * time.Second

func (d *desk) pull(consumer string, limit int) []flashsale.Job {
	d.Helper()
	jobs, err := d.stock.Pull(d.ctx, d.key, d.epoch, consumer, limit, reclaim)
	d.check("Pull", err)
	return jobs
}

// pulls fails the test unless a consumer gets the jobs of just these rids, in this order.
func (d *desk) pulls(consumer string, limit int, rids ...string) []flashsale.Job {
	d.Helper()
	jobs := d.pull(consumer, limit)
	got := make([]string, len(jobs))
	for i := range jobs {
		got[i] = jobs[i].RID
	}
	if fmt.Sprint(got) != fmt.Sprint(rids) {
		d.Fatalf("%s pulls %v, want %v", consumer, got, rids)
	}
	return jobs
}

func ids(jobs []flashsale.Job) []string {
	out := make([]string, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].ID
	}
	return out
}

func (d *desk) find(rid string) flashsale.Entry {
	d.Helper()
	found, err := d.stock.Find(d.ctx, d.key, d.epoch, []string{rid})
	d.check("Find", err)
	if len(found) != 1 || found[0].RID != rid {
		d.Fatalf("Find %q: %+v", rid, found)
	}
	return found[0]
}

// is fails the test unless the stock knows a rid in this state and version.
func (d *desk) is(rid string, state flashsale.State, version int64) {
	d.Helper()
	if e := d.find(rid); e.State != state || e.Version != version {
		d.Fatalf("%q is %s at version %d, want %s at %d", rid, e.State, e.Version, state, version)
	}
}
