package algo

import (
	headgate "github.com/headgate-io/headgate"
)

// env is what a judgement depends on beside the state and the cost: the time, the limit and its numbers.
type env struct {
	limit  headgate.Limit
	now    int64
	holder string
	zones  *Zones
	rules  rules
	// same: the state was last judged by this very limit.
	same bool

	size   int64 // the burst, capacity (0: none) or count
	pace   pace  // of a bucket
	most   span  // of a bucket: size·pace
	length int64 // µs: of a window (0: calendar), a cell, a log's period, a slot's time to live, a queue's max_wait (-1: none)
	cells  int   // of a sliding window
}

// prepare takes the numbers out of the limit, once for each charge.
func (e *env) prepare() {
	switch l := e.limit.(type) {
	case headgate.TokenBucket:
		e.size = l.Burst()
		e.pace.whole, e.pace.rem, e.pace.den = l.Pace()
		e.most = e.pace.mustTimes(e.size)
		e.rules = ruleTokenBucket
		if e.pace.den == 0 {
			e.rules = ruleDenying
		}
	case headgate.FixedWindow:
		e.size, e.length = l.Count(), l.Period().Microseconds()
		e.rules = orDenying(e.size, ruleFixedWindow)
	case headgate.SlidingLog:
		e.size, e.length = l.Count(), l.Period().Microseconds()
		e.rules = orDenying(e.size, ruleSlidingLog)
	case headgate.SlidingWindow:
		e.size, e.cells = l.Count(), int(l.Cells())
		e.rules = orDenying(e.size, ruleSlidingWindow)
		if e.cells > 0 {
			e.length = l.Period().Microseconds() / l.Cells()
		}
	case headgate.LeakyBucket:
		e.prepareLeakyBucket(l)
	case headgate.Concurrency:
		e.size, e.length = l.Count(), l.TTL().Microseconds()
		e.rules = orDenying(e.size, ruleConcurrency)
	}
}

func (e *env) prepareLeakyBucket(l headgate.LeakyBucket) {
	e.size, _ = l.Capacity()
	e.pace.whole, e.pace.rem, e.pace.den = l.Pace()
	e.length = -1
	if wait, ok := l.MaxWait(); ok {
		e.length = wait.Microseconds()
	}
	e.rules = orDenying(e.pace.den, ruleLeakyBucket)
	if e.size > 0 {
		e.most = e.pace.mustTimes(e.size)
	}
}

func orDenying(count int64, r rules) rules {
	if count == 0 {
		return ruleDenying
	}
	return r
}

// change is what normalising did to a state.
type change uint8

const (
	kept    change = iota // nothing but what time does by itself
	altered               // healed or converted
	fresh                 // there was no state, or one of another kind of limit
)

// judgement is the answer of one algorithm for one cost.
type judgement struct {
	ok     bool
	reason headgate.Reason
	retry  headgate.Retry
}

var (
	passes  = judgement{ok: true}
	never   = judgement{reason: headgate.ReasonCostExceedsLimit, retry: headgate.Retry{State: headgate.RetryNever}}
	unknown = judgement{reason: headgate.ReasonLimited, retry: headgate.Retry{State: headgate.RetryUnknown}}
)

func after(us int64) judgement {
	return judgement{reason: headgate.ReasonLimited, retry: headgate.Retry{After: micros(us)}}
}

// denying is the rules of every limit whose count is zero.
type denying struct{}

func (denying) normalise(s *state) change {
	*s = state{}
	return fresh
}
