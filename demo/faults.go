package demo

import "time"

// Faults is the state of a demo whose store is made to fail, at one moment.
type Faults struct {
	// InForce says in a few words what decides, such as "the store, on 3 of 3 instances"; L1 tells that local limits do, since a
	// breaker is open.
	InForce string
	L1      bool
	// Local counts the decisions that local limits made so far.
	Local int64
	// Events are in the order of time.
	Events []Event
}

// Event is something that happened in a demo.
type Event struct {
	At   time.Duration `json:"-"`
	AtS  float64       `json:"at_s"`
	Text string        `json:"event"`
	// Mood tells bad from good news.
	Mood Mood `json:"-"`
}

// Mood is how an event is to be shown.
type Mood uint8

// The moods.
const (
	Note Mood = iota
	Good
	Bad
)

// FaultSummary is what was admitted while the store was made to fail, as a referee counts it who follows the limits' own words,
// whatever the gateway thought of them.
type FaultSummary struct {
	// Kept is whether nothing was over a limit while the data was there, and both bounds were kept.
	Kept bool `json:"kept"`
	// Instances is how many instances shared the store.
	Instances int `json:"instances"`
	// WithData is what the store decided, each time by the data that it had.
	WithData WithData `json:"with_data"`
	// WithoutStore is what local limits decided. Its bound is what was spent before + the limit + one for each instance.
	WithoutStore Without `json:"without_store"`
	// AfterEmptyRestart is what the store decided after its data was lost, held against all that was admitted before. Its bound
	// is what was spent before + the limit.
	AfterEmptyRestart Without `json:"after_empty_restart"`
	Faults            []Fault `json:"faults"`
	Events            []Event `json:"events"`
	// FellToOnError counts the decisions whose call of the store failed, or was not made since a breaker was open, which
	// BreakerOpen counts.
	FellToOnError int64 `json:"fell_to_on_error"`
	BreakerOpen   int64 `json:"breaker_open"`
	// LongestDecisionMS is the longest time that a request waited for its verdict.
	LongestDecisionMS float64 `json:"longest_decision_ms"`
	// Undated counts the admissions of which the answer tells no time within their call: theirs is the nearest that is, or its end.
	Undated int64 `json:"undated"`
}

// WithData counts requests that the store admitted, and charges that were over a limit by the data that it had.
type WithData struct {
	Admitted int64 `json:"admitted"`
	Over     int64 `json:"over"`
}

// Without counts requests admitted by whoever did not know all that was spent, and charges over a limit. SpentBefore and Bound
// are sums over the keys of which something was over.
type Without struct {
	Admitted int64 `json:"admitted"`
	// Over counts the charges for which a limit that knows all that was ever admitted had no room.
	Over        int64 `json:"over"`
	SpentBefore int64 `json:"spent_before"`
	// Bound is what SpentBefore and Here of those keys may come to.
	Bound int64 `json:"bound"`
	// Here is what was admitted of those keys.
	Here int64 `json:"admitted_of_these_keys"`
	// BoundKept is judged for each key, also of those of which nothing was over.
	BoundKept bool         `json:"bound_kept"`
	ByLimit   []LimitCount `json:"by_limit"`
}

// LimitCount is the part of a [Without] that belongs to one limit.
type LimitCount struct {
	Rule        string `json:"rule"`
	Limit       string `json:"limit"`
	Keys        int    `json:"keys"`
	SpentBefore int64  `json:"spent_before"`
	Here        int64  `json:"admitted_of_these_keys"`
	Over        int64  `json:"over"`
	Bound       int64  `json:"bound"`
}

// Fault is one thing that was done to the store, and what was seen of it until the next one.
type Fault struct {
	Fault string  `json:"fault"`
	AtS   float64 `json:"at_s"`
	// LastedMS is how long it lasted, the restart included.
	LastedMS float64 `json:"lasted_ms"`
	// NoticedMS is the time from its beginning to the first call that failed, L1MS to the first that was not made since a breaker
	// was open; null if there was none.
	NoticedMS *float64 `json:"noticed_ms"`
	L1MS      *float64 `json:"l1_ms"`
	// RecoveredMS is the time from its end until the store had decided again on every instance; null if that was not seen.
	RecoveredMS       *float64 `json:"recovered_ms"`
	FellToOnError     int64    `json:"fell_to_on_error"`
	LongestDecisionMS float64  `json:"longest_decision_ms"`
}
