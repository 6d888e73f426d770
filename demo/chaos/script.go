package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/demo"
)

// Bounds of the duration: a shorter one has no time for the faults, and a longer one more admissions than are kept.
const (
	MinDuration = 15 * time.Second
	MaxDuration = 10 * time.Minute
)

// kind is what is done to the store.
type kind uint8

const (
	killAndKeep kind = iota // SIGKILL, and started again with its data
	stop                    // SIGSTOP
	killAndWipe             // SIGKILL, and started again without its data
)

// step is one fault of a script.
type step struct {
	kind  kind
	name  string
	at    time.Duration // since the doors opened
	lasts time.Duration
}

// Times that do not scale: a pause that a second of calls falls into, and one as long as a fork takes.
const (
	longStop   = time.Second
	shortStop  = 250 * time.Millisecond
	longestOut = 10 * time.Second
)

// script returns the faults for a demo of a duration. Between two there is time to recover, and at both ends it is calm.
func script(d time.Duration) []step {
	part := func(percent int) time.Duration { return d * time.Duration(percent) / 100 }
	out := func(percent int) time.Duration { return min(part(percent), longestOut) }
	return []step{
		{killAndKeep, "killed, its data kept", part(15), out(15)},
		{stop, "stopped for 1 s", part(46), longStop},
		{stop, "stalled for 250 ms", part(60), shortStop},
		{killAndWipe, "killed, its data lost", part(70), out(12)},
	}
}

// store is what the script does to a Redis; [redisserver.Server] is one.
type store interface {
	Kill()
	Wipe() error
	Pause() error
	Resume() error
	Restart(ctx context.Context) error
	Dead() <-chan struct{}
}

// stageHand is told what the script does.
type stageHand interface {
	begins(s step)
	// down is called when the process is dead, of a fault that kills it.
	down(s step)
	ends(s step)
}

var errDied = errors.New("the Redis of the demo ended, and it was not the script that ended it")

// play runs the script, beginning now, until it is over or ctx ends. Whatever it returns, the store is not left paused.
func play(ctx context.Context, steps []step, s store, told stageHand) error {
	began := time.Now()
	for _, step := range steps {
		if err := until(ctx, began.Add(step.at), s.Dead()); err != nil {
			return notCancelled(ctx, err)
		}
		told.begins(step)
		if err := inflict(ctx, step, s, told); err != nil {
			return notCancelled(ctx, fmt.Errorf("chaos: the store was %s: %w", step.name, err))
		}
		told.ends(step)
	}
	return notCancelled(ctx, until(ctx, began.Add(2*MaxDuration), s.Dead()))
}

// notCancelled drops what fails since the demo is over.
func notCancelled(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func inflict(ctx context.Context, step step, s store, told stageHand) (err error) {
	over := time.Now().Add(step.lasts)
	if step.kind == stop {
		if err := s.Pause(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Resume()) }()
		return until(ctx, over, s.Dead())
	}
	s.Kill()
	told.down(step)
	if step.kind == killAndWipe {
		if err := s.Wipe(); err != nil {
			return err
		}
	}
	if err := until(ctx, over, nil); err != nil {
		return err
	}
	return s.Restart(ctx)
}

// until waits for a time. It fails if ctx ends before, or if what should live dies.
func until(ctx context.Context, at time.Time, dead <-chan struct{}) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-dead:
		return errDied
	case <-ctx.Done():
		return ctx.Err()
	}
}

// said is what the view shows of a fault's beginning and of its end.
func (s step) said(begins bool) demo.Event {
	switch {
	case begins && s.kind == stop:
		return demo.Event{Text: "Redis is " + s.name + " (SIGSTOP)", Mood: demo.Bad}
	case begins:
		return demo.Event{Text: "Redis is " + s.name + " (SIGKILL)", Mood: demo.Bad}
	case s.kind == stop:
		return demo.Event{Text: "Redis goes on"}
	case s.kind == killAndWipe:
		return demo.Event{Text: "Redis is started again, empty"}
	}
	return demo.Event{Text: "Redis is started again, with its data"}
}
