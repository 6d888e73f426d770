package metrics

import (
	"log/slog"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Config says what is shown beside what the views are told. The zero Config works. Its functions are called at each scrape,
// by one goroutine or several, and should return soon; what a nil one would tell is not shown.
type Config struct {
	// Version is that of the program. Default: that of the main module.
	Version string
	// MaxRules bounds the rules that have series of their own, 1 or more. Default 2000.
	MaxRules int
	// MaxSKUs bounds the skus of sales that have series of their own, 1 or more; beyond it, those that have not been on sale for an hour
	// make room, and the rest is counted as "(other)". Default 500.
	MaxSKUs int
	// OwnOnly leaves out the figures of the Go runtime and of the process, for programs that show them already. Default false.
	OwnOnly bool
	// Logger gets what goes wrong at a scrape. Default: nothing is logged.
	Logger *slog.Logger

	// Instances is how many instances of the fleet live, FleetAge how old that knowledge is.
	Instances func() int
	FleetAge  func() time.Duration
	// Switches tells of the levels 1 to 3 whether they are on.
	Switches func() [3]bool
	// Breakers tells of each node of the store whether its breaker is open.
	Breakers func() map[string]bool
	// Waiting is how many requests wait because of a rule's on_deny.
	Waiting func() int
	// Gateway, Upstreams, Leases, DenyCache, Overload, Policy and Limits tell what their types say.
	Gateway   func() GatewayFigures
	Upstreams func() []UpstreamFigures
	Leases    func() LeaseFigures
	DenyCache func() DenyFigures
	Overload  func() OverloadFigures
	Policy    func() PolicyFigures
	Limits    func() []LimitFigures
}

// GatewayFigures is what a gateway does at the moment.
type GatewayFigures struct{ InFlight, Tunnels, Held int }

// UpstreamFigures is what is known of one upstream. Limit is how many requests may be there at a time, 0 if nothing bounds them.
type UpstreamFigures struct {
	Upstream           string
	Ejected            bool
	InFlight, Limit    int
	Requests, Failures uint64
}

// LeaseFigures is what a store of leases has: keys with a lease, and units in hand.
type LeaseFigures struct {
	Keys int
	Held int64
}

// DenyFigures is what a deny cache does.
type DenyFigures struct {
	Keys                    int
	Hits, Misses, Evictions uint64
}

// OverloadFigures is how loaded the process is. Shedding is by priority: critical, normal, sheddable.
type OverloadFigures struct {
	Active                        bool
	CPU, Memory                   float64
	CPUThreshold, MemoryThreshold float64
	Shedding                      [3]float64
}

// PolicyFigures is which policy is in force. Current tells whether it is the one that its source has.
type PolicyFigures struct {
	Version string
	Since   time.Time
	Rules   int
	Current bool
}

// LimitFigures is one limit of a rule as it is in force now, schedules, ramps and warm-ups applied. Index is its place in the
// list of the rule.
type LimitFigures struct {
	Rule  string
	Index int
	Limit headgate.Limit
}

const (
	defaultMaxRules = 2000
	defaultMaxSKUs  = 500
)

func (c Config) withDefaults() Config {
	if c.MaxRules <= 0 {
		c.MaxRules = defaultMaxRules
	}
	if c.MaxSKUs <= 0 {
		c.MaxSKUs = defaultMaxSKUs
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
