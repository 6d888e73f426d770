package limitertest

import (
	"context"
	"fmt"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

// world is a limiter and the oracle that live through the same trace.
type world struct {
	family family
	// subject and truth share the steps of the trace; prefix keeps keys apart from those of other traces.
	subject, truth headgate.Timed
	prefix         string
	// forward is a world on several nodes: the clock never steps back, and there are no shadow charges beside others once a
	// limit has changed.
	forward  bool
	reloaded bool // a limit has changed

	now   int64 // µs
	slots []*slot
	takes []*taken
	// waits are times that the last outcomes named: where answers change.
	waits []int64
	lines []string
}

// slot is a place for limits; its limit and lockout can change in a trace.
type slot struct {
	name    string
	limit   headgate.Limit
	lockout *headgate.Lockout
}

// taken is a take that can be refunded, and the decisions of both.
type taken struct {
	charges        []headgate.Charge
	subject, truth headgate.Decision
}

func newWorld(t *rapid.T, f family, subject, truth headgate.Timed) *world {
	w := &world{family: f, subject: subject, truth: truth, now: drawStart(t, f)}
	w.lines = append(w.lines, "start "+time.UnixMicro(w.now).UTC().Format(time.RFC3339Nano))
	for i := range rapid.IntRange(1, f.slots).Draw(t, "slots") {
		s := &slot{name: fmt.Sprintf("s%d", i), limit: f.limits(t)}
		if f.lockouts {
			s.lockout = drawLockout(t)
		}
		w.slots = append(w.slots, s)
		w.lines = append(w.lines, fmt.Sprintf("limit %s: %s%s", s.name, s.limit, showLockout(s.lockout)))
	}
	return w
}

// at returns both limiters at the time of the world.
func (w *world) at() (subject, truth headgate.Limiter) {
	now := time.UnixMicro(w.now)
	return w.subject.At(now), w.truth.At(now)
}

// shift moves the clock, within the years that are allowed.
func (w *world) shift(by int64) {
	if w.forward {
		by = max(by, 0)
	}
	w.now = min(max(w.now+by, headgate.MinTime), headgate.MaxTime-1)
}

func (w *world) log(format string, args ...any) {
	w.lines = append(w.lines, "at "+time.UnixMicro(w.now).UTC().Format("2006-01-02T15:04:05.999999Z")+" "+fmt.Sprintf(format, args...))
}

func (w *world) script() string { return "\t" + strings.Join(w.lines, "\n\t") + "\n" }

// look returns what the oracle says of a slot's key, which changes nothing.
func (w *world) look(s *slot, key string) headgate.Outcome {
	_, truth := w.at()
	d, err := headgate.Take(context.Background(), truth, headgate.Charge{Slot: s.name, Key: w.prefix + key, Limit: s.limit})
	if err != nil || len(d.Outcomes) != 1 {
		return headgate.Outcome{}
	}
	return d.Outcomes[0]
}

// remember keeps the times at which an answer may change.
func (w *world) remember(d *headgate.Decision) {
	for i := range d.Outcomes {
		o := &d.Outcomes[i]
		for _, wait := range []time.Duration{o.RetryAfter.After, o.ResetAfter, o.Wait} {
			if wait > 0 {
				w.waits = append(w.waits, w.now+int64(wait/time.Microsecond))
			}
		}
	}
	if most := 8; len(w.waits) > most {
		w.waits = w.waits[len(w.waits)-most:]
	}
}
