package stocktest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
)

// mutant is a stock with a fault, and the parts of the suite that must see it.
type mutant struct {
	name  string
	parts []string
	bend  func(good *bent) stocktest.Stock
}

// bent is a good stock for others to embed.
type bent struct {
	*memstock.Stock
	calls *atomic.Int64
}

func newBent(now func() time.Time) *bent {
	return &bent{memstock.New(memstock.Config{Now: now}), new(atomic.Int64)}
}

// The faults, each an override of one method.
type (
	reserving struct {
		*bent
		do func(b *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer))
	}
	applying struct {
		*bent
		do func(b *bent, effects []flashsale.Effect, acks []string) ([]flashsale.Effect, []string, func([]flashsale.Applied))
	}
	pulling struct {
		*bent
		do func(b *bent, limit int, reclaim time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job)
	}
	adjusting struct {
		*bent
		do func(b *bent, id string, delta int64) (string, int64)
	}
	burying   struct{ *bent }
	waiting   struct{ *bent }
	reviving  struct{ *bent }
	finding   struct{ *bent }
	holding   struct{ *bent }
	dueing    struct{ *bent }
	walking   struct{ *bent }
	viewing   struct{ *bent }
	loading   struct{ *bent }
	draining  struct{ *bent }
	pointing  struct{ *bent }
	dropping  struct{ *bent }
	setting   struct{ *bent }
	unguarded struct{ *bent }
	lulling   struct {
		*bent
		do func(b *bent, l *flashsale.Lull)
	}
)

func (b reserving) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (flashsale.Answer, error) {
	other, after := b.do(b.bent, *ask)
	a, err := b.bent.Reserve(ctx, key, epoch, &other)
	if after != nil {
		after(&a)
	}
	return a, err
}

func (b applying) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	effects, acks, after := b.do(b.bent, append([]flashsale.Effect(nil), effects...), acks)
	applied, err := b.bent.Apply(ctx, key, epoch, effects, acks)
	if after != nil {
		after(applied)
	}
	return applied, err
}

func (b pulling) Pull(ctx context.Context, key flashsale.Key, epoch int64, consumer string, limit int, reclaim time.Duration) ([]flashsale.Job, error) {
	limit, reclaim, after := b.do(b.bent, limit, reclaim)
	jobs, err := b.bent.Pull(ctx, key, epoch, consumer, limit, reclaim)
	if after != nil {
		jobs = after(jobs)
	}
	return jobs, err
}

func (b adjusting) Adjust(ctx context.Context, key flashsale.Key, epoch int64, id string, delta int64) (flashsale.AdjustResult, error) {
	id, delta = b.do(b.bent, id, delta)
	return b.bent.Adjust(ctx, key, epoch, id, delta)
}

func (b burying) Bury(ctx context.Context, key flashsale.Key, epoch int64, job *flashsale.Job, reason string) error {
	return b.bent.Bury(ctx, key, epoch, job, strings.ToValidUTF8(reason, "?"))
}

func (b waiting) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (flashsale.Answer, error) {
	v, err := b.View(ctx, key)
	if err != nil {
		return flashsale.Answer{}, err
	}
	dead, _ := b.Dead(ctx, key, epoch, 1)
	found, _ := b.Find(ctx, key, epoch, []string{ask.RID})
	if len(dead) == 1 && len(found) == 1 && found[0].State == flashsale.None && v.Now.Sub(dead[0].At) > flashsale.PendingFor/2 {
		return flashsale.Answer{Code: flashsale.CodeBusy, RetryAfter: time.Second, Available: v.Available, Seq: v.Seq}, nil
	}
	return b.bent.Reserve(ctx, key, epoch, ask)
}

func (b reviving) Revive(ctx context.Context, key flashsale.Key, epoch int64, ids []string) (int, error) {
	_, err := b.bent.Revive(ctx, key, epoch, ids)
	return len(ids), err
}

func (b finding) Find(ctx context.Context, key flashsale.Key, epoch int64, rids []string) ([]flashsale.Entry, error) {
	found, err := b.bent.Find(ctx, key, epoch, rids)
	known := found[:0]
	for _, e := range found {
		if e.State != flashsale.None {
			known = append(known, e)
		}
	}
	return known, err
}

func (b holding) Holds(ctx context.Context, key flashsale.Key, epoch int64, user string) ([]string, error) {
	rids, err := b.bent.Holds(ctx, key, epoch, user)
	return rids[min(len(rids), 1):], err
}

func (b dueing) Due(ctx context.Context, key flashsale.Key, epoch int64, limit int) ([]flashsale.Entry, error) {
	due, err := b.bent.Due(ctx, key, epoch, 1<<30)
	return due[max(len(due)-limit, 0):], err // the youngest ones
}

func (b walking) Entries(ctx context.Context, key flashsale.Key, epoch int64, cursor string, limit int) ([]flashsale.Entry, string, error) {
	page, next, err := b.bent.Entries(ctx, key, epoch, cursor, limit+1)
	return page[:min(len(page), limit)], next, err // what is one too many is lost
}

func (b viewing) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	v, err := b.bent.View(ctx, key)
	v.Queue.Depth -= v.Queue.Pulled // pulled is not waiting
	return v, err
}

func (b loading) Load(ctx context.Context, key flashsale.Key, epoch int64, part *flashsale.LoadPart) error {
	other := *part
	other.Buyers = nil
	return b.bent.Load(ctx, key, epoch, &other)
}

func (b draining) Drain(ctx context.Context, key flashsale.Key, epoch, older int64, after string, limit int) ([]flashsale.Job, error) {
	jobs, err := b.bent.Drain(ctx, key, epoch, older, after, limit)
	kept := jobs[:0]
	for _, j := range jobs {
		if j.Deliveries == 0 { // what was pulled is thought to be decided
			kept = append(kept, j)
		}
	}
	return kept, err
}

func (b pointing) Point(ctx context.Context, key flashsale.Key, epoch int64) ([]int64, error) {
	older, err := b.bent.Point(ctx, key, epoch)
	return older[max(len(older)-1, 0):], err // the last one alone
}

func (b dropping) Drop(context.Context, flashsale.Key, int64, int64) error { return nil }

func (b setting) Configure(ctx context.Context, key flashsale.Key, epoch int64, s *flashsale.Settings) error {
	v, err := b.View(ctx, key)
	if err != nil {
		return err
	}
	other := *s
	other.Version = max(s.Version, v.Settings.Version+1) // whatever comes last holds
	return b.bent.Configure(ctx, key, epoch, &other)
}

func (b unguarded) Pull(ctx context.Context, key flashsale.Key, _ int64, consumer string, limit int, reclaim time.Duration) ([]flashsale.Job, error) {
	v, err := b.View(ctx, key)
	if err != nil {
		return nil, err
	}
	return b.bent.Pull(ctx, key, v.Epoch, consumer, limit, reclaim)
}

func (b lulling) Lull(ctx context.Context, key flashsale.Key, epoch int64, ask flashsale.LullAsk) (flashsale.Lull, error) {
	l, err := b.bent.Lull(ctx, key, epoch, ask)
	b.do(b.bent, &l)
	return l, err
}

func onLull(do func(b *bent, l *flashsale.Lull)) func(*bent) stocktest.Stock {
	return func(b *bent) stocktest.Stock { return lulling{b, do} }
}

func onReserve(do func(b *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer))) func(*bent) stocktest.Stock {
	return func(b *bent) stocktest.Stock { return reserving{b, do} }
}

func onApply(do func(b *bent, e []flashsale.Effect, acks []string) ([]flashsale.Effect, []string, func([]flashsale.Applied))) func(*bent) stocktest.Stock {
	return func(b *bent) stocktest.Stock { return applying{b, do} }
}

func onPull(do func(b *bent, limit int, reclaim time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job)) func(*bent) stocktest.Stock {
	return func(b *bent) stocktest.Stock { return pulling{b, do} }
}

func mutants() []mutant {
	return []mutant{
		{"a repeated call takes again", []string{"reserve", "parallel", "random"}, onReserve(func(b *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			ask.RID = fmt.Sprint(ask.RID, ".", b.calls.Add(1))
			return ask, nil
		})},
		{"another body is not noticed", []string{"reserve", "load", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			return ask, func(a *flashsale.Answer) {
				if a.Code == flashsale.CodeConflict {
					a.Code, a.Known = "", true
				}
			}
		})},
		{"an expired token takes", []string{"refuse", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			ask.OnlyKnown = false
			return ask, nil
		})},
		{"spaces at the end of a user do not count", []string{"hostile", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			ask.User = strings.TrimRight(ask.User, " ")
			return ask, nil
		})},
		{"users are made valid UTF-8", []string{"hostile", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			ask.User = string(bytes.ToValidUTF8([]byte(ask.User), []byte("\ufffd")))
			return ask, nil
		})},
		{"the limit comes after sold out", []string{"refuse", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			return ask, func(a *flashsale.Answer) {
				if a.Code == flashsale.CodePurchaseLimit && a.Available < ask.Quantity {
					a.Code, a.Holds = flashsale.CodeSoldOut, nil
				}
			}
		})},
		{"the origin is lost", []string{"reserve", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			ask.Origin = ""
			return ask, nil
		})},
		{"acknowledgements are lost", []string{"pull", "apply", "random"}, onApply(func(_ *bent, e []flashsale.Effect, _ []string) ([]flashsale.Effect, []string, func([]flashsale.Applied)) {
			return e, nil, nil
		})},
		{"old effects are said to have moved", []string{"apply", "random"}, onApply(func(_ *bent, e []flashsale.Effect, acks []string) ([]flashsale.Effect, []string, func([]flashsale.Applied)) {
			return e, acks, func(applied []flashsale.Applied) {
				for i := range applied {
					if applied[i] == flashsale.AppliedOld {
						applied[i] = flashsale.AppliedMoved
					}
				}
			}
		})},
		{"versions do not count", []string{"apply", "random"}, onApply(func(b *bent, e []flashsale.Effect, acks []string) ([]flashsale.Effect, []string, func([]flashsale.Applied)) {
			for i := range e {
				e[i].Version = b.calls.Add(1)
			}
			return e, acks, nil
		})},
		{"effects are applied last first", []string{"apply", "random"}, onApply(func(_ *bent, e []flashsale.Effect, acks []string) ([]flashsale.Effect, []string, func([]flashsale.Applied)) {
			for i, j := 0, len(e)-1; i < j; i, j = i+1, j-1 {
				e[i], e[j] = e[j], e[i]
			}
			return e, acks, nil
		})},
		{"jobs of the dead are not reclaimed", []string{"pull", "random"}, onPull(func(_ *bent, limit int, _ time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job) {
			return limit, time.Hour, nil
		})},
		{"jobs are reclaimed too early", []string{"pull", "random"}, onPull(func(_ *bent, limit int, reclaim time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job) {
			return limit, reclaim / 2, nil
		})},
		{"more is pulled than was asked for", []string{"pull", "random"}, onPull(func(_ *bent, limit int, reclaim time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job) {
			return limit + 1, reclaim, nil
		})},
		{"deliveries are not counted", []string{"pull", "random"}, onPull(func(_ *bent, limit int, reclaim time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job) {
			return limit, reclaim, func(jobs []flashsale.Job) []flashsale.Job {
				for i := range jobs {
					jobs[i].Deliveries = 1
				}
				return jobs
			}
		})},
		{"a job is lost on the way", []string{"pull", "parallel", "random"}, onPull(func(b *bent, limit int, reclaim time.Duration) (int, time.Duration, func([]flashsale.Job) []flashsale.Job) {
			return limit, reclaim, func(jobs []flashsale.Job) []flashsale.Job { return jobs[:max(len(jobs)-1, 0)] }
		})},
		{"an adjustment counts each time", []string{"operate", "load", "random"}, func(b *bent) stocktest.Stock {
			return adjusting{b, func(b *bent, id string, delta int64) (string, int64) { return fmt.Sprint(id, b.calls.Add(1)), delta }}
		}},
		{"a withdrawal takes what there is", []string{"operate", "random"}, func(b *bent) stocktest.Stock {
			return adjusting{b, func(_ *bent, id string, delta int64) (string, int64) { return id, max(delta, -5) }}
		}},
		{"a dead letter keeps others waiting", []string{"refuse", "random"}, func(b *bent) stocktest.Stock { return waiting{b} }},
		{"a reason is changed", []string{"dead"}, func(b *bent) stocktest.Stock { return burying{b} }},
		{"what was not revived is counted", []string{"dead", "random"}, func(b *bent) stocktest.Stock { return reviving{b} }},
		{"unknown rids are left out", []string{"look", "random"}, func(b *bent) stocktest.Stock { return finding{b} }},
		{"the first that a user holds is left out", []string{"look"}, func(b *bent) stocktest.Stock { return holding{b} }},
		{"the youngest are due first", []string{"look", "random"}, func(b *bent) stocktest.Stock { return dueing{b} }},
		{"a walk misses some", []string{"look", "random"}, func(b *bent) stocktest.Stock { return walking{b} }},
		{"the depth is of what was not pulled", []string{"pull", "random"}, func(b *bent) stocktest.Stock { return viewing{b} }},
		{"buyers are not loaded", []string{"load", "random"}, func(b *bent) stocktest.Stock { return loading{b} }},
		{"what was pulled is not drained", []string{"epochs", "random"}, func(b *bent) stocktest.Stock { return draining{b} }},
		{"older epochs but the last are not told", []string{"epochs", "random"}, func(b *bent) stocktest.Stock { return pointing{b} }},
		{"nothing is dropped", []string{"epochs", "random"}, func(b *bent) stocktest.Stock { return dropping{b} }},
		{"the last settings hold", []string{"operate", "random"}, func(b *bent) stocktest.Stock { return setting{b} }},
		{"a lull is promised and not kept", []string{"lull", "random"}, onReserve(func(_ *bent, ask flashsale.Ask) (flashsale.Ask, func(*flashsale.Answer)) {
			ask.Origin += "x"
			return ask, nil
		})},
		{"a mark is missing", []string{"lull", "random"}, onLull(func(_ *bent, l *flashsale.Lull) {
			if n := len(l.Marks); n > 1 {
				l.Marks[n-2] = l.Marks[n-1]
			}
		})},
		{"marks of before are not compared", []string{"lull"}, onLull(func(b *bent, l *flashsale.Lull) {
			l.Marks, l.From = l.Marks[min(len(l.Marks), int(b.calls.Load())):], b.calls.Swap(l.Count)
		})},
		{"the rest of a lull is told too long", []string{"lull", "random"}, onLull(func(_ *bent, l *flashsale.Lull) {
			if l.For > 0 {
				l.For = flashsale.LullFor
			}
		})},
		{"a lull is told before the last page", []string{"lull"}, onLull(func(_ *bent, l *flashsale.Lull) { l.For = max(l.For, time.Millisecond) })},
		{"the epoch does not count", []string{"epochs", "random"}, func(b *bent) stocktest.Stock { return unguarded{b} }},
	}
}
