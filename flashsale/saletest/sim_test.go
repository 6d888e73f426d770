package saletest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// sim runs actors one step at a time. An actor is one operation of an engine in a goroutine of its own; it stands at a gate before
// each call of a port, and of all that do the sim draws the one that goes on. Never do two run at a time.
type sim struct {
	rng   *rand.Rand
	now   time.Time
	turn  chan *actor // whoever was let go is at its next gate, or at its end
	ready []*actor    // at a gate
	steps int
	trace []string // the last lines
	// fail is the chance, in a thousand, that a call fails, before or after it has run.
	fail int
	ends map[string]int // how operations have ended
}

// verdict is what becomes of a call.
type verdict uint8

const (
	goOn verdict = iota
	failBefore
	failAfter
	crashBefore
	crashAfter
)

type actor struct {
	name     string
	instance int
	grant    chan verdict
	call     string
	ended    bool
	err      error
	dead     bool // crashed: every call it makes from now on fails
	after    error
}

type actorKey struct{}

var errCrashed = errors.New("this process has crashed")

func newSim(seed uint64, start time.Time) *sim {
	return &sim{rng: rand.New(rand.NewPCG(seed, 0x5a1e)), now: start, turn: make(chan *actor), ends: map[string]int{}}
}

// gate is where actors stand. Calls without an actor, those of the test itself, pass.
func (s *sim) gate() *porttest.Gate {
	return &porttest.Gate{
		Before: func(ctx context.Context, call string) error {
			a, _ := ctx.Value(actorKey{}).(*actor)
			if a == nil {
				return nil
			}
			return s.stand(a, call)
		},
		After: func(ctx context.Context, _ string, err error) error {
			if a, _ := ctx.Value(actorKey{}).(*actor); a != nil && a.after != nil {
				err := a.after
				if !a.dead {
					a.after = nil
				}
				return err
			}
			return err
		},
	}
}

func (s *sim) stand(a *actor, call string) error {
	if a.dead {
		return errCrashed
	}
	a.call = call
	s.turn <- a
	switch <-a.grant {
	case failBefore:
		return lostCall(call, "nothing ran")
	case failAfter:
		a.after = lostCall(call, "it has run, and the answer is lost")
	case crashBefore:
		a.dead = true
		return errCrashed
	case crashAfter:
		a.dead, a.after = true, errCrashed
	}
	return nil
}

func lostCall(call, what string) error {
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: call + ": " + what}
}

// start begins an operation, up to its first gate.
func (s *sim) start(instance int, name string, op func(ctx context.Context) error) {
	a := &actor{name: fmt.Sprintf("%d:%s", instance, name), instance: instance, grant: make(chan verdict)}
	s.note("start %s", a.name)
	go func() {
		a.err = op(context.WithValue(context.Background(), actorKey{}, a))
		a.ended = true
		s.turn <- a
	}()
	s.await()
}

// await waits for the one that was let go.
func (s *sim) await() {
	a := <-s.turn
	if !a.ended {
		s.ready = append(s.ready, a)
		return
	}
	s.ends[a.name[strings.LastIndexByte(a.name, ' ')+1:]+" "+outcome(a.err)]++
	if a.err != nil {
		s.note("end %s: %v", a.name, a.err)
	} else {
		s.note("end %s", a.name)
	}
}

func outcome(err error) string {
	switch code := flashsale.CodeOf(err); {
	case err == nil:
		return "ok"
	case code != "":
		return string(code)
	}
	return "crashed"
}

// step lets one actor make its call. It reports whether there was one.
func (s *sim) step() bool {
	if len(s.ready) == 0 {
		return false
	}
	s.steps++
	s.let(s.rng.IntN(len(s.ready)), s.draw())
	return true
}

func (s *sim) draw() verdict {
	switch n := s.rng.IntN(1000); {
	case n < s.fail:
		return failBefore
	case n < 2*s.fail:
		return failAfter
	}
	return goOn
}

func (s *sim) let(i int, v verdict) {
	a := s.ready[i]
	s.ready = slices.Delete(s.ready, i, i+1)
	s.note("%s %s%s", a.name, a.call, [...]string{"", " FAILS", " IS LOST", " CRASHES BEFORE", " CRASHES AFTER"}[v])
	a.grant <- v
	s.await()
}

// crash ends all actors of an instance: the call that each stands before is made or not made, and nothing after it.
func (s *sim) crash(instance int) {
	s.note("CRASH of %d", instance)
	for i := 0; i < len(s.ready); {
		if s.ready[i].instance != instance {
			i++
			continue
		}
		v := crashBefore
		if s.rng.IntN(2) == 0 {
			v = crashAfter
		}
		s.let(i, v)
	}
}

// finish lets all actors come to their ends without faults.
func (s *sim) finish() {
	s.fail = 0
	for s.step() {
	}
}

const traceLines = 400

func (s *sim) note(format string, args ...any) {
	if len(s.trace) >= 2*traceLines {
		s.trace = slices.Delete(s.trace, 0, traceLines)
	}
	s.trace = append(s.trace, fmt.Sprintf("%6d %s ", s.steps, s.now.Format("15:04:05.000"))+fmt.Sprintf(format, args...))
}

func (s *sim) history() string {
	return strings.Join(s.trace[max(0, len(s.trace)-traceLines):], "\n")
}
