package policy

import (
	fifo "container/list"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const (
	// pollSlots is after what time a request that waits for a slot looks for one again, since nobody knows when others
	// release; it looks less and less often, down to every maxPollSlots.
	pollSlots    = 25 * time.Millisecond
	maxPollSlots = 200 * time.Millisecond
	// minPause is the least time between two takes of a request that waits.
	minPause = time.Millisecond
	// maxTails bounds what views of virtual time remember.
	maxTails = 100_000
	// lineShare is the part of all places, one in so many, that the requests of one key may take: who sends many at a time
	// must not leave the others without one. A rule without a key has one line, which is everybody's.
	lineShare = 8
	// codeWaited is the code of a request that has waited in vain.
	codeWaited = "wait_timeout"
)

// errLineFull says that as many requests wait as may.
var errLineFull = errors.New("too many requests are waiting")

// waitLines are the requests that wait for their turn: one line for each rule and key. Only the head of a line asks the
// store; the others wait for it to leave. A request stands in the line of the rule that has denied it last, and in no other:
// one that waits for a limit of its own must not keep everybody back who waits for the limit of all.
type waitLines struct {
	most int

	mu    sync.Mutex
	count atomic.Int64          // written under mu
	lines map[string]*fifo.List // of *ticket
	// tails are the times at which the lines of virtual time end.
	tails map[string]time.Time
}

func newWaitLines(most int) *waitLines {
	return &waitLines{most: most, lines: make(map[string]*fifo.List), tails: make(map[string]time.Time)}
}

func (w *waitLines) waiting() int {
	return int(w.count.Load())
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
	left  bool          // guarded by lines.mu
}

// join takes the last place of a line, in place of the one in another line if the request has one.
func (w *waitLines) join(key string, other *ticket) (*ticket, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other != nil {
		other.remove()
	}
	line := w.lines[key]
	if w.waiting() >= w.most || line != nil && line.Len() >= w.longest(key) {
		return nil, errLineFull
	}
	w.count.Add(1)
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

// longest is how many requests a line may have.
func (w *waitLines) longest(key string) int {
	// The first: a client may have a lineEnd of its own at the end of its key.
	if strings.Index(key, lineEnd) == len(key)-len(lineEnd) {
		return w.most
	}
	return max(1, w.most/lineShare)
}

// lineEnd ends the name of the rule in the name of a line; the key follows.
const lineEnd = "\x00"

// leave gives the place up, once or more often; the next one may be the head then.
func (t *ticket) leave() {
	t.lines.mu.Lock()
	defer t.lines.mu.Unlock()
	t.remove()
}

// remove is leave while the lines are locked.
func (t *ticket) remove() {
	if t.left {
		return
	}
	t.left = true
	w := t.lines
	line := w.lines[t.key]
	first := line.Front() == t.place
	line.Remove(t.place)
	w.count.Add(-1)
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
	return s.p.rules[a.rule].name + lineEnd + string(s.buf[a.key.from:a.key.to])
}

// lineUp puts a request behind those that wait already: who comes later must not get in before them. It returns the
// engine of the time at which its turn comes, in virtual time; else nil.
func (e *Engine) lineUp(s *scratch, v *httpverdict.Verdict) *Engine {
	if !e.still && e.lines.waiting() == 0 {
		return nil
	}
	for i := range s.applied {
		a := &s.applied[i]
		rule := &s.p.rules[a.rule]
		if rule.action.kind != Wait || rule.shadow {
			continue
		}
		line := s.lineOf(a)
		if e.still {
			if tail := e.lines.tail(line); tail.After(e.at) {
				s.bePatient(rule)
				s.line = line
				return e.later(s, v, rule, tail)
			}
			continue
		}
		if !e.lines.empty(line) {
			s.bePatient(rule)
			e.join(s, v, rule, line)
			return nil
		}
	}
	return nil
}

// bePatient notes that a rule lets the request wait: it is held no longer than each of those allows.
func (s *scratch) bePatient(rule *rule) {
	if s.patience == 0 {
		s.patience, s.since = rule.action.maxWait, time.Now()
	}
	s.patience = min(s.patience, rule.action.maxWait)
}

// left returns how long the request may still be held.
func (s *scratch) left() time.Duration { return s.patience - time.Since(s.since) }

// join waits for the head of a line, if the request is not there already. Where that fails, the verdict says so.
func (e *Engine) join(s *scratch, v *httpverdict.Verdict, rule *rule, line string) bool {
	if s.ticket != nil && s.ticket.key == line {
		return true
	}
	t, err := e.lines.join(line, s.ticket)
	if s.ticket = t; err != nil {
		v.Kind, v.Rule, v.Code = httpverdict.Overloaded, rule.name, string(headgate.CodeOverloaded)
		v.RetryAfter = headgate.Retry{After: rule.action.maxWait}
		return false
	}
	start := time.Now()
	ok := t.turn(s.ctx, s.left())
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
func (e *Engine) wait(s *scratch, v *httpverdict.Verdict, a *applied) *Engine {
	rule, o := &s.p.rules[a.rule], &s.decision.Outcomes[s.decision.Binding]
	pause := max(o.RetryAfter.After, minPause)
	switch {
	case o.RetryAfter.State == headgate.RetryNever || o.Reason == headgate.ReasonGone:
		deny(s, v)
		return nil
	case o.RetryAfter.State == headgate.RetryUnknown:
		pause = min(pollSlots*time.Duration(1+s.polls/8), maxPollSlots)
		s.polls++
	}
	s.bePatient(rule)
	if e.still {
		return e.waitVirtually(s, v, a, pause)
	}
	until := time.Now().Add(pause)
	if pause > s.left() {
		e.tooLong(v, rule, o.RetryAfter)
		return nil
	}
	if !e.join(s, v, rule, s.lineOf(a)) {
		return nil
	}
	return e.sleep(s, v, rule, time.Until(until))
}

// sleep lets the head of a line wait.
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
