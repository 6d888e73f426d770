package policy

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Position is a place in the document; lines and columns count from 1. The zero value is no place.
type Position struct{ Line, Column int }

// Rule is what a rule says, for listings, lint and reports. Fields that are not in the document have their defaults.
type Rule struct {
	Name string
	Mode Mode
	// Methods, Hosts, Paths and Headers are what the rule matches; empty means any. Headers are "Name: value", with "*" for
	// any value.
	Methods, Hosts, Paths, Headers []string
	IgnoreCase                     bool
	// When is the text of a condition in CEL, "" for none.
	When string
	// WhenInputs are what the condition reads of the request, out of bytes, cookies, headers, host, ip, method, path, query and
	// time; WhenDimensions the dimensions that it names.
	WhenInputs, WhenDimensions []string
	// WhenNever tells that the condition is false whatever the request.
	WhenNever bool
	// Key has the parts of the key as they are written; empty for one bucket for all. KeyDimensions has the same by the
	// names of the dimensions, the alternatives of a part together.
	Key           []string
	KeyDimensions [][]string
	// Missing is "shared", "skip" or "deny".
	Missing string
	// Skip has the names of lists whose members the rule does not apply to.
	Skip   []string
	Limits []headgate.Limit
	// Overrides replace the limits for some requests.
	Overrides []Override
	// Schedule changes the limits for a time.
	Schedule []ScheduleEntry
	// WarmupFrom is the fraction, 0 to 1, of the limits at which the rule begins after it has come into force, and
	// WarmupOver how long it takes to the whole; 0 for no warm-up.
	WarmupFrom float64
	WarmupOver time.Duration
	Lockout    *headgate.Lockout
	// Cost is the text of the cost: "" for 1, "request.bytes", "response.bytes" or CEL. MinCost is at least 1.
	Cost    string
	MinCost int64
	// CostInputs and CostDimensions are to a cost in CEL what WhenInputs and WhenDimensions are to the condition.
	CostInputs, CostDimensions []string
	// CountWhen is the text of a condition in CEL, "" for none. CountNever tells that it is false whatever the answer.
	CountWhen  string
	CountNever bool
	// Settled tells that the rule is charged when the answer is known: before that, it is only checked.
	Settled bool
	// Action is what is done with a request that the rule denies.
	Action Action
	Store  StoreKind
	// OnError is what is done when the store fails.
	OnError  OnError
	Layer    Layer
	UnitCost Money
	Priority Priority

	positions map[string]Position
}

// At returns where a field of the rule stands in the document, such as "limits"; "" is the rule itself. A field that is
// not there is where the rule is.
func (r *Rule) At(field string) Position {
	if p, ok := r.positions[field]; ok {
		return p
	}
	return r.positions[""]
}

// Override is a set of limits in place of a rule's own.
type Override struct {
	// Dimension and Value, or List, say for which requests.
	Dimension, Value, List string
	Limits                 []headgate.Limit
	Position               Position
}

// ScheduleEntry is a set of limits in place of a rule's own for a time.
type ScheduleEntry struct {
	// Text says when, as it is written.
	Text string
	// Until is when an entry with from and to ends; the zero time for a daily one, which does not.
	Until time.Time
	// Limits take the place of the rule's limits one by one.
	Limits []headgate.Limit
	// Ramp is how long it takes from the rule's limits to these.
	Ramp     time.Duration
	Position Position
}

// Action is what is done with a denied request.
type Action string

// The actions.
const (
	Reject      Action = "reject"
	Wait        Action = "wait"
	Mark        Action = "mark"
	Stale       Action = "stale"
	Fallback    Action = "fallback"
	Challenge   Action = "challenge"    // acts as Reject, with a warning
	WaitingRoom Action = "waiting_room" // acts as Reject, with a warning
	Queue       Action = "queue"        // acts as Reject, with a warning
)

// StoreKind says where a rule's states are.
type StoreKind string

// The stores.
const (
	Strict StoreKind = "strict" // in the store itself
	Leased StoreKind = "leased" // charged ahead in the store and spent in this process; as Strict where the program brings no leases
	Local  StoreKind = "local"  // in this process alone
)

// OnError says what becomes of a request when the store of a rule fails.
type OnError string

// What is done when the store fails.
const (
	OnErrorLocal  OnError = "local"  // limits in this process take its place
	OnErrorOpen   OnError = "open"   // the rule drops out
	OnErrorClosed OnError = "closed" // 503
	OnErrorStale  OnError = "stale"  // the last good answer, else 503
)

// Layer groups rules by who they limit.
type Layer string

// The layers.
const (
	LayerGlobal Layer = "global"
	LayerUser   Layer = "user"
	LayerDevice Layer = "device"
)

// Priority says what overload sheds first.
type Priority string

// The priorities.
const (
	Critical  Priority = "critical"
	Normal    Priority = "normal"
	Sheddable Priority = "sheddable"
)

// Money is an amount in millionths of a currency's unit.
type Money struct {
	Micros   int64
	Currency string // three capital letters; "" for no amount
}

// Dimension is what a dimension is, for listings and lint.
type Dimension struct {
	Name string
	// Source is "ip", "route", "method", "path", "host", "header", "cookie", "query", "json", "jwt", "cel", "redis" or "http".
	Source string
	// Header is the header that it is read from whoever sends it, "" for another source and for a trusted header.
	Header string
	// Needs are the dimensions that it is made of, and Inputs what else an expression reads, as [Rule.WhenInputs] says.
	Needs, Inputs []string
	// Forgeable tells that a client can choose the value freely.
	Forgeable bool
	// Bits is how much of an IPv6 address counts, for addresses.
	Bits int
}

// List is a set that the document names.
type List struct {
	Name string
	// Dimension is what its entries are values of; "" for a list of addresses.
	Dimension string
	// AllIPv4 and AllIPv6 tell that every such address is on the list.
	AllIPv4, AllIPv6 bool
	Position         Position
	values           map[string]struct{}
}

// Has tells whether a value of the dimension, as requests have it, is on the list. It is false of every address.
func (l *List) Has(value string) bool {
	_, ok := l.values[value]
	return ok
}

// Capacity is what a part of the service is said to bear.
type Capacity struct {
	// Path is a path pattern.
	Path string
	// Rate is in requests.
	Rate     headgate.Limit
	Position Position
}
