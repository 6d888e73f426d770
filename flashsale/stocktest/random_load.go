package stocktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// actPoint points to a higher epoch, or tries another one.
func (w *walker) actPoint() {
	if w.often("a higher one", 8) {
		w.points(w.model.pointer + w.number("higher by", 1, 3))
		return
	}
	w.points(w.model.pointer - w.number("lower by", 0, 2))
}

func (w *walker) points(epoch int64) {
	m := w.model
	older, err := w.stock.Point(w.ctx, w.key, epoch)
	if epoch < 1 || epoch < m.pointer || epoch == m.pointer && m.current() != nil && m.current().loaded {
		w.fails(fmt.Sprint("Point ", epoch), err, flashsale.CodeStaleEpoch)
		return
	}
	w.check(fmt.Sprint("Point ", epoch), err)
	if epoch > m.pointer {
		m.pointer, w.epoch, w.seq, w.jobs = epoch, epoch, 0, nil
		w.pointed = append(w.pointed, epoch)
	}
	var want []int64
	for e := range m.epochs {
		if e < epoch {
			want = append(want, e)
		}
	}
	// One that was pointed to and got no keys may be in the list.
	older = slices.DeleteFunc(older, func(e int64) bool { return m.epochs[e] == nil && e < epoch && slices.Contains(w.pointed, e) })
	slices.Sort(want)
	equal(w.desk, "older epochs", fmt.Sprint(slices.Sorted(slices.Values(older))), fmt.Sprint(want))
}

// actLoad loads a part, wherever the epoch is.
func (w *walker) actLoad() {
	if w.model.pointer == 0 {
		w.t.Skip("no pointer")
	}
	w.loads(w.often("the last part", 3))
}

// loads draws a part, loads it once or twice, and does the same to the model unless that is loaded.
func (w *walker) loads(last bool) {
	m := w.model
	e := m.current()
	if e == nil {
		e = newModelEpoch()
		e.settings.Version = -1
		m.epochs[m.pointer] = e
	}
	part := flashsale.LoadPart{}
	for range w.number("entries", 0, 4) {
		part.Entries = append(part.Entries, w.drawEntry())
	}
	if w.often("adjusted", 3) {
		part.Adjusted = []string{fmt.Sprint("op-", w.number("operation", 1, 8))}
	}
	if !e.loaded {
		for _, r := range part.Entries {
			e.put(&r)
		}
		for _, id := range part.Adjusted {
			e.adjusted[id] = true
		}
	}
	if last {
		w.loadsLast(e, &part)
	}
	for range w.number("times", 1, 2) {
		w.check("Load", w.stock.Load(w.ctx, w.key, w.epoch, &part))
	}
}

// loadsLast makes a part the last: its counters and buyers are those that the entries of all parts add up to, and what was bought
// under rids that are not known any more.
func (w *walker) loadsLast(e *modelEpoch, part *flashsale.LoadPart) {
	part.Last = true
	if e.loaded { // nothing of it must come through
		part.Total = 1_000_000
		return
	}
	if w.often("bought before", 2) {
		e.forgotten["u1"] = &flashsale.Buyer{User: "u1", Quantity: w.number("bought", 1, 3), RIDs: []string{"long-ago"}}
	}
	part.Reserved, part.Sold = e.held(), e.sold()
	part.Total = part.Reserved + part.Sold + draw(w, "left", int64(0), 3, 10, 100)
	e.total, e.loaded = part.Total, true
	e.tokens, e.filled = 1_000_000, w.clock.now()
	users := []string{"u1"}
	for _, r := range e.entries {
		users = append(users, r.User)
	}
	slices.Sort(users)
	for _, user := range slices.Compact(users) {
		if b := e.buyer(user); b.Quantity > 0 {
			part.Buyers = append(part.Buyers, b)
			e.names[user] = true
		}
	}
}

// drawEntry draws an entry of SQL.
func (w *walker) drawEntry() flashsale.Entry {
	states := []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed, flashsale.Cancelled, flashsale.Expired, flashsale.Rejected}
	return flashsale.Entry{
		RID: w.rid(), User: w.user(), Quantity: w.number("quantity", 1, 3), State: draw(w, "state", states...), Version: w.number("version", 1, 3),
		At: w.clock.now().Add(-draw(w, "ended", time.Second, time.Hour, 23*time.Hour)),
	}
}

func (w *walker) actRebuild() {
	if !w.often("rebuild", 4) {
		w.t.Skip("not now")
	}
	w.rebuild()
}

// rebuild makes a new epoch, from the pointer to its settings.
func (w *walker) rebuild() {
	w.points(w.model.pointer + 1)
	for range w.number("parts", 0, 2) {
		w.loads(false)
	}
	w.loads(true)
	w.version++
	w.configures(w.version)
	w.ratesChanged(-1)
}

func (w *walker) actDrain() {
	older := w.olderEpoch()
	e := w.model.epochs[older]
	var want []*modelJob
	if e != nil {
		want = e.queue
	}
	got := w.drain(older, int(w.number("limit", 1, 30)))
	equal(w.desk, "jobs drained", len(got), len(want))
	for i := range got {
		w.sameJob(got[i], want[i].Job)
	}
}

func (w *walker) actDrop() {
	older := w.olderEpoch()
	w.check("Drop", w.stock.Drop(w.ctx, w.key, w.epoch, older))
	delete(w.model.epochs, older)
}

// olderEpoch draws an epoch before the current one, mostly one that had keys.
func (w *walker) olderEpoch() int64 {
	if w.model.pointer == 0 {
		w.t.Skip("no pointer")
	}
	var older []int64
	for _, e := range w.pointed {
		if e < w.model.pointer {
			older = append(older, e)
		}
	}
	return draw(w, "older", append(older, 0)...)
}
