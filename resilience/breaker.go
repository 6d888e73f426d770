package resilience

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Breakers keeps a breaker for each node of a store: it counts calls, shuts a node off when they fail, asks the node by itself
// whether it is well again, and lets calls through again when it is. All methods are safe for concurrent use.
//
// A node is opened when a call fails and
//   - of at least MinCalls calls in the last Window at least FailedShare have failed; or
//   - two or more have failed since the last success, and the first of them began Silence ago.
//
// Calls without an answer count for the first of these only once they tell of a longer time than one Stall, so that a node that
// stands still for as long as a fork of it takes is not shut off, whatever the load, also by the first calls ever made. What a node
// refuses counts at once.
//
// It does not use failsafe-go's circuitbreaker, for its counting rounds the rate of failures to whole percents, judges at successes
// too, and cannot leave the calls of one stall aside; and it lets live requests find out whether a node is back, where here a
// probe does, so that none waits for it.
type Breakers struct {
	cfg  BreakersConfig
	open atomic.Int64                     // how many nodes are open
	all  atomic.Pointer[map[string]*node] // replaced as a whole under mu, never written to
	only atomic.Pointer[node]             // the node of all if there is but one, as there mostly is: found without hashing its name

	mu      sync.Mutex
	closed  bool // guarded by mu
	base    context.Context
	stop    context.CancelFunc
	probers sync.WaitGroup
}

// BreakersConfig says when a node is shut off and when it is let back. Every zero field means its default.
type BreakersConfig struct {
	// Probe finds out whether a node can do its work; nil means that it can. It should end when its context does; one that
	// does not is not joined by another on the same node. An error with a method Gone() bool that answers true, anywhere in its
	// chain, says that the node serves nothing any more: it is forgotten. Default: no probe, so that a node is let back, to be tried
	// by live calls, after Probes×ProbeEvery.
	Probe func(ctx context.Context, node string) error
	// Observer, if set, is told when a node is opened and closed.
	Observer BreakerObserver
	// Logger gets a line for each of these. Default: nothing is logged.
	Logger *slog.Logger

	// Window is the time in which calls are counted, in steps of a twentieth. Default 1 s.
	Window time.Duration
	// MinCalls is how many calls in Window it takes to judge. Default 10.
	MinCalls int
	// FailedShare is the share of them whose failure opens, above 0 to 1. Default 0.5.
	FailedShare float64
	// Silence is the time without a success, though calls were made, that opens. Default 2 s.
	Silence time.Duration
	// Stall is the longest time without answers that is nothing to worry about. Default 350 ms: 250 ms of a fork, and what a
	// loaded machine is late by.
	Stall time.Duration

	// ProbeEvery is the time between probes of a node that is open, at first; it grows to a tenth of the time that it has been
	// open. Default 200 ms.
	ProbeEvery time.Duration
	// ProbeMost is what it grows to. Default 1 s.
	ProbeMost time.Duration
	// ProbeTimeout bounds a probe. Default 500 ms.
	ProbeTimeout time.Duration
	// Probes is how many must succeed in a row for the node to be closed. Default 2.
	Probes int
	// Flap is the time after closing in which to be opened again is flapping: the node then needs twice as many probes as the last
	// time, up to MaxProbes. Default 10 s.
	Flap time.Duration
	// MaxProbes is the most probes that flapping leads to. Default 10.
	MaxProbes int
	// MaxNodes bounds the nodes that are kept. Above, the one that has been closed and unused the longest is forgotten; if all
	// are open a new node is not counted. Default 1024.
	MaxNodes int
}

// BreakerObserver is told what Breakers does. Of one node it is told in order.
type BreakerObserver interface {
	// BreakerChanged tells that a node was opened, or closed, and why, in a few English words. It must not block.
	BreakerChanged(node string, open bool, why string)
}

// NodeState is what is known of one node, for people to look at.
type NodeState struct {
	Node string
	Open bool
	// Since is when it was opened or closed; of a node that was never opened, when it was first heard of.
	Since time.Time
	// Why says why it was opened or closed, "" if it never was.
	Why string
	// Opened is how often it was opened.
	Opened int
	// Probes is how many probes it was given since it was last opened.
	Probes int
	// LastError is that of the last probe that failed, "" if none has since it was opened.
	LastError string
}

func (c BreakersConfig) withDefaults() BreakersConfig {
	if c.Probe == nil {
		c.Probe = func(context.Context, string) error { return nil }
	}
	if c.Observer == nil {
		c.Observer = unwatched{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Window, c.MinCalls = max(positive(c.Window, time.Second), steps), positive(c.MinCalls, 10)
	c.FailedShare = min(positive(c.FailedShare, 0.5), 1)
	c.Silence, c.Stall = positive(c.Silence, 2*time.Second), positive(c.Stall, 350*time.Millisecond)
	c.ProbeEvery = positive(c.ProbeEvery, 200*time.Millisecond)
	c.ProbeMost = max(positive(c.ProbeMost, time.Second), c.ProbeEvery)
	c.ProbeTimeout, c.Probes = positive(c.ProbeTimeout, 500*time.Millisecond), positive(c.Probes, 2)
	c.Flap, c.MaxProbes = positive(c.Flap, 10*time.Second), max(positive(c.MaxProbes, 10), c.Probes)
	c.MaxNodes = positive(c.MaxNodes, 1024)
	return c
}

// positive returns v, or its default if it is not above 0.
func positive[T cmp.Ordered](v, absent T) T {
	var zero T
	if v > zero {
		return v
	}
	return absent
}

// unwatched is told and does nothing.
type unwatched struct{}

func (unwatched) BreakerChanged(string, bool, string) {}

// NewBreakers returns breakers that are all closed. They start a goroutine for each node that is opened; Close ends them.
func NewBreakers(cfg BreakersConfig) *Breakers {
	b := &Breakers{cfg: cfg.withDefaults()}
	b.all.Store(&map[string]*node{})
	b.base, b.stop = context.WithCancel(context.Background())
	return b
}

// Open tells whether calls to a node should not be made. It takes no lock and no time to speak of; while nothing is open it does
// not look at the node.
func (b *Breakers) Open(node string) bool {
	if b.open.Load() == 0 {
		return false
	}
	if n := b.only.Load(); n != nil && n.name == node {
		return n.open.Load()
	}
	n := (*b.all.Load())[node]
	return n != nil && n.open.Load()
}

// Lost tells whether any node is open.
func (b *Breakers) Lost() bool { return b.open.Load() > 0 }

// Called counts a call that took a time and ended with a code: "" for an answer, and that of the failure. "indeterminate" and
// "timeout" are calls without an answer, "unavailable" and "internal" failures of the node; other codes are the caller's own
// fault and do not count. While the node is open nothing counts, nor does the failure of a call that began before it was closed.
func (b *Breakers) Called(node string, took time.Duration, code string) {
	kind, counts := kindOf(code)
	if !counts {
		return
	}
	n := (*b.all.Load())[node]
	if n == nil {
		if n = b.add(node); n == nil {
			return
		}
	}
	if n.open.Load() {
		return
	}
	if why := n.count(kind, time.Now(), took); why != "" {
		b.opened(n, why)
	}
}

// States returns what is known of the nodes, in the order of their names.
func (b *Breakers) States() []NodeState {
	all := *b.all.Load()
	states := make([]NodeState, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		states = append(states, all[name].state())
	}
	return states
}

// Close ends the probes, without waiting for one that does not end with its context. Nodes stay as they are. A second Close does nothing.
func (b *Breakers) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.probers.Wait()
	return nil
}

// add returns the breaker of a node that was not heard of before, nil if there is no room for it.
func (b *Breakers) add(name string) *node {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := *b.all.Load()
	if n := all[name]; n != nil {
		return n
	}
	next := maps.Clone(all)
	if len(next) >= b.cfg.MaxNodes && !forgetOldest(next) {
		return nil
	}
	n := newNode(name, &b.cfg)
	next[name] = n
	b.replace(next)
	return n
}

// replace puts other nodes in the place of those there are. The caller holds the lock.
func (b *Breakers) replace(next map[string]*node) {
	b.only.Store(nil)
	b.all.Store(&next)
	if len(next) == 1 {
		for _, n := range next {
			b.only.Store(n)
		}
	}
}

// forgetOldest drops the closed node that has been unused the longest, and reports whether there was one.
func forgetOldest(all map[string]*node) bool {
	var oldest *node
	for _, n := range all {
		if !n.open.Load() && (oldest == nil || n.used.Load() < oldest.used.Load()) {
			oldest = n
		}
	}
	if oldest == nil {
		return false
	}
	delete(all, oldest.name)
	return true
}

// forget drops a node.
func (b *Breakers) forget(n *node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if all := *b.all.Load(); all[n.name] == n {
		next := maps.Clone(all)
		delete(next, n.name)
		b.replace(next)
	}
}
