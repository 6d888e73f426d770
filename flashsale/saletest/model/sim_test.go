package model

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// sim runs actors one call at a time, in a bubble of virtual time. An actor is one operation of an engine; each of its goroutines
// stands at a gate before each call of a port, and of all calls that wait the sim draws the one that is made. What goes on between two
// calls is over when every goroutine of the bubble is blocked: at the gate, in a pause, or because it waits for another.
type sim struct {
	f     *finding
	rng   *rand.Rand
	tally *tally
	// shift is how much further than those of the processes the clocks of the world are: the processes stood still for as long.
	shift atomic.Int64
	beats *atomic.Int64 // the watchdog looks whether it rises

	mu      sync.Mutex
	arrived []*call  // since the sim has looked last
	ended   []*actor // since then
	alive   int      // actors that have not ended

	waiting []*call // in an order that the seed decides
	actors  int
	steps   int
	chances chances
	trace   trace
	// before is told of each call before it is made, and says what becomes of it: stories crash where they like; nil: nobody.
	before func(c *call, v verdict) verdict
	// wrote tells that a call was made that may have written to SQL.
	wrote bool
	// idleFor is for how long nobody has come to the gate.
	idleFor time.Duration
}

// chances are those, in a thousand, that a call fails before it runs, that its answer is lost, that it runs twice.
type chances struct{ fail, lose, twice int }

// verdict is what becomes of a call.
type verdict uint8

const (
	goOn verdict = iota
	failBefore
	failAfter
	twice
	crashBefore
	crashAfter
)

var verdicts = [...]string{"", " FAILS", " IS LOST", " RUNS TWICE", " CRASHES BEFORE", " CRASHES AFTER"}

// call waits at the gate.
type call struct {
	actor *actor
	name  string
	grant chan verdict
}

// life is a process, from its start to its crash.
type life struct {
	instance int
	dead     atomic.Bool
}

type actor struct {
	id    int
	name  string
	kind  string
	life  *life
	err   error
	calls int
	// slow is the step until which it is left standing at the gate, as long as there are others.
	slow int
	// rebuild is the number of the rebuild that this actor has begun, 0: none.
	rebuild int64
}

type actorKey struct{}

var errCrashed = errors.New("this process has crashed")

func newSim(f *finding, seed uint64, t *tally, beats *atomic.Int64) *sim {
	return &sim{f: f, rng: rand.New(rand.NewPCG(seed, 0x5a1e)), tally: t, beats: beats, wrote: true, trace: newTrace()}
}

// now is the clock of the world: of the stores, the provider and the shoppers.
func (s *sim) now() time.Time { return time.Now().Add(time.Duration(s.shift.Load())) }

// pass lets time pass: timers of the processes run out.
func (s *sim) pass(d time.Duration) {
	time.Sleep(d)
	s.settle()
}

// freeze lets time pass while all processes stand still, as on a machine that was paused: their timers do not run.
func (s *sim) freeze(d time.Duration) { s.shift.Add(int64(d)) }

// gate is where actors stand. Calls without an actor, those of the test itself, pass.
func (s *sim) gate() *porttest.Gate {
	return &porttest.Gate{Around: func(ctx context.Context, name string, do func() error) error {
		a, _ := ctx.Value(actorKey{}).(*actor)
		if a == nil {
			return do()
		}
		return s.through(a, name, do)
	}}
}

func (s *sim) through(a *actor, name string, do func() error) error {
	if a.life.dead.Load() {
		return errCrashed
	}
	c := &call{actor: a, name: name, grant: make(chan verdict)}
	s.mu.Lock()
	s.arrived = append(s.arrived, c)
	s.mu.Unlock()
	v := <-c.grant
	switch v {
	case failBefore:
		return lostCall(name, "nothing ran")
	case crashBefore:
		return errCrashed
	case twice:
		_ = do()
	}
	err := do()
	switch {
	case a.life.dead.Load():
		return errCrashed
	case v == failAfter:
		return lostCall(name, "it has run, and the answer is lost")
	}
	return err
}

func lostCall(name, what string) error {
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: name + ": " + what}
}

// start begins an operation, up to its first call.
func (s *sim) start(l *life, kind, name string, op func(ctx context.Context) error) {
	s.actors++
	a := &actor{id: s.actors, name: fmt.Sprintf("%d:%s#%d", l.instance, name, s.actors), kind: kind, life: l}
	s.note("start %s", a.name)
	s.mu.Lock()
	s.alive++
	s.mu.Unlock()
	go func() {
		a.err = op(context.WithValue(context.Background(), actorKey{}, a))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.alive--
		s.ended = append(s.ended, a)
	}()
	s.settle()
}

// settle waits until everybody is blocked, and takes those in who have come to the gate. Two that have come together are put in the
// order of their actors.
func (s *sim) settle() {
	synctest.Wait()
	s.mu.Lock()
	arrived, ended := s.arrived, s.ended
	s.arrived, s.ended = nil, nil
	s.mu.Unlock()
	slices.SortStableFunc(arrived, func(a, b *call) int {
		if a.actor.id != b.actor.id {
			return a.actor.id - b.actor.id
		}
		return strings.Compare(a.name, b.name)
	})
	s.waiting = append(s.waiting, arrived...)
	slices.SortFunc(ended, func(a, b *actor) int { return a.id - b.id })
	for _, a := range ended {
		s.note("end %s: %s", a.name, outcome(a.err))
		s.tally.add("end " + a.kind + " " + outcome(a.err))
	}
	if len(arrived)+len(ended) > 0 {
		s.idleFor = 0
	}
}

func outcome(err error) string {
	switch code := flashsale.CodeOf(err); {
	case err == nil:
		return "ok"
	case errors.Is(err, errCrashed):
		return "crashed"
	case code != "":
		return string(code)
	}
	return "failed: " + err.Error()
}

// maxIdle is how long, in virtual time, nobody may come to the gate while there are actors.
const maxIdle = time.Hour

// step lets one call be made, or lets a little time pass for those that pause. It reports whether there was anybody.
func (s *sim) step() bool {
	s.settle()
	s.mu.Lock()
	alive := s.alive
	s.mu.Unlock()
	if alive == 0 {
		return false
	}
	if len(s.waiting) == 0 || s.pausing(alive) && s.rng.IntN(4) == 0 {
		d := 5*time.Millisecond + s.idleFor
		s.idleFor += d
		if s.idleFor > maxIdle {
			s.f.Fatalf("%d actors are alive, and none has made a call for an hour", alive)
		}
		s.pass(d)
		return true
	}
	s.let(s.pick(), s.draw())
	return true
}

// slowOnes counts the calls of those that are left standing.
func (s *sim) slowOnes() (n int) {
	for _, c := range s.waiting {
		if c.actor.slow > s.steps {
			n++
		}
	}
	return n
}

// pick draws one of those that wait and are not slow.
func (s *sim) pick() int {
	var quick []int
	for i, c := range s.waiting {
		if c.actor.slow <= s.steps {
			quick = append(quick, i)
		}
	}
	if len(quick) == 0 {
		return s.rng.IntN(len(s.waiting))
	}
	return quick[s.rng.IntN(len(quick))]
}

// pausing reports whether there are actors of which no goroutine is at the gate.
func (s *sim) pausing(alive int) bool {
	at := map[int]bool{}
	for _, c := range s.waiting {
		at[c.actor.id] = true
	}
	return len(at) < alive
}

func (s *sim) draw() verdict {
	switch n := s.rng.IntN(1000); {
	case n < s.chances.fail:
		return failBefore
	case n < s.chances.fail+s.chances.lose:
		return failAfter
	case n < s.chances.fail+s.chances.lose+s.chances.twice:
		return twice
	}
	return goOn
}

// let has a call be made, or not, and waits until everybody is blocked again.
func (s *sim) let(i int, v verdict) {
	c := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.steps++
	s.beats.Add(1)
	c.actor.calls++
	if s.before != nil {
		v = s.before(c, v)
	}
	s.look(c, v)
	s.note("%s %s%s", c.actor.name, c.name, verdicts[v])
	s.wrote = s.wrote || writes(c.name)
	c.grant <- v
	s.settle()
}

// writes reports whether a call may write to SQL.
func writes(name string) bool {
	switch strings.TrimPrefix(name, "orders.") {
	case "Decide", "Tombstone", "Cancel", "Expire", "BeginPayment", "Outcome", "ApplyCapture", "RefuseCapture", "BeginOperation",
		"CommitWithdrawal", "FinishOperation", "BeginRebuild", "EndRebuild":
		return true
	}
	return false
}

// look counts what is worth it.
func (s *sim) look(c *call, v verdict) {
	port, _, _ := strings.Cut(c.name, ".")
	if v != goOn {
		s.tally.add("fault" + strings.ToLower(verdicts[v]) + " " + port)
	}
	a := c.actor
	switch c.name {
	case "orders.BeginRebuild":
		a.rebuild = s.tally.next("rebuilders")
	case "stock.Point", "stock.Drain", "stock.Drop", "stock.Load", "orders.Snapshot", "orders.UnsentOf", "orders.EndRebuild":
		if a.rebuild == 0 {
			return
		}
		if a.rebuild != s.tally.get("rebuilders") {
			s.tally.add("late rebuilder " + c.name)
		}
		if v == crashBefore || v == crashAfter {
			s.tally.add("crash in a rebuild")
		}
	}
}

// crash ends a process: each call that waits is made or not made, and nobody hears of it; nothing else comes from it.
func (s *sim) crash(l *life) {
	s.note("CRASH of %d", l.instance)
	l.dead.Store(true)
	for i := 0; i < len(s.waiting); {
		if s.waiting[i].actor.life != l {
			i++
			continue
		}
		v := crashBefore
		if s.rng.IntN(2) == 0 {
			v = crashAfter
		}
		s.let(i, v)
		i = 0
	}
	s.tally.add("crash")
}

// finish lets all actors come to their ends without faults.
func (s *sim) finish() {
	s.chances = chances{}
	for s.step() {
	}
}

// trace is what has happened, as text: its last lines, and a hash of all of it.
type trace struct {
	lines []string
	hash  uint64
}

const traceLines = 400

func newTrace() trace { return trace{hash: fnv.New64a().Sum64()} }

func (s *sim) note(format string, args ...any) {
	line := fmt.Sprintf("%6d %s ", s.steps, s.now().UTC().Format("15:04:05.000")) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", s.trace.hash, line)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace.hash = h.Sum64()
	if len(s.trace.lines) >= 2*traceLines {
		s.trace.lines = slices.Delete(s.trace.lines, 0, traceLines)
	}
	s.trace.lines = append(s.trace.lines, line)
}

// history is the last of what has happened.
func (s *sim) history() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.trace.lines[max(0, len(s.trace.lines)-traceLines):], "\n")
}
