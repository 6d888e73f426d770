package policy

import (
	fifo "container/list"
	"context"
	"errors"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const (
	// pollSlots is how often a request that waits for a slot looks for one: nobody knows when others release.
	pollSlots = 25 * time.Millisecond
	// maxTails bounds what views of virtual time remember.
	maxTails = 100_000
	// codeWaited is the code of a request that has waited in vain.
	codeWaited = "wait_timeout"
)

// errLineFull says that as many requests wait as may.
var errLineFull = errors.New("too many requests are waiting")

// waitLines are the requests that wait for their turn: one line for each rule and key. Only the head of a line asks the
// store; the others wait for it to leave.
type waitLines struct {
	most int

	mu    sync.Mutex
	count int
	lines map[string]*fifo.List // of *ticket
	// tails are the times at which the lines of virtual time end.
	tails map[string]time.Time
}

func newWaitLines(most int) *waitLines {
	return &waitLines{most: most, lines: make(map[string]*fifo.List), tails: make(map[string]time.Time)}
}

func (w *waitLines) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// empty tells whether nobody waits in a line.
func (w *waitLines) empty(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[key] == nil
}

// ticket is a place in a line.
type ticket struct {
	lines *waitLines
	key   string
	place *fifo.Element
	head  chan struct{} // closed when the ticket is at the head
}

// join takes the last place of a line.
func (w *waitLines) join(key string) (*ticket, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count >= w.most {
		return nil, errLineFull
	}
	w.count++
	line := w.lines[key]
	if line == nil {
		line = fifo.New()
		w.lines[key] = line
	}
	t := &ticket{lines: w, key: key, head: make(chan struct{})}
	t.place = line.PushBack(t)
	if line.Len() == 1 {
		close(t.head)
	}
	return t, nil
}

// leave gives the place up; the next one may be the head then.
func (t *ticket) leave() {
	w := t.lines
	w.mu.Lock()
	defer w.mu.Unlock()
	line := w.lines[t.key]
	first := line.Front() == t.place
	line.Remove(t.place)
	w.count--
	switch next := line.Front(); {
	case next == nil:
		delete(w.lines, t.key)
	case first:
		close(next.Value.(*ticket).head) //nolint:forcetypeassert // the line holds nothing else
	}
}

// turn waits until the ticket is at the head, the deadline or the end of the context. It reports false after those.
func (t *ticket) turn(ctx context.Context, within time.Duration) bool {
	select {
	case <-t.head:
		return true
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-t.head:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// lineOf names the line of a rule that applies.
func (s *scratch) lineOf(a *applied) string {
	return s.p.rules[a.rule].name + "\x00" + string(s.buf[a.key.from:a.key.to])
}

// lineUp puts a request behind those that wait already: who comes later must not get in before them. It returns the
// engine of the time at which its turn comes, in virtual time; else nil.
func (e *Engine) lineUp(s *scratch, v *httpverdict.Verdict) *Engine {
	for i := range s.applied {
		a := &s.applied[i]
		rule := &s.p.rules[a.rule]
		if rule.action.kind != Wait || rule.shadow {
			continue
		}
		if e.still {
			if tail := e.lines.tail(s.lineOf(a)); tail.After(e.at) {
				return e.later(s, v, rule, tail)
			}
			continue
		}
		if !e.lines.empty(s.lineOf(a)) {
			e.join(s, v, a)
			return nil
		}
	}
	return nil
}

// join waits for the head of a line. Where that fails, the verdict says so.
func (e *Engine) join(s *scratch, v *httpverdict.Verdict, a *applied) bool {
	rule := &s.p.rules[a.rule]
	t, err := e.lines.join(s.lineOf(a))
	if err != nil {
		v.Kind, v.Rule, v.Code = httpverdict.Overloaded, rule.name, string(headgate.CodeOverloaded)
		v.RetryAfter = headgate.Retry{After: rule.action.maxWait}
		return false
	}
	s.ticket, s.deadline = t, time.Now().Add(rule.action.maxWait)
	start := time.Now()
	ok := t.turn(s.ctx, rule.action.maxWait)
	s.waited += time.Since(start)
	if !ok {
		e.tooLong(v, rule, headgate.Retry{After: rule.action.maxWait})
	}
	return ok
}

// tooLong writes the verdict of a request whose turn does not come in time.
func (e *Engine) tooLong(v *httpverdict.Verdict, rule *rule, retry headgate.Retry) {
	v.Kind, v.Rule, v.Code, v.RetryAfter = httpverdict.Overloaded, rule.name, codeWaited, retry
}

// wait holds a denied request until it may ask again. It returns nil if that does not come in time.
func (e *Engine) wait(s *scratch, v *httpverdict.Verdict, rule *rule) *Engine {
	o := &s.decision.Outcomes[s.decision.Binding]
	pause := o.RetryAfter.After
	switch {
	case o.RetryAfter.State == headgate.RetryNever || o.Reason == headgate.ReasonGone:
		deny(s, v)
		return nil
	case o.RetryAfter.State == headgate.RetryUnknown:
		pause = pollSlots
	}
	if e.still {
		return e.waitVirtually(s, v, rule, pause)
	}
	joined := s.ticket == nil
	if joined {
		if pause > rule.action.maxWait {
			e.tooLong(v, rule, o.RetryAfter)
			return nil
		}
		waited := s.waited
		if !e.join(s, v, s.appliedOf(s.decision.Binding)) {
			return nil
		}
		pause -= s.waited - waited
	}
	if pause > time.Until(s.deadline) {
		e.tooLong(v, rule, o.RetryAfter)
		return nil
	}
	return e.sleep(s, v, rule, pause)
}

func (e *Engine) sleep(s *scratch, v *httpverdict.Verdict, rule *rule, pause time.Duration) *Engine {
	if pause <= 0 {
		return e
	}
	start := time.Now()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.waited += time.Since(start)
		return e
	case <-s.ctx.Done():
		s.waited += time.Since(start)
		e.tooLong(v, rule, headgate.Retry{After: pause})
		return nil
	}
}

// In virtual time nobody is held: the request is judged at the time at which its turn would come.

func (w *waitLines) tail(key string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tails[key]
}

func (w *waitLines) setTail(key string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tails) >= maxTails {
		clear(w.tails) // a replay of many keys: those that are over are most of them
	}
	w.tails[key] = at
}

func (e *Engine) waitVirtually(s *scratch, v *httpverdict.Verdict, rule *rule, pause time.Duration) *Engine {
	return e.later(s, v, rule, e.at.Add(pause))
}

// keepTails notes when the lines that an allowed request stood in end.
func (e *Engine) keepTails(s *scratch) {
	for i := range s.applied {
		a := &s.applied[i]
		if rule := &s.p.rules[a.rule]; rule.action.kind == Wait && !rule.shadow && s.held > 0 {
			e.lines.setTail(s.lineOf(a), e.at)
		}
	}
}

// later returns the engine of a later time, nil if that is too late for the rule.
func (e *Engine) later(s *scratch, v *httpverdict.Verdict, rule *rule, at time.Time) *Engine {
	view, ok := e.root.view(at)
	wait := at.Sub(s.e.at)
	if !ok || wait > rule.action.maxWait {
		e.tooLong(v, rule, headgate.Retry{After: wait})
		return nil
	}
	s.held = wait
	return view
}
