package chaos

import (
	"time"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/internal/referee"
)

// tally is what the referee finds.
type tally struct {
	instances int64
	// dead is when the data was lost, in microseconds; what the store decided later it decided without.
	dead     int64
	withData demo.WithData
	without  demo.Without
	after    demo.Without
}

// count holds all admissions against the limits.
func count(entries []referee.Entry, instances int, dead time.Time) (*tally, error) {
	t := &tally{instances: int64(instances), dead: 1<<63 - 1}
	if !dead.IsZero() {
		t.dead = dead.UnixMicro()
	}
	t.without = demo.Without{BoundKept: true, ByLimit: []demo.LimitCount{}}
	t.after = demo.Without{BoundKept: true, ByLimit: []demo.LimitCount{}}
	for i := range entries {
		if err := t.page(&entries[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// everybody is the slot that every request is charged for, so that requests are counted by it.
const everybody = "site/00"

// page judges what was admitted of one limit on one key.
func (t *tally) page(e *referee.Entry) error {
	p, err := newReading(e, t)
	if err != nil {
		return err
	}
	for _, a := range e.Admissions {
		p.read(a)
	}
	if e.Slot == everybody {
		t.withData.Admitted = p.first.Sum().Admitted + p.second.Sum().Admitted
		t.without.Admitted, t.after.Admitted = p.local.Sum().Admitted, p.second.Sum().Admitted
	}
	// While the data was there: by it, whatever else was let through.
	t.withData.Over += p.first.Sum().Over + p.second.Sum().Over
	// Without the store: local limits together grant no more than the limit and one for each instance.
	p.without.Here, p.without.Bound = p.local.Sum().Admitted, p.spentBefore+p.local.Most()
	p.without.SpentBefore = p.spentBefore
	t.without.BoundKept = t.without.BoundKept && p.local.Sum().Over == 0
	add(&t.without, e, &p.without)
	// After an empty restart: the limit once more.
	p.after.Here, p.after.Bound = p.second.Sum().Admitted, p.spentAtAll+p.second.Most()
	p.after.SpentBefore = p.spentAtAll
	t.after.BoundKept = t.after.BoundKept && p.second.Sum().Over == 0
	add(&t.after, e, &p.after)
	return nil
}

// reading follows the admissions of one limit on one key, with a judge for each who decided by what they knew, and one who
// knows all.
type reading struct {
	t                         *tally
	all, first, second, local *referee.Judge
	spentBefore, spentAtAll   int64
	localBegan, secondBegan   bool
	without, after            demo.LimitCount
}

func newReading(e *referee.Entry, t *tally) (*reading, error) {
	p := &reading{t: t}
	for _, j := range []struct {
		judge **referee.Judge
		terms referee.Terms
	}{{&p.all, referee.Terms{}}, {&p.first, referee.Terms{}}, {&p.second, referee.Terms{}}, {&p.local, referee.Terms{Extra: t.instances}}} {
		made, err := referee.New(e.Limit, j.terms)
		if err != nil {
			return nil, err
		}
		*j.judge = made
	}
	return p, nil
}

func (p *reading) read(a referee.Admission) {
	switch {
	case a.By == byLocal:
		if !p.localBegan {
			p.localBegan, p.spentBefore = true, p.all.Used(a.At)
		}
		p.local.Admit(a)
		p.without.Over += overBy(p.all, a)
	case a.At <= p.t.dead:
		p.first.Admit(a)
		p.without.Over += overBy(p.all, a) // the store, back with its data, does not know what was let through without it
	default:
		if !p.secondBegan {
			p.secondBegan, p.spentAtAll = true, p.all.Used(a.At)
		}
		p.second.Admit(a)
		p.after.Over += overBy(p.all, a)
	}
}

func overBy(j *referee.Judge, a referee.Admission) int64 {
	if j.Admit(a) {
		return a.Units
	}
	return 0
}

// add puts what was found of a key to the others of its limit. Keys of which nothing was over are nothing to look at.
func add(w *demo.Without, e *referee.Entry, found *demo.LimitCount) {
	if found.Over == 0 {
		return
	}
	rule := e.Slot[:len(e.Slot)-len("/00")]
	n := len(w.ByLimit)
	if n == 0 || w.ByLimit[n-1].Rule != rule || w.ByLimit[n-1].Limit != e.Limit.String() { // entries come by slot
		w.ByLimit = append(w.ByLimit, demo.LimitCount{Rule: rule, Limit: e.Limit.String()})
		n++
	}
	row := &w.ByLimit[n-1]
	row.Keys++
	for _, sum := range []struct{ to, more *int64 }{
		{&row.Over, &found.Over}, {&row.Here, &found.Here}, {&row.SpentBefore, &found.SpentBefore}, {&row.Bound, &found.Bound},
		{&w.Over, &found.Over}, {&w.Here, &found.Here}, {&w.SpentBefore, &found.SpentBefore}, {&w.Bound, &found.Bound},
	} {
		*sum.to += *sum.more
	}
}
