package stocktest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/flashsale"
)

// compare compares the figures: what runs after every action.
func (w *walker) compare() {
	v := w.view()
	e := w.model.current()
	want := flashsale.StockView{Epoch: w.model.pointer, Run: v.Run, Now: w.clock.now()}
	if e != nil && e.loaded {
		want.Loaded, want.Total, want.Available, want.Held, want.Sold = true, e.total, e.available(), e.held(), e.sold()
		want.Settings, want.NextRate = e.settings, e.nextRate
		want.Queue = w.wantQueue()
		if e.settings.Version < 0 { // nothing but the version and the status is said of these
			want.Settings = v.Settings
			want.Settings.Status = ""
		}
		if v.Seq < w.seq {
			w.Fatalf("seq goes back from %d to %d", w.seq, v.Seq)
		}
		w.seq, want.Seq = v.Seq, v.Seq
	}
	equal(w.desk, "the view", v, want)
}

func (w *walker) wantQueue() flashsale.QueueView {
	e := w.model.current()
	q := flashsale.QueueView{Depth: int64(len(e.queue)), Dead: int64(len(e.dead)), Pending: int64(len(e.pending()))}
	for _, j := range e.queue {
		if !j.pulledAt.IsZero() {
			q.Pulled++
		}
		q.Oldest = max(q.Oldest, w.clock.now().Sub(j.At))
	}
	return q
}

func (w *walker) actFind() {
	e := w.live()
	rids := append(slices.Clone(w.rids), "never")
	found, err := w.stock.Find(w.ctx, w.key, w.epoch, rids)
	w.check("Find", err)
	equal(w.desk, "found", len(found), len(rids))
	for i, got := range found {
		want := flashsale.Entry{RID: rids[i]}
		if r := e.entries[rids[i]]; r != nil {
			want = *r
		}
		sameEntry(w.desk, got, want)
	}
}

// actLull reads all marks, which must be those of all that were ever known, and begins a lull.
func (w *walker) actLull() {
	e := w.live()
	limit := int(w.number("limit", 1, 200))
	if e.settings.Status == "" {
		_, err := w.stock.Lull(w.ctx, w.key, w.epoch, flashsale.LullAsk{Limit: limit})
		w.fails("Lull without settings", err, flashsale.CodeRebuilding)
		return
	}
	marks, l := w.marks(limit)
	for name := range e.names {
		if !marks[flashsale.Mark(name)] {
			w.Fatalf("%q is known and has no mark", name)
		}
		delete(marks, flashsale.Mark(name))
	}
	equal(w.desk, "marks of nobody", len(marks), 0)
	lasts, above := e.lull(w.clock.now())
	if l.For != lasts || l.Above != above && lasts > 0 || l.Available != e.available() {
		w.Fatalf("got %s above %d with %d available, want %s above %d with %d", l.For, l.Above, l.Available, lasts, above, e.available())
	}
}

func (w *walker) actDue() {
	e, now := w.live(), w.clock.now()
	limit := int(w.number("limit", 1, 20))
	due, err := w.stock.Due(w.ctx, w.key, w.epoch, limit)
	w.check("Due", err)
	want := slices.DeleteFunc(e.pending(), func(r *flashsale.Entry) bool { return r.Deadline.After(now) })
	slices.SortFunc(want, func(a, b *flashsale.Entry) int { return a.Deadline.Compare(b.Deadline) })
	equal(w.desk, "due", len(due), min(limit, len(want)))
	seen := map[string]bool{}
	for i, got := range due { // of several with one deadline any may come first
		if r := e.entries[got.RID]; r == nil || seen[got.RID] || !got.Deadline.Equal(want[i].Deadline) {
			w.Fatalf("due: got %+v, want one of %s", got, want[i].Deadline)
		}
		seen[got.RID] = true
		sameEntry(w.desk, got, *e.entries[got.RID])
	}
}

func (w *walker) actEntries() {
	e := w.live()
	seen, cursor, limit := map[string]bool{}, "", int(w.number("limit", 1, 40))
	for pages := 0; pages == 0 || cursor != ""; pages++ {
		page, next, err := w.stock.Entries(w.ctx, w.key, w.epoch, cursor, limit)
		w.check("Entries", err)
		for _, got := range page {
			want := e.entries[got.RID]
			if want == nil {
				w.Fatalf("the walk meets %+v, which there is not", got)
			}
			sameEntry(w.desk, got, *want)
			seen[got.RID] = true
		}
		if cursor = next; pages > 10_000 {
			w.Fatal("the walk does not end")
		}
	}
	equal(w.desk, "entries met", len(seen), len(e.entries))
}

func (w *walker) actForget() {
	e, want := w.live(), 0
	rids := append(slices.Clone(w.rids), "never")
	for _, rid := range rids {
		if e.forget(rid, w.clock.now()) {
			want++
		}
	}
	n, err := w.stock.Forget(w.ctx, w.key, w.epoch, rids)
	w.check("Forget", err)
	equal(w.desk, "forgotten", n, want)
}

// actStale makes one of all calls in an epoch that is not the current one, or not loaded.
func (w *walker) actStale() {
	epoch := w.epoch + w.number("off by", -1, 1)
	code := w.model.refuses(epoch)
	if code == "" {
		w.t.Skip("that one is right")
	}
	calls := w.calls()
	names := make([]string, 0, len(calls))
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)
	name := rapid.SampledFrom(names).Draw(w.t, "call")
	w.fails(fmt.Sprintf("%s in epoch %d", name, epoch), calls[name](epoch), code)
}
