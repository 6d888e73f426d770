package engine

import (
	"fmt"
	"time"
)

// The times of scaling.
const (
	pressedFor   = 2                // seconds of pressure before a worker is added
	trialSettle  = 1                // seconds of a trial that are not measured
	trialMeasure = 3                // seconds that are
	quietFor     = 10               // seconds without pressure before one is taken away
	holdFor      = 30 * time.Second // after a worker that was of no use
	lagBound     = 250 * time.Millisecond
)

// load is what a second has shown.
type load struct {
	now time.Time
	// waiting counts jobs that nobody has pulled, lag is the age of the oldest job.
	waiting int64
	lag     time.Duration
	// decided counts jobs of this process.
	decided int64
	// full and short count pulls that brought a whole batch, and less. The second, while jobs wait, means that the queue does not hand
	// out more: the rate bounds it.
	full, short int64
	// failing tells that SQL does not answer: more workers are the last thing it needs.
	failing bool
}

// scaler says how many workers there should be. A worker is added while jobs wait and the queue hands them out, and stays if it was
// worth it: the database decides, by what it does, how many are of use.
type scaler struct {
	min, max, batch int
	workers         int
	pressed, quiet  int // seconds
	recent          [pressedFor]int64
	trial           *trial
	hold            time.Time
}

// trial measures what one more worker has brought.
type trial struct {
	base    float64 // jobs a second before it
	seconds int
	decided int64
}

// next takes a second into account and says why the number of workers has changed, "" if it has not.
func (s *scaler) next(l load) (why string) {
	pressure := l.waiting > int64(s.workers*s.batch) || l.lag > lagBound && l.waiting > 0
	defer func() { s.recent[0], s.recent[1] = s.recent[1], l.decided }()
	if pressure {
		s.pressed, s.quiet = s.pressed+1, 0
	} else {
		s.pressed, s.quiet = 0, s.quiet+1
	}
	if s.trial != nil {
		return s.judge(l, pressure)
	}
	switch {
	case l.failing:
		s.pressed = 0
	case s.pressed > pressedFor && s.workers < s.max && l.full >= l.short && l.full > 0 && !l.now.Before(s.hold):
		s.trial = &trial{base: float64(s.recent[0]+s.recent[1]) / pressedFor}
		s.workers++
		return fmt.Sprintf("%s, the oldest for %s", counted(l.waiting, "job waits", "jobs wait"), l.lag.Round(time.Millisecond))
	case s.quiet >= quietFor && s.workers > s.min:
		s.quiet = 0
		s.workers--
		return "nothing waits"
	}
	return ""
}

// judge ends a trial in its time. If the pressure is gone, the worker was worth it.
func (s *scaler) judge(l load, pressure bool) string {
	t := s.trial
	if !pressure {
		s.trial = nil
		return ""
	}
	if t.seconds++; t.seconds > trialSettle {
		t.decided += l.decided
	}
	if t.seconds < trialSettle+trialMeasure {
		return ""
	}
	s.trial = nil
	rate := float64(t.decided) / trialMeasure
	if rate >= t.base*worth(s.workers-1) {
		return ""
	}
	s.workers--
	s.hold = l.now.Add(holdFor)
	return fmt.Sprintf("one more worker makes it %.0f jobs a second instead of %.0f", rate, t.base)
}

// worth is by how much the rate must grow with one worker more than n: a quarter of its share, at least 5 %.
func worth(n int) float64 { return max(1.05, 1+0.25/float64(n)) }
