package replay

import (
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Policy is a policy to be replayed, on a store of its own.
type Policy struct {
	// Name stands for the policy in the report.
	Name string
	// Decider is asked about every request. It should explain its verdicts in Verdict.Matches: without that nothing is known
	// of single rules but which of them denied.
	Decider httpverdict.Timed
	// Rules are the rules in the order of the policy.
	Rules []RuleInfo
	// Forget, if not nil, lets the store forget the keys that are idle at a time. It is called now and then.
	Forget func(now time.Time)
	// Overflowed, if not nil, tells how many charges had no state of their own for want of room.
	Overflowed func() uint64
	// Unlogged are dimensions that logs do not have by themselves, by name.
	Unlogged map[string]Unlogged
	// Notes is what a reader of the report must know of the policy.
	Notes []string
}

// Unlogged says why logs do not have a dimension by themselves.
type Unlogged struct {
	// From is where it comes from, such as "a cookie".
	From string
	// Header is the header that gives it, where there is one.
	Header string
	// Needs, if there are any, are the dimensions that it is made of: it lacks if one of them does.
	Needs []string
}

// RuleInfo is what a report needs to know of a rule.
type RuleInfo struct {
	Name string
	// Mode is "enforce", "shadow" or "off".
	Mode string
	// Keyed tells that the rule has a key: otherwise all requests share one bucket.
	Keyed bool
	// KeyDimensions are the dimensions of each part of the key; of several the first that is present counts.
	KeyDimensions [][]string
	// Limits are those that are in force when no override and no schedule changes them.
	Limits []headgate.Limit
	// Settled tells that the rule is charged when the answer is known.
	Settled bool
	// UnitCostMicros is what one request that was let through costs, in millionths of a unit of Currency; 0 for nothing.
	UnitCostMicros int64
	Currency       string
}
