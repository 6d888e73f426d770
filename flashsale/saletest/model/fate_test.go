package model

import (
	"context"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// leases is longer than every lease of a job.
const leases = 6 * time.Second

// maxSkew is how far a store's clock is ahead or behind at most.
const maxSkew = 10 * time.Second

// fate draws what goes wrong before the next step, if anything does.
func (w *world) fate() {
	if w.down > 0 {
		if w.down--; w.down == 0 {
			w.provider.SetOutage(simpay.Up)
		}
	}
	w.blind = max(w.blind-1, 0)
	within := 1000 * w.calm
	if w.rebuilding() {
		within = 500 // where a fault can do most
	}
	switch n := w.rng.IntN(within); {
	case n < 14:
		i := w.rng.IntN(len(w.engines))
		w.crash(w.lives[i])
		w.boot(i)
	case n < 32:
		w.note("TIME passes")
		w.pass(time.Duration(w.rng.IntN(240)) * time.Second)
	case n < 46:
		w.sleepThrough()
	case n < 52:
		w.skew()
	case n < 60 && w.plan.losses:
		w.loses()
	case n < 68:
		w.late()
	case n < 74:
		w.outage()
	case n < 90:
		w.capturesAnyway()
	case n < 110:
		w.slows()
	case n < 111:
		w.note("TIME passes, more than a day")
		w.freeze(flashsale.Retention + time.Hour)
		w.tally.add("fault a day passes")
	}
}

// rebuilding reports whether somebody is about to make a step of a rebuild.
func (w *world) rebuilding() bool {
	return slices.ContainsFunc(w.waiting, func(c *call) bool { return c.actor.rebuild != 0 })
}

// sleepThrough lets the leases of everybody end while all processes stand still: whoever goes on then is late.
func (w *world) sleepThrough() {
	w.note("SLEEP of all processes")
	if len(w.waiting) > 0 {
		w.tally.add("fault sleep")
	}
	w.freeze(leases + time.Duration(w.rng.IntN(60))*time.Second)
}

// slows has one of those at the gate stand there while others come and go.
func (w *world) slows() {
	if len(w.waiting) == 0 {
		return
	}
	c := w.waiting[w.rng.IntN(len(w.waiting))]
	c.actor.slow = w.steps + 10 + w.rng.IntN(60)
	w.note("SLOW: %s before %s", c.actor.name, c.name)
	w.tally.add("fault slow")
}

// skew sets the clocks of the stores.
func (w *world) skew() {
	draw := func() time.Duration { return time.Duration(w.rng.Int64N(int64(2*maxSkew))) - maxSkew }
	stock, sql := draw(), draw()
	w.skews.stock.Store(int64(stock))
	w.skews.sql.Store(int64(sql))
	w.note("CLOCKS: stock %s, sql %s", stock, sql)
	w.tally.add("fault skew")
}

// loses has the Stock lose its last writes, or all.
func (w *world) loses() {
	lost := 1 + w.rng.IntN(min(12, len(w.stock.writes)+1))
	if w.rng.IntN(8) == 0 {
		lost = len(w.stock.writes)
	}
	w.lose(lost)
}

func (w *world) lose(lost int) {
	s := w.sku()
	w.note("LOSS of %d writes", lost)
	w.tally.add("fault loss")
	if s.Rebuilding {
		w.tally.add("fault loss while rebuilding")
	}
	if lost >= len(w.stock.writes) {
		w.tally.add("fault loss of all")
	}
	w.stock.lose(lost)
	w.lostAt, w.lossy = s.Epoch, true
	if w.rng.IntN(2) == 0 {
		w.blind = w.rng.IntN(60)
	}
}

// late has a write of the Stock, one of its last, come once more now, out of its order.
func (w *world) late() {
	if n := len(w.stock.writes); n > 0 {
		i := n - 1 - w.rng.IntN(min(n, 40))
		if w.stock.again(i) {
			w.note("LATE: write %d of %d once more, %s", i, n, w.stock.writes[i].name)
			w.tally.add("fault late write")
		}
	}
}

// outage has the provider not answer for some steps.
func (w *world) outage() {
	o := simpay.DownBefore
	if w.rng.IntN(2) == 0 {
		o = simpay.DownAfter
	}
	w.provider.SetOutage(o)
	w.down = 1 + w.rng.IntN(40)
	w.note("OUTAGE of the provider")
	w.tally.add("fault outage")
}

// records are those payments at the provider that have a status.
func (w *world) records(status ...flashsale.PayStatus) []simpay.Record {
	var records []simpay.Record
	for r := range w.provider.Records() {
		if slices.Contains(status, r.Status) {
			records = append(records, r)
		}
	}
	return records
}

// capturesAnyway has the provider capture what is void or has failed.
func (w *world) capturesAnyway() {
	records := w.records(flashsale.PayVoid, flashsale.PayFailed)
	if len(records) == 0 {
		return
	}
	r := &records[w.rng.IntN(len(records))]
	w.must(w.provider.Capture(r.Intent.Key, r.Intent.Amount, r.Intent.Currency))
	w.provider.Step(context.Background())
	w.note("CAPTURE of %s, which was %s", r.Intent.Key, r.Status)
	w.tally.add("capture of " + string(r.Status))
}
