package demo

import (
	"time"

	"github.com/headgate-io/headgate/flashsale/simpay"
)

// plan are the times of a demo's sale. They scale with the demo, so that in a short one the story is the same: units that are
// reserved and not paid come back while there are still people who want them.
type plan struct {
	opens, closes time.Time
	// hold is how long a unit waits for its payment to begin, payTime how long that may take, grace how much longer a unit is kept.
	hold, payTime, grace time.Duration
	rate                 int64
	sweep, poll, payAge  time.Duration
	webhookAgain         time.Duration
	// quick is 1 in a demo of 30 s and longer, and less in a shorter one: by so much people wait less than they are asked to.
	quick float64
}

// longestHold is how long a person needs to pay, with a demo that lasts.
const longestHold = 2 * time.Minute

// usual is the length from which on a demo is not hurried.
const usual = 30 * time.Second

func newPlan(start time.Time, d time.Duration) plan {
	quick := min(1, d.Seconds()/usual.Seconds())
	scaled := func(t, least time.Duration) time.Duration { return max(least, time.Duration(float64(t)*quick)) }
	// A person has to find the button, and then their card. What nobody pays for must come back before the sale closes.
	hold := min(max(d*4/15, time.Second), longestHold)
	return plan{
		opens: start.Add(opensAfter(d)), closes: start.Add(d - min(d/5, 2*longestHold)),
		hold: hold, payTime: hold, grace: scaled(200*time.Millisecond, 20*time.Millisecond),
		rate:  1000,
		sweep: scaled(250*time.Millisecond, 50*time.Millisecond), poll: scaled(500*time.Millisecond, 100*time.Millisecond),
		payAge: scaled(2*time.Second, 200*time.Millisecond), webhookAgain: scaled(time.Second, 100*time.Millisecond),
		quick: quick,
	}
}

// opensAfter is when the sale opens: late enough for most people to be ready.
func opensAfter(d time.Duration) time.Duration { return min(d*2/5, 30*time.Second) }

// bank is how the payment provider misbehaves: its messages come late, twice, in the wrong order or never, its calls fail before or
// after they have done something, and some payments that had failed go through after all.
func (p *plan) bank() simpay.Behaviour {
	scaled := func(t time.Duration) time.Duration { return time.Duration(float64(t) * p.quick) }
	return simpay.Behaviour{
		VoidLater: 0.2, VoidTime: simpay.Range{Min: scaled(100 * time.Millisecond), Max: scaled(time.Second)},
		VoidTooLate: 0.05, Undone: 0.25,
		FailBefore: 0.01, FailAfter: 0.01,
		Webhook: simpay.Range{Min: 5 * time.Millisecond, Max: scaled(150 * time.Millisecond)}, LateBy: scaled(time.Second),
		Late: 0.1, Twice: 0.2, Lost: 0.05, Reordered: 0.05,
	}
}

// settleWithin is how long at most it takes after the closing until nothing is held any more, a slow machine included.
func (p *plan) settleWithin() time.Duration { return p.hold + p.payTime + p.grace + 10*time.Second }
