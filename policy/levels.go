package policy

import (
	"hash/maphash"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Levels tells which degradation is in force. Its methods are called for every request, from many goroutines at a time; they
// must be quick.
type Levels interface {
	// DeviceLifted tells that the rules of the device layer ask for nothing (L2). A key that is shut by a lockout stays shut.
	DeviceLifted() bool
	// Restricted tells that only requests on the lists of degradation.l3.allow pass (L3).
	Restricted() bool
	// Device is told of each request that rules of the device layer apply to while they are in force: a hash of the device, and
	// whether nothing but their limits has denied it. Lists, lockouts and the limits of other layers do not count.
	Device(device uint64, deniedAlone bool)
}

// Overloads tells whether the process is in danger. Its methods are called as those of [Levels].
type Overloads interface {
	// Danger tells that the process is beyond the thresholds of the policy's overload. It is asked where the policy passes then.
	Danger() bool
	// Shed tells whether to turn away a request of a priority: 0 critical, 1 normal, 2 sheddable. It is asked once for each
	// request where the policy sheds, in danger or not.
	Shed(priority uint8) bool
}

// When a client may come again that is turned away for no limit of its own.
const (
	restrictedRetry = time.Minute
	shedRetry       = 5 * time.Second
)

// rank is the priority of a request: what is lower is shed later.
type rank uint8

const (
	rankCritical  = rank(httpverdict.PriorityCritical)
	rankNormal    = rank(httpverdict.PriorityNormal)
	rankSheddable = rank(httpverdict.PrioritySheddable)
)

func (r rank) String() string {
	return string([...]Priority{Critical, Normal, Sheddable}[r])
}

func rankOf(p Priority) rank {
	switch p {
	case Critical:
		return rankCritical
	case Sheddable:
		return rankSheddable
	}
	return rankNormal
}

// restricts answers a request that is on none of the lists that pass at L3.
func (e *Engine) restricts(s *scratch, v *httpverdict.Verdict) bool {
	if e.cfg.Levels == nil || !e.cfg.Levels.Restricted() || s.anyPassing(e.policy.l3Allow) >= 0 {
		return false
	}
	v.Kind, v.Code, v.RetryAfter = httpverdict.Unavailable, "restricted", headgate.Retry{After: restrictedRetry}
	return true
}

// shed turns a request away, or lets it pass without asking for anything, when the process is in danger. It comes before all
// that costs much: expressions, bodies, look-ups, the stores.
func (e *Engine) shed(s *scratch, v *httpverdict.Verdict) bool {
	of := e.rankOf(s)
	v.Priority = uint8(of)
	switch {
	case e.cfg.Overload == nil:
		return false
	case e.policy.overload.Pass && e.cfg.Overload.Danger():
		v.Code = "overload_passed"
		return true
	case e.policy.overload.Pass || !e.cfg.Overload.Shed(uint8(of)):
		return false
	}
	v.Kind, v.Code, v.RetryAfter = httpverdict.Overloaded, "shed", headgate.Retry{After: shedRetry}
	if e.cfg.Observer != nil {
		e.cfg.Observer.Shed(of.String())
	}
	return true
}

// rankOf is the priority of a request: of the rules that match and state one, the most critical; else normal.
func (e *Engine) rankOf(s *scratch) rank {
	if !e.policy.ranked {
		return rankNormal
	}
	best, stated := rankSheddable, false
	bit := methodBit(methodOf(s.req.Method))
	for _, c := range s.found {
		rule := &e.policy.rules[c.rule]
		if rule.ranked && !rule.shadow && rule.match.admits(bit, s.req) {
			best, stated = min(best, rule.rank), true
		}
	}
	if !stated {
		return rankNormal
	}
	return best
}

// lifts reports that a rule does not apply since its layer is lifted. One with a lockout still asks whether the key is shut.
func (e *Engine) lifts(rule *rule, a *applied) bool {
	if rule.layer != LayerDevice || e.cfg.Levels == nil || !e.cfg.Levels.DeviceLifted() {
		return false
	}
	if rule.lockout == nil || rule.shadow {
		return true
	}
	a.lifted = true
	return false
}

// tellDevice tells the levels of the device that a request came from, if the device layer judged it.
func (e *Engine) tellDevice(s *scratch) {
	if e.cfg.Levels == nil || e.still {
		return
	}
	for i := range s.applied {
		a := &s.applied[i]
		if rule := &s.p.rules[a.rule]; rule.layer == LayerDevice && rule.spec >= 0 && !rule.shadow && !a.lifted && !a.key.lacking && !a.dropped {
			e.cfg.Levels.Device(s.deviceHash(e, rule, a), s.deniedByDevicesAlone())
			return
		}
	}
}

// deviceHash tells devices apart: by the dimension device if the key has it, else by the whole key.
func (s *scratch) deviceHash(e *Engine, rule *rule, a *applied) uint64 {
	for _, part := range s.p.specs[rule.spec].parts {
		for _, dim := range part {
			if s.p.dims[dim].name != deviceDimension {
				continue
			}
			if value, ok := s.value(dim); ok {
				return maphash.String(e.seed, value)
			}
		}
	}
	return maphash.Bytes(e.seed, s.buf[a.key.from:a.key.to])
}

// deniedByDevicesAlone tells that limits of the device layer have denied the request, and no other one.
func (s *scratch) deniedByDevicesAlone() bool {
	if s.decision.Allowed {
		return false
	}
	found := false
	for i := range s.charges[:s.asked] {
		if !s.denies(i) {
			continue
		}
		if s.ruleAt(i).layer != LayerDevice || s.decision.Outcomes[i].Reason == headgate.ReasonLockedOut {
			return false
		}
		found = true
	}
	return found
}

// fallbackOfRules is what a rule says to answer in place of the service, should that fail; nil if none does.
func (s *scratch) fallbackOfRules() *httpverdict.Fallback {
	if !s.p.fallbacks {
		return nil
	}
	i := slices.IndexFunc(s.applied, func(a applied) bool {
		r := &s.p.rules[a.rule]
		return !r.shadow && r.action.kind == Fallback
	})
	if i < 0 {
		return nil
	}
	return s.p.rules[s.applied[i].rule].action.fallback
}
