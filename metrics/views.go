package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// PolicyView counts decisions.
type PolicyView struct {
	rules  *rules
	took   *histo
	shed   [4]count // critical, normal, sheddable, other
	errors *table[storeError, count]
}

type storeError struct {
	code     string
	fallback bool
}

// Bounds of label sets other than rules'.
const (
	maxCodes    = 64
	maxCalls    = 4096
	maxNodes    = 1024
	maxStatuses = 1024
)

func newPolicyView(r *rules) PolicyView {
	return PolicyView{rules: r, took: newHisto(decisionBounds), errors: newCounts[storeError](maxCodes)}
}

// Decided counts a request by the rule that decided, "" for none, and the kind of the verdict.
func (v *PolicyView) Decided(rule, verdict string, took time.Duration) {
	c := chance(took)
	cell(v.rules.of(rule).decisions, c).n[verdictOf(verdict)].Add(1)
	v.took.observe(positive(took), c)
}

// ShadowDenied counts a request that a shadow rule would have denied.
func (v *PolicyView) ShadowDenied(rule string) { v.rules.of(rule).shadow.add(1) }

// StoreFailed counts a call of the store that failed, and whether the request was decided all the same.
func (v *PolicyView) StoreFailed(code string, fallback bool) {
	v.errors.of(storeError{code, fallback}).add(1)
}

var priorityNames = [...]string{"critical", "normal", "sheddable", other}

// Shed counts a request that was turned away because the process was in danger.
func (v *PolicyView) Shed(priority string) {
	for i, name := range priorityNames[:len(priorityNames)-1] {
		if name == priority {
			v.shed[i].add(1)
			return
		}
	}
	v.shed[len(v.shed)-1].add(1)
}

// StoreView counts what a store on Redis does.
type StoreView struct {
	rules   *rules
	calls   *table[storeCall, count]
	took    *table[string, histo]
	takes   *histo
	failed  *table[callerError, count]
	unknown count
}

type storeCall struct{ node, script, code string }

type callerError struct {
	code string
	own  bool
}

const takeScript = "take"

func newStoreView(r *rules) StoreView {
	return StoreView{
		rules: r, calls: newCounts[storeCall](maxCalls), takes: newHisto(takeBounds), failed: newCounts[callerError](maxCodes),
		took: newTable[string](maxCodes, func() *histo { return newHisto(callBounds) }),
	}
}

// Call counts a script call on the wire: "" is no node, or no failure.
func (v *StoreView) Call(node, script string, takes int, took time.Duration, code headgate.Code) {
	c := chance(took)
	v.calls.of(storeCall{node, script, string(code)}).add(1)
	v.took.of(script).observe(positive(took), c)
	if script == takeScript {
		v.takes.observe(int64(max(0, takes)), c)
	}
}

// Failed counts a caller that got an error; own tells that its own deadline came first.
func (v *StoreView) Failed(code headgate.Code, own bool) {
	v.failed.of(callerError{string(code), own}).add(1)
}

// UnknownStates counts states in an unknown format.
func (v *StoreView) UnknownStates(n int) { v.unknown.add(uint64(max(0, n))) }

// NewKey counts a key of a slot that was new.
func (v *StoreView) NewKey(slot string) { v.rules.of(ruleOfSlot(slot)).newKeys.add(1) }

// MemoryView keeps the figures of a store in memory.
type MemoryView struct {
	keys, slots           atomic.Int64
	overflowed, forgotten atomic.Uint64
}

// ObserveKeys takes the figures of a store: what it holds, and what has happened since it was made.
func (v *MemoryView) ObserveKeys(keys, slots int, overflowed, forgotten uint64) {
	v.keys.Store(int64(keys))
	v.slots.Store(int64(slots))
	v.overflowed.Store(overflowed)
	v.forgotten.Store(forgotten)
}

// LeaseView counts leases.
type LeaseView struct {
	rules *rules
	took  *histo
	// called: there has been a call.
	called atomic.Bool
}

// The counts of ruleSeries.leases.
const (
	leaseAsked = iota
	leaseGranted
	leaseRefunded
	leaseLost
)

func newLeaseView(r *rules) LeaseView {
	return LeaseView{rules: r, took: newHisto(callBounds)}
}

// Leased counts one call for units of a slot; code "" is no failure.
func (v *LeaseView) Leased(slot string, asked, granted int64, took time.Duration, code string) {
	s := v.rules.of(ruleOfSlot(slot))
	if !v.called.Load() { // a line that all read is written once
		v.called.Store(true)
	}
	s.leases[leaseAsked].add(uint64(max(0, asked)))
	s.leases[leaseGranted].add(uint64(max(0, granted)))
	s.leaseCalls.of(code).add(1)
	v.took.observe(positive(took), chance(took))
}

// Returned counts units of a slot that were not spent.
func (v *LeaseView) Returned(slot string, refunded, lost int64) {
	s := v.rules.of(ruleOfSlot(slot))
	s.leases[leaseRefunded].add(uint64(max(0, refunded)))
	s.leases[leaseLost].add(uint64(max(0, lost)))
}

// ResilienceView counts changes.
type ResilienceView struct {
	breakers *table[breakerChange, count]
	levels   *table[levelChange, count]
	alerts   *table[int, count]
	overload [2]count // off, on
}

type breakerChange struct {
	node string
	open bool
}

type levelChange struct {
	level int
	on    bool
	by    string
}

func newResilienceView() ResilienceView {
	return ResilienceView{breakers: newCounts[breakerChange](maxNodes), levels: newCounts[levelChange](maxCodes), alerts: newCounts[int](maxCodes)}
}

// BreakerChanged counts an opening or a closing of the breaker of a node.
func (v *ResilienceView) BreakerChanged(node string, open bool, _ string) {
	v.breakers.of(breakerChange{node, open}).add(1)
}

// LevelChanged counts a turn of the switch of a level, by "automatic" or "hand".
func (v *ResilienceView) LevelChanged(level int, on bool, by, _ string) {
	v.levels.of(levelChange{level, on, by}).add(1)
}

// LevelAlert counts a time that a level would have been worth turning on.
func (v *ResilienceView) LevelAlert(level int, _ string) { v.alerts.of(level).add(1) }

// OverloadChanged counts a beginning or an end of overload.
func (v *ResilienceView) OverloadChanged(active bool, _ string) {
	if active {
		v.overload[1].add(1)
		return
	}
	v.overload[0].add(1)
}

// GatewayView counts requests of a gateway.
type GatewayView struct {
	answers        *table[answer, count]
	took, upstream *histo
}

type answer struct {
	status  uint16
	verdict uint8
}

func newGatewayView() GatewayView {
	return GatewayView{answers: newCounts[answer](maxStatuses), took: newHisto(requestBounds), upstream: newHisto(requestBounds)}
}

// Request counts a request that is over: the status of its answer, 0 for none; the kind of its verdict, "" if the policy was
// not asked; the time that it took, and the part of it from handing it on to the header of the answer, 0 if it was not.
func (v *GatewayView) Request(status int, verdict string, took, upstream time.Duration) {
	if status < 0 || status > 999 {
		status = 0
	}
	v.answers.of(answer{uint16(status), uint8(verdictOf(verdict))}).add(1)
	c := chance(took)
	v.took.observe(positive(took), c)
	if upstream > 0 {
		v.upstream.observe(int64(upstream), c)
	}
}

func statusText(status uint16) string {
	if status == 0 {
		return none
	}
	return strconv.Itoa(int(status))
}
