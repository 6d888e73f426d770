package stocktest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/flashsale"
)

// legs is how often a walk of rapid's usual length is made on one sku.
const legs = 8

// random makes calls at random, to the stock and to the model, which must answer the same.
func random(t *testing.T, open Open) {
	c := &clock{}
	stock := open(t, c.now)
	rapid.Check(t, func(rt *rapid.T) {
		w := &walker{
			desk:  &desk{tb: rt, ctx: t.Context(), stock: stock, clock: c, key: newKey()},
			t:     rt,
			model: &model{epochs: map[int64]*modelEpoch{}},
			base:  c.now(),
		}
		w.rebuild()
		for range legs {
			rt.Repeat(w.actions())
		}
	})
}

// walker makes one walk: the draws, the stock (through the desk), and the model.
type walker struct {
	*desk
	t       *rapid.T
	model   *model
	base    time.Time
	seq     int64 // the last one seen in this epoch
	rids    []string
	jobs    []flashsale.Job // pulled in this epoch, acknowledged or not
	version int64           // of the settings
	pointed []int64
}

func (w *walker) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){"": func(*rapid.T) { w.compare() }}
	for name, act := range map[string]func(){
		"reserve": w.actReserve, "reserve too": w.actReserve, "reserve many": w.actFill, "apply": w.actApply, "apply too": w.actApply,
		"decide": w.actDecide, "pull": w.actPull, "pull too": w.actPull, "bury": w.actBury, "revive": w.actRevive, "adjust": w.actAdjust,
		"configure": w.actConfigure, "wait": w.actWait, "wait too": w.actWait, "lull": w.actLull, "find": w.actFind, "due": w.actDue, "due too": w.actDue, "walk": w.actEntries,
		"forget": w.actForget, "dead": w.actDead, "stale": w.actStale, "point": w.actPoint, "load": w.actLoad, "drain": w.actDrain,
		"drop": w.actDrop, "rebuild": w.actRebuild,
	} {
		actions[name] = func(rt *rapid.T) {
			w.t, w.tb = rt, rt
			w.offEdges()
			act()
		}
	}
	return actions
}

// offEdges moves on from a moment at which "longer than" could be read in two ways.
func (w *walker) offEdges() {
	for e := w.model.current(); e != nil && e.onEdge(w.clock.now()); {
		w.clock.advance(time.Millisecond)
	}
}

func (w *walker) number(what string, low, high int64) int64 {
	return rapid.Int64Range(low, high).Draw(w.t, what)
}

func (w *walker) often(what string, of int64) bool { return w.number(what, 1, of) == of }

func draw[T any](w *walker, what string, of ...T) T { return rapid.SampledFrom(of).Draw(w.t, what) }

// live returns the current epoch if calls run in it, and ends the action if they do not.
func (w *walker) live() *modelEpoch {
	if w.model.refuses(w.epoch) != "" {
		w.t.Skip("not loaded")
	}
	return w.model.current()
}

func (w *walker) user() string { return draw(w, "user", "u1", "u2", "u2 ", "u\x00:\xff") }

// rid draws a known rid, or a new one.
func (w *walker) rid() string {
	if len(w.rids) == 0 || w.often("new rid", 2) {
		w.rids = append(w.rids, fmt.Sprint("r", len(w.rids)))
		return w.rids[len(w.rids)-1]
	}
	return draw(w, "rid", w.rids...)
}

func (w *walker) actReserve() {
	if w.model.refuses(w.epoch) != "" {
		return // actStale does that
	}
	ask := w.ask(w.rid(), w.user(), w.number("quantity", 1, 3))
	if r := w.model.current().entries[ask.RID]; r != nil && !w.often("another body", 4) {
		ask = w.ask(r.RID, r.User, r.Quantity)
	}
	ask.OnlyKnown = w.often("only known", 6)
	if w.often("origin", 4) {
		ask.Origin = "r0:1"
	}
	w.reserves(ask)
}

func (w *walker) actFill() {
	w.live()
	for i := range w.number("how many", 1, 50) {
		w.rids = append(w.rids, fmt.Sprint("r", len(w.rids)))
		w.reserves(w.ask(w.rids[len(w.rids)-1], fmt.Sprint("many", i), 1))
	}
}

func (w *walker) reserves(ask *flashsale.Ask) {
	e := w.model.current()
	got, err := w.stock.Reserve(w.ctx, w.key, w.epoch, ask)
	if e.settings.Status == "" {
		w.fails("Reserve without settings", err, flashsale.CodeRebuilding)
		return
	}
	w.check("Reserve", err)
	want := e.reserve(ask, w.clock.now())
	if got.Accepted != want.Accepted || got.Known != want.Known || got.Code != want.Code || got.Detail != want.Detail {
		w.Fatalf("Reserve %+v:\ngot  %+v\nwant %+v", ask, got, want)
	}
	if diff := entryDiff(got.Entry, want.Entry); diff != "" {
		w.Fatal("Reserve: ", diff)
	}
	if len(want.Holds) <= 16 {
		sameSet(w.desk, "holds", got.Holds, want.Holds...)
	}
	if waits := want.Code == flashsale.CodeBusy || want.Detail == "not_yet"; waits != (got.RetryAfter > 0) {
		w.Fatalf("RetryAfter is %s in %+v", got.RetryAfter, got)
	}
	equal(w.desk, "available", got.Available, e.available())
	if got.Seq < w.seq || got.Accepted == (got.Seq == w.seq) {
		w.Fatalf("the seq after %+v is %d, it was %d", got, got.Seq, w.seq)
	}
	w.seq = got.Seq
	if got.Accepted {
		e.queue[len(e.queue)-1].Seq = got.Seq
	}
}

// drawEffect draws what SQL may say of a rid.
func (w *walker) drawEffect() flashsale.Effect {
	states := []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed, flashsale.Cancelled, flashsale.Expired, flashsale.Rejected}
	f := effect(w.rid(), w.user(), w.number("quantity", 1, 3), draw(w, "state", states...), w.number("version", 1, 5))
	if r := w.model.current().entries[f.RID]; r != nil {
		f.User, f.Quantity = r.User, r.Quantity
	}
	return f
}

func (w *walker) actApply() {
	w.live()
	effects := make([]flashsale.Effect, w.number("effects", 0, 3))
	for i := range effects {
		effects[i] = w.drawEffect()
	}
	var acks []string
	for i := w.number("acks", 0, 2); i > 0 && len(w.jobs) > 0; i-- {
		acks = append(acks, draw(w, "job", w.jobs...).ID)
	}
	w.applies(effects, acks)
}

// actDecide lets SQL decide what was pulled, as consumers do.
func (w *walker) actDecide() {
	e := w.live()
	var effects []flashsale.Effect
	var acks []string
	for _, j := range e.queue {
		if !j.pulledAt.IsZero() {
			effects = append(effects, effect(j.RID, j.User, j.Quantity, draw(w, "state", flashsale.Reserved, flashsale.Rejected), 1))
			acks = append(acks, j.ID)
		}
	}
	w.applies(effects, acks)
}

func (w *walker) applies(effects []flashsale.Effect, acks []string) {
	e, rate := w.model.current(), w.model.current().settings.Rate
	got, err := w.stock.Apply(w.ctx, w.key, w.epoch, effects, acks)
	w.check("Apply", err)
	want := make([]flashsale.Applied, len(effects))
	for i := range effects {
		want[i] = e.apply(&effects[i], w.clock.now())
	}
	for _, id := range acks {
		e.take(id)
	}
	e.lowerRate()
	equal(w.desk, fmt.Sprintf("applied of %+v", effects), fmt.Sprint(got), fmt.Sprint(want))
	w.ratesChanged(rate)
}

// ratesChanged lets time pass after a change of the rate in force, so that it does not matter how what was earned is carried over.
func (w *walker) ratesChanged(from int64) {
	if e := w.model.current(); e.settings.Rate != from {
		w.clock.advance(2 * time.Second)
		e.tokens, e.filled = max(e.settings.Rate/10, 1)*1_000_000, w.clock.now()
		w.offEdges()
	}
}

func (w *walker) actPull() {
	e, now := w.live(), w.clock.now()
	limit := w.number("limit", 1, 30)
	jobs, err := w.stock.Pull(w.ctx, w.key, w.epoch, draw(w, "consumer", "c1", "c2"), int(limit), reclaim)
	w.check("Pull", err)
	late, waiting := e.split(now)
	n := min(limit, e.ready(now), int64(len(late)+len(waiting)))
	equal(w.desk, "jobs pulled", int64(len(jobs)), n)
	again := min(n, int64(len(late)))
	for i, got := range jobs {
		want := (*modelJob)(nil)
		if int64(i) >= again {
			want, waiting = waiting[0], waiting[1:]
		} else if k := slices.IndexFunc(late, func(j *modelJob) bool { return j.Seq == got.Seq }); k >= 0 {
			want = late[k]
			late = slices.Delete(late, k, k+1)
		} else {
			w.Fatalf("pulled %+v, which no consumer has had for too long, before those that one has", got)
		}
		w.pulled(want, got)
	}
	e.tokens -= n * 1_000_000
	w.jobs = append(w.jobs, jobs...)
}

// pulled compares a job that was pulled with the model's, which learns its id.
func (w *walker) pulled(want *modelJob, got flashsale.Job) {
	if want.ID == "" {
		want.ID = got.ID
	}
	want.Deliveries++
	want.pulledAt = w.clock.now()
	if want.revived { // whether it goes on counting is the store's own affair
		want.Deliveries = got.Deliveries
	}
	w.sameJob(got, want.Job)
	equal(w.desk, "deliveries", got.Deliveries, want.Deliveries)
}

func (w *walker) sameJob(got, want flashsale.Job) {
	w.Helper()
	if got.ID == "" || want.ID != "" && got.ID != want.ID || got.RID != want.RID || got.User != want.User || got.Quantity != want.Quantity ||
		got.Origin != want.Origin || got.Seq != want.Seq || !got.Deadline.Equal(want.Deadline) || !got.At.Equal(want.At) {
		w.Fatalf("the job:\ngot  %+v\nwant %+v", got, want)
	}
}

func (w *walker) actBury() {
	e := w.live()
	if len(w.jobs) == 0 {
		w.t.Skip("nothing was pulled")
	}
	job, rate := draw(w, "job", w.jobs...), e.settings.Rate
	reason := draw(w, "reason", "poison", "")
	w.check("Bury", w.stock.Bury(w.ctx, w.key, w.epoch, &job, reason))
	if j := e.take(job.ID); j != nil {
		j.reason, j.pulledAt = reason, w.clock.now() // of a dead letter: when it died
		e.dead = append(e.dead, j)
	}
	e.lowerRate()
	w.ratesChanged(rate)
}

// actDead compares the dead letters, and learns their ids.
func (w *walker) actDead() {
	e := w.live()
	limit := int(w.number("limit", 0, 10))
	dead, err := w.stock.Dead(w.ctx, w.key, w.epoch, limit)
	w.check("Dead", err)
	equal(w.desk, "dead letters", len(dead), min(limit, len(e.dead)))
	for i, got := range dead {
		want := e.dead[i]
		want.ID = got.ID
		w.sameJob(got.Job, want.Job)
		if got.Reason != want.reason || !got.DiedAt.Equal(want.pulledAt) {
			w.Fatalf("the dead letter:\ngot  %+v\nwant %+v", got, want)
		}
	}
}

func (w *walker) actRevive() {
	e := w.live()
	dead, err := w.stock.Dead(w.ctx, w.key, w.epoch, 1000)
	w.check("Dead", err)
	equal(w.desk, "dead letters", len(dead), len(e.dead))
	ids, want := []string{"no-such-job"}, 0
	for i, got := range dead {
		e.dead[i].ID = got.ID
		if w.often("revive", 2) {
			ids = append(ids, got.ID)
		}
	}
	for _, id := range ids {
		if e.revive(id, w.clock.now()) {
			want++
		}
	}
	n, err := w.stock.Revive(w.ctx, w.key, w.epoch, ids)
	w.check("Revive", err)
	equal(w.desk, "revived", n, want)
}

func (w *walker) actAdjust() {
	e := w.live()
	id, delta := fmt.Sprint("op-", w.number("operation", 1, 8)), w.number("delta", -20, 20)
	r, err := w.stock.Adjust(w.ctx, w.key, w.epoch, id, delta)
	w.check("Adjust", err)
	done := e.adjust(id, delta)
	equal(w.desk, "adjusted", r, flashsale.AdjustResult{Done: done, Available: e.available()})
}

func (w *walker) actConfigure() {
	e := w.live()
	rate := e.settings.Rate
	if w.often("a higher version", 2) || w.version == 0 {
		w.version++
	}
	w.configures(w.version)
	w.ratesChanged(rate)
}

func (w *walker) configures(version int64) {
	s := flashsale.Settings{
		Version: version, Status: draw(w, "status", flashsale.Open, flashsale.Open, flashsale.Open, flashsale.Paused, flashsale.Draining),
		OpensAt: w.base.Add(draw(w, "opens", 0, 0, 10*time.Second)), ClosesAt: w.base.Add(draw(w, "closes", 2000*time.Hour, 2000*time.Hour, 24*time.Hour)),
		PurchaseLimit: w.number("limit", 1, 6), Rate: draw(w, "rate", int64(1), 2, 5, 20, 100, 1000),
	}
	w.check("Configure", w.stock.Configure(w.ctx, w.key, w.epoch, &s))
	w.model.current().configure(&s)
}

func (w *walker) actWait() {
	w.clock.advance(draw(w, "wait", time.Millisecond, 40*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond, time.Second, 2*time.Second,
		6*time.Second, 6*time.Second, 20*time.Second, 46*time.Second, 91*time.Second, 25*time.Hour))
}
