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

func rulesOf(l headgate.Limit) rules {
	switch l := l.(type) {
	case headgate.TokenBucket:
		return orDenying(tokenPace(l).den, ruleTokenBucket)
	case headgate.FixedWindow:
		return orDenying(l.Count(), ruleFixedWindow)
	case headgate.SlidingLog:
		return orDenying(l.Count(), ruleSlidingLog)
	case headgate.SlidingWindow:
		return orDenying(l.Count(), ruleSlidingWindow)
	case headgate.LeakyBucket:
		return orDenying(leakyPace(l).den, ruleLeakyBucket)
	case headgate.Concurrency:
		return orDenying(l.Count(), ruleConcurrency)
	}
	return ruleDenying
}

func orDenying(count int64, r rules) rules {
	if count == 0 {
		return ruleDenying
	}
	return r
}

// normalise brings a state up to now and under the limit; it reports whether that must be written even by a denial. It
// never changes what the state points to. The other methods but idleAt and used take a normalised state.
func (r rules) normalise(s *state, e *env) bool {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.normalise(s, e)
	case ruleFixedWindow:
		return fixedWindow{}.normalise(s, e)
	case ruleSlidingLog:
		return slidingLog{}.normalise(s, e)
	case ruleSlidingWindow:
		return slidingWindow{}.normalise(s, e)
	case ruleLeakyBucket:
		return leakyBucket{}.normalise(s, e)
	case ruleConcurrency:
		return concurrency{}.normalise(s, e)
	}
	return denying{}.normalise(s, e)
}

// judge tells whether a cost passes, or when it will.
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
		return concurrency{}.judge(s, e, cost)
	}
	return denying{}.judge(s, e, cost)
}

// left is how much of a cost a settling charge takes.
func (r rules) left(s *state, e *env, cost int64) int64 {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.left(s, e, cost)
	case ruleFixedWindow:
		return fixedWindow{}.left(s, e, cost)
	case ruleSlidingLog:
		return slidingLog{}.left(s, e, cost)
	case ruleSlidingWindow:
		return slidingWindow{}.left(s, e, cost)
	case ruleLeakyBucket:
		return leakyBucket{}.left(s, e, cost)
	case ruleConcurrency:
		return concurrency{}.left(s, e, cost)
	}
	return denying{}.left(s, e, cost)
}

// pay charges a cost of 1 or more that passed, and returns the mark of its receipt.
func (r rules) pay(s *state, e *env, cost int64) int64 {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.pay(s, e, cost)
	case ruleFixedWindow:
		return fixedWindow{}.pay(s, e, cost)
	case ruleSlidingLog:
		return slidingLog{}.pay(s, e, cost)
	case ruleSlidingWindow:
		return slidingWindow{}.pay(s, e, cost)
	case ruleLeakyBucket:
		return leakyBucket{}.pay(s, e, cost)
	case ruleConcurrency:
		return concurrency{}.pay(s, e, cost)
	}
	return denying{}.pay(s, e, cost)
}

// report fills in what is left and when it is all back.
func (r rules) report(s *state, e *env, o *headgate.Outcome) {
	switch r {
	case ruleTokenBucket:
		tokenBucket{}.report(s, e, o)
	case ruleFixedWindow:
		fixedWindow{}.report(s, e, o)
	case ruleSlidingLog:
		slidingLog{}.report(s, e, o)
	case ruleSlidingWindow:
		slidingWindow{}.report(s, e, o)
	case ruleLeakyBucket:
		leakyBucket{}.report(s, e, o)
	case ruleConcurrency:
		concurrency{}.report(s, e, o)
	default:
		denying{}.report(s, e, o)
	}
}

// refund gives back up to n units of the charge placed at mark and returns how many.
func (r rules) refund(s *state, e *env, n, mark int64) int64 {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.refund(s, e, n, mark)
	case ruleFixedWindow:
		return fixedWindow{}.refund(s, e, n, mark)
	case ruleSlidingLog:
		return slidingLog{}.refund(s, e, n, mark)
	case ruleSlidingWindow:
		return slidingWindow{}.refund(s, e, n, mark)
	case ruleLeakyBucket:
		return leakyBucket{}.refund(s, e, n, mark)
	case ruleConcurrency:
		return concurrency{}.refund(s, e, n, mark)
	}
	return denying{}.refund(s, e, n, mark)
}

// idleAt is when the state is as if never seen.
func (r rules) idleAt(s *state) int64 {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.idleAt(s)
	case ruleFixedWindow:
		return fixedWindow{}.idleAt(s)
	case ruleSlidingLog:
		return slidingLog{}.idleAt(s)
	case ruleSlidingWindow:
		return slidingWindow{}.idleAt(s)
	case ruleLeakyBucket:
		return leakyBucket{}.idleAt(s)
	case ruleConcurrency:
		return concurrency{}.idleAt(s)
	}
	return denying{}.idleAt(s)
}

// used is what is charged at the time, for people to look at.
func (r rules) used(s *state, now int64) int64 {
	switch r {
	case ruleTokenBucket:
		return tokenBucket{}.used(s, now)
	case ruleFixedWindow:
		return fixedWindow{}.used(s, now)
	case ruleSlidingLog:
		return slidingLog{}.used(s, now)
	case ruleSlidingWindow:
		return slidingWindow{}.used(s, now)
	case ruleLeakyBucket:
		return leakyBucket{}.used(s, now)
	case ruleConcurrency:
		return concurrency{}.used(s, now)
	}
	return denying{}.used(s, now)
}
