package policy

import (
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// In virtual time nobody is held: a request is judged at the time at which its turn would come. Of a line it is only known
// when its last request leaves it, the tail: who comes before that asks then.

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
	if at.After(w.tails[key]) {
		w.tails[key] = at
	}
}

func (e *Engine) waitVirtually(s *scratch, v *httpverdict.Verdict, a *applied, pause time.Duration) *Engine {
	if line := s.lineOf(a); line != s.line {
		e.leaveVirtually(s)
		s.line = line
		if tail := e.lines.tail(line); tail.After(e.at.Add(pause)) {
			pause = tail.Sub(e.at) // somebody is before it
		}
	}
	return e.later(s, v, &s.p.rules[a.rule], e.at.Add(pause))
}

// leaveVirtually notes when the request leaves the line that it stands in: now.
func (e *Engine) leaveVirtually(s *scratch) {
	if s.line != "" && e.at.After(s.e.at) {
		e.lines.setTail(s.line, e.at)
	}
	s.line = ""
}

// later returns the engine of a later time, nil if that is too late.
func (e *Engine) later(s *scratch, v *httpverdict.Verdict, rule *rule, at time.Time) *Engine {
	view, ok := e.root.view(at)
	wait := at.Sub(s.e.at)
	if !ok || wait > s.patience {
		e.tooLong(v, rule, headgate.Retry{After: wait})
		return nil
	}
	s.held = wait
	return view
}
