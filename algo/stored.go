package algo

import (
	headgate "github.com/headgate-io/headgate"
)

// Stored is a state in numbers, for a store that decides elsewhere, by the same rules, and has the answer written here.
// The fields mean what the package says of a Cell's; they are of the limit that the state was last judged by.
type Stored struct {
	At, Extra, Count int64
	// Series has the counts of a sliding window, newest first, one more than it has cells. It is written to.
	Series []int64
}

// Seen is a stored state at a time and under a limit.
type Seen struct {
	state state
	env   env
}

// See looks at a state that the limit judged last; nil is one never seen. It serves every algorithm whose state is in
// the numbers of Stored, which leaves out logs and holders.
func See(z *Zones, l headgate.Limit, now int64, s *Stored) Seen {
	v := Seen{env: env{limit: l, now: now, zones: z, same: s != nil}}
	v.env.prepare()
	by := headgate.Limit(nil)
	if s != nil {
		by = l
		v.state = state{at: s.At, extra: s.Extra, count: s.Count, series: s.Series}
	}
	v.env.rules.normalise(&v.state, by, &v.env)
	return v
}

// Judge writes to o whether the cost passes and how long it is then held, or when it will.
func (v *Seen) Judge(cost int64, o *headgate.Outcome) {
	j := passes
	if cost > 0 {
		j = v.env.rules.judge(&v.state, &v.env, cost)
	}
	o.Allowed, o.Reason, o.RetryAfter, o.Wait = j.ok, j.reason, j.retry, 0
	if j.ok {
		o.Wait = v.env.hold(&v.state)
	}
}

// Left is how much of a cost a settling charge takes.
func (v *Seen) Left(cost int64) int64 { return v.env.rules.room(&v.state, &v.env, cost) }

// Used is how much is charged, as the package says of Cell.Used.
func (v *Seen) Used() int64 { return v.env.rules.used(&v.state, &v.env) }

// Pay charges an amount of 1 or more that passed.
func (v *Seen) Pay(amount int64) headgate.Receipt {
	return headgate.Receipt{Charged: amount, Mark: v.env.rules.pay(&v.state, &v.env, amount)}
}

// Report writes to o what is left and when it is all back.
func (v *Seen) Report(o *headgate.Outcome) { v.env.report(&v.state, o) }

// Increment returns the exact time of n units at the pace of a token_bucket or leaky_bucket, in microseconds and a fraction over
// the pace's den; ok is false if it is longer than headgate.MaxPeriod.
func Increment(l headgate.Limit, n int64) (us, frac int64, ok bool) {
	s, ok := paceOf(l).times(n)
	return s.us, s.frac, ok && !(span{us: maxSpan}).less(s)
}

// Drain returns the time of n units that are given back, like Increment, but for any n: what is longer than the longest
// backlog of any limit is given as a microsecond more than that.
func Drain(l headgate.Limit, n int64) (us, frac int64) {
	s, ok := paceOf(l).times(n)
	if !ok {
		return maxBacklog + 1, 0
	}
	return s.us, s.frac
}

// Longest returns how many units of a token_bucket or leaky_bucket last at most headgate.MaxPeriod, at most headgate.MaxCount.
func Longest(l headgate.Limit) int64 { return paceOf(l).units(span{us: maxSpan}, headgate.MaxCount) }

// Units returns how many units a pace of whole + rem/den microseconds has in a time of us + frac/den, rounded up; at most
// math.MaxInt64. A time longer than any backlog, as after a step of the clock, counts as the longest.
func Units(whole, rem, den, us, frac int64) int64 {
	s := span{us, frac}
	if most := (span{us: maxBacklog}); most.less(s) {
		s = most
	}
	return pace{whole, rem, den}.unitsUp(s)
}

func paceOf(l headgate.Limit) pace {
	e := env{limit: l}
	e.prepare()
	return e.pace
}
