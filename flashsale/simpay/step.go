package simpay

import (
	"container/heap"
	"context"
	"time"
)

// task is something that happens at a time: a webhook, or a change.
type task struct {
	at       time.Time
	seq      int64
	delivery *delivery
	pay      *payment
	do       func(now time.Time)
}

// agenda is a heap of tasks by time, and by the order in which they were planned.
type agenda struct {
	tasks []*task
	seq   int64
}

func (a *agenda) Len() int { return len(a.tasks) }

func (a *agenda) Less(i, j int) bool {
	if d := a.tasks[i].at.Compare(a.tasks[j].at); d != 0 {
		return d < 0
	}
	return a.tasks[i].seq < a.tasks[j].seq
}

func (a *agenda) Swap(i, j int) { a.tasks[i], a.tasks[j] = a.tasks[j], a.tasks[i] }

// Push is for package heap.
func (a *agenda) Push(x any) { a.tasks = append(a.tasks, x.(*task)) }

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := len(a.tasks) - 1
	t := a.tasks[last]
	a.tasks[last] = nil
	a.tasks = a.tasks[:last]
	return t
}

// at plans a change of a payment. There are at most a few for each, so that MaxPayments bounds them.
func (p *Provider) at(when time.Time, pay *payment, do func(now time.Time)) {
	p.push(&task{at: when, pay: pay, do: do})
}

func (p *Provider) push(t *task) {
	p.agenda.seq++
	t.seq = p.agenda.seq
	heap.Push(&p.agenda, t)
	p.rouse()
}

// rouse has Run look again.
func (p *Provider) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Step makes everything happen that is due by the clock, and sends the webhooks that are, one after the other. It returns how much
// that was, and when the next is due: the zero time if nothing is planned.
func (p *Provider) Step(ctx context.Context) (did int, next time.Time) {
	for ctx.Err() == nil {
		t, due := p.take()
		if t == nil {
			return did, due
		}
		if t.delivery != nil {
			p.deliver(ctx, t.delivery)
		}
		did++
	}
	return did, time.Time{}
}

// take is next, for one that has not locked.
func (p *Provider) take() (*task, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next(p.cfg.Now())
}

// next removes the next task that is due, and makes it happen if it is a change. Otherwise it tells when the next one is due.
func (p *Provider) next(now time.Time) (*task, time.Time) {
	for p.agenda.Len() > 0 {
		if first := p.agenda.tasks[0]; first.at.After(now) {
			return nil, first.at
		}
		t := heap.Pop(&p.agenda).(*task)
		d := t.delivery
		if d == nil {
			if p.payments[t.pay.intent.Key] == t.pay { // not forgotten meanwhile
				t.do(now)
			}
			return t, time.Time{}
		}
		p.waiting--
		if !d.gone { // one that was withheld is planned twice
			d.gone = true
			return t, time.Time{}
		}
	}
	return nil, time.Time{}
}
