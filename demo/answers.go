package demo

import (
	"fmt"
	"sync"
)

// answers is what the crowd was told of its reservations. Whoever was given a final answer must not be given another one.
type answers struct {
	mu    sync.Mutex
	of    map[string]told // by the reservation's id
	wrong []string        // what must not be, at most maxWrong
}

// told is what one shopper was told last.
type told struct {
	user, state string
	final       bool
}

// maxWrong bounds what is kept of what went wrong; the others are like it.
const maxWrong = 20

func newAnswers() *answers { return &answers{of: make(map[string]told)} }

// hear notes an answer.
func (a *answers) hear(user string, r *result) {
	if r.RID == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := told{user: user, state: r.State, final: r.final()}
	before, known := a.of[r.RID]
	switch {
	case known && before.user != user:
		a.complain("the reservation %s was shown to %s, and is %s's", r.RID, user, before.user)
	case known && before.final && before.state != now.state:
		if now.final {
			a.complain("%s was told that the reservation %s is %s, and then that it is %s", user, r.RID, before.state, now.state)
		}
		return // an answer that was long on its way
	}
	a.of[r.RID] = now
}

func (a *answers) complain(format string, args ...any) {
	if len(a.wrong) < maxWrong {
		a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
	}
}

// all is a copy of what there is.
func (a *answers) all() (of map[string]told, wrong []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of = make(map[string]told, len(a.of))
	for rid, t := range a.of {
		of[rid] = t
	}
	return of, append([]string(nil), a.wrong...)
}
