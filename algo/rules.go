package algo

import (
	headgate "github.com/headgate-io/headgate"
)

// rules is one algorithm. Its methods choose with a switch and not through an interface, so that what they are given
// stays on the stack: a take allocates nothing.
type rules uint8

const (
	ruleDenying rules = iota // every limit whose count is zero
	ruleTokenBucket
	ruleFixedWindow
	ruleSlidingLog
	ruleSlidingWindow
	ruleLeakyBucket
	ruleConcurrency
)

// normalise brings a state, last judged by a limit (nil: none), up to now and under e's limit. It never changes what the
// state points to. The other methods but idleAt take a normalised state.
func (r rules) normalise(s *state, by headgate.Limit, e *env) change {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.normalise(s, by, e)
	case ruleFixedWindow:
		return fixedWindow{}.normalise(s, by, e)
	case ruleSlidingLog:
		return slidingLog{}.normalise(s, by, e)
	case ruleSlidingWindow:
		return slidingWindow{}.normalise(s, by, e)
	case ruleLeakyBucket:
		return leakyBucket{}.normalise(s, by, e)
	case ruleConcurrency:
		return concurrency{}.normalise(s, by, e)
	}
	return denying{}.normalise(s)
}

// judge tells whether a cost of 1 or more passes, or when it will.
func (r rules) judge(s *state, e *env, cost int64) judgement {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.judge(s, e, cost)
	case ruleFixedWindow:
		return fixedWindow{}.judge(s, e, cost)
	case ruleSlidingLog:
		return slidingLog{}.judge(s, e, cost)
	case ruleSlidingWindow:
		return slidingWindow{}.judge(s, e, cost)
	case ruleLeakyBucket:
		return leakyBucket{}.judge(s, e, cost)
	case ruleConcurrency:
		return concurrency{}.judge(s, e)
	}
	return never
}

// pay charges a cost of 1 or more that passed, and returns the mark of its receipt.
func (r rules) pay(s *state, e *env, cost int64) (mark int64) {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.pay(s, e, cost)
	case ruleFixedWindow:
		return fixedWindow{}.pay(s, cost)
	case ruleSlidingLog:
		return slidingLog{}.pay(s, e, cost)
	case ruleSlidingWindow:
		return slidingWindow{}.pay(s, e, cost)
	case ruleLeakyBucket:
		return leakyBucket{}.pay(s, e, cost)
	case ruleConcurrency:
		return concurrency{}.pay(s, e)
	}
	return 0
}

// room is how much of a cost a settling charge takes.
func (r rules) room(s *state, e *env, cost int64) int64 {
	switch r {
	case ruleLeakyBucket:
		return leakyBucket{}.room(s, e, cost)
	case ruleConcurrency:
		return min(cost, concurrency{}.room(s, e))
	}
	left, _ := r.left(s, e)
	return min(cost, left)
}

// left is how many whole units are left; false if that cannot be said.
func (r rules) left(s *state, e *env) (units int64, ok bool) {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.left(s, e), true
	case ruleFixedWindow:
		return max(0, e.size-s.count), true
	case ruleSlidingLog:
		return max(0, e.size-slidingLog{}.used(s, e)), true
	case ruleSlidingWindow:
		return slidingWindow{}.left(s, e), true
	case ruleLeakyBucket:
		return leakyBucket{}.left(s, e)
	case ruleConcurrency:
		return max(0, e.size-concurrency{}.used(s, e)), true
	}
	return 0, true
}

// resetAfter is the time, in µs, after which the state is as if never used.
func (r rules) resetAfter(s *state, e *env) int64 {
	switch r {
	case ruleTokenBucket, ruleLeakyBucket:
		return s.ahead(e.now).ceil()
	case ruleFixedWindow:
		if s.count > 0 {
			return s.extra - e.now
		}
	case ruleSlidingLog:
		return slidingLog{}.resetAfter(s, e)
	case ruleSlidingWindow:
		return slidingWindow{}.resetAfter(s, e)
	case ruleConcurrency:
		return concurrency{}.resetAfter(s, e)
	}
	return 0
}

// refund gives back up to n units of the charge placed at mark; false, and nothing changed, if it is too late.
func (r rules) refund(s *state, e *env, n, mark int64) bool {
	switch r {
	case ruleTokenBucket, ruleLeakyBucket:
		return refundMeter(s, e, n, mark)
	case ruleFixedWindow:
		return fixedWindow{}.refund(s, n, mark)
	case ruleSlidingLog:
		return slidingLog{}.refund(s, e, n, mark)
	case ruleSlidingWindow:
		return slidingWindow{}.refund(s, e, n, mark)
	case ruleConcurrency:
		return concurrency{}.refund(s, e)
	}
	return false
}

// empty tells whether there is nothing in the state that is worth keeping.
func (r rules) empty(s *state) bool {
	switch r {
	case ruleTokenBucket, ruleLeakyBucket:
		return false
	case ruleFixedWindow:
		return s.count == 0
	case ruleSlidingLog, ruleSlidingWindow:
		return len(s.series) == 0
	case ruleConcurrency:
		return s.holders == nil || s.holders.live.Len()+s.holders.gone.Len() == 0
	}
	return true
}

// idleAt is when a state that is not empty is as if never used.
func (r rules) idleAt(s *state, e *env) int64 {
	switch r {
	case ruleTokenBucket, ruleLeakyBucket:
		return span{s.at, s.extra}.ceil()
	case ruleFixedWindow:
		return s.extra
	case ruleSlidingLog:
		return s.series[len(s.series)-1] + e.length
	case ruleSlidingWindow:
		return s.at + int64(e.cells+1)*e.length
	case ruleConcurrency:
		return concurrency{}.idleAt(s)
	}
	return headgate.MinTime
}

// used is what is charged, for people to look at.
func (r rules) used(s *state, e *env) int64 {
	switch r {
	case ruleTokenBucket:
		return e.size - tokenBucket{}.left(s, e)
	case ruleFixedWindow:
		return s.count
	case ruleSlidingLog:
		return slidingLog{}.used(s, e)
	case ruleSlidingWindow:
		return slidingWindow{}.used(s, e)
	case ruleLeakyBucket:
		return leakyBucket{}.used(s, e)
	case ruleConcurrency:
		return concurrency{}.used(s, e)
	}
	return 0
}
