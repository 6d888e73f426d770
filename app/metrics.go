package app

import (
	"time"

	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/metrics"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/resilience"
)

// serviceMetrics are the metrics of everything that serve runs.
type serviceMetrics struct{ *metrics.Metrics }

// newServiceMetrics makes metrics that read the parts of a service when they are asked: the parts are there by then.
func newServiceMetrics(s *service) (*serviceMetrics, error) {
	guard := func() *Guard { return s.reloader.guard }
	cfg := metrics.Config{
		Version: s.cfg.Version, Logger: s.cfg.Log,
		Switches: func() [3]bool { return switchesOn(guard().Levels()) },
		Waiting:  func() int { return guard().Waiting() },
		Gateway: func() metrics.GatewayFigures {
			now := s.gateway.Stats()
			return metrics.GatewayFigures{InFlight: now.InFlight, Tunnels: now.Tunnels, Held: now.Held}
		},
		Upstreams: func() []metrics.UpstreamFigures { return upstreamFigures(s.gateway.Stats().Upstreams) },
		Overload:  func() metrics.OverloadFigures { return overloadFigures(s.overload) },
		Policy:    func() metrics.PolicyFigures { return policyFigures(s.reloader.Status()) },
		Limits:    func() []metrics.LimitFigures { return limitFigures(guard().LimitsInForce()) },
	}
	if s.cfg.Store.URL.redis != nil {
		cfg.Instances = func() int { live, _ := guard().Instances(); return live }
		cfg.FleetAge = func() time.Duration { _, age := guard().Instances(); return age }
		cfg.Breakers = func() map[string]bool { return guard().cfg.Store.openNodes() }
		cfg.Leases = func() metrics.LeaseFigures { return guard().limiters.leaseFigures() }
		cfg.DenyCache = func() metrics.DenyFigures { return guard().limiters.denyFigures() }
	}
	m, err := metrics.New(cfg)
	return &serviceMetrics{m}, err
}

func switchesOn(l *resilience.Levels) [3]bool {
	return [3]bool{l.StoreLost(), l.DeviceLifted(), l.Restricted()}
}

func upstreamFigures(all []gateway.UpstreamStats) []metrics.UpstreamFigures {
	out := make([]metrics.UpstreamFigures, len(all))
	for i, u := range all {
		out[i] = metrics.UpstreamFigures{Upstream: u.Upstream, Ejected: u.Ejected, InFlight: u.InFlight, Requests: u.Requests, Failures: u.Failures, Limit: u.Limit}
	}
	return out
}

func overloadFigures(o *resilience.Overload) metrics.OverloadFigures {
	s := o.Stats()
	return metrics.OverloadFigures{
		Active: s.Active, CPU: s.CPU, Memory: s.Memory, CPUThreshold: s.CPUThreshold, MemoryThreshold: s.MemoryThreshold, Shedding: s.Shedding,
	}
}

func policyFigures(s PolicyStatus) metrics.PolicyFigures {
	return metrics.PolicyFigures{Version: s.Version, Since: s.InForceSince, Rules: s.Rules, Current: s.Current}
}

func limitFigures(rules []policy.RuleLimits) []metrics.LimitFigures {
	var out []metrics.LimitFigures
	for _, r := range rules {
		for i, l := range r.Limits {
			out = append(out, metrics.LimitFigures{Rule: r.Rule, Index: i, Limit: l})
		}
	}
	return out
}

// openNodes and the figures below are of a remote store.
func (s *Store) openNodes() map[string]bool {
	open := make(map[string]bool)
	for _, n := range s.breakers.States() {
		open[n.Node] = n.Open
	}
	return open
}

func (l *limiters) leaseFigures() metrics.LeaseFigures {
	s := l.leases.Stats()
	return metrics.LeaseFigures{Keys: s.Keys, Held: s.Held}
}

func (l *limiters) denyFigures() metrics.DenyFigures {
	s := l.denials.Stats()
	return metrics.DenyFigures{Keys: s.Keys, Hits: s.Hits, Misses: s.Misses, Evictions: s.Evictions}
}

// storeWatch is what a store is to be watched by.
func (m *serviceMetrics) storeWatch(remote bool) StoreWatch {
	if remote {
		return StoreWatch{Calls: m.Store(), Breakers: m.Resilience()}
	}
	return StoreWatch{Keys: m.Memory("store")}
}

// guardWatch is what a guard is to be watched by.
func (m *serviceMetrics) guardWatch(remote bool) GuardWatch {
	w := GuardWatch{Decisions: m.Policy(), Leases: m.Leases(), Levels: m.Resilience(), Rules: m.SetRules}
	if remote {
		w.Keys = m.Memory("local")
	}
	return w
}

// request counts a request that is over.
func (m *serviceMetrics) request(e *gateway.Event) {
	verdict := ""
	if e.Verdict != nil {
		verdict = e.Verdict.Kind.String()
	}
	m.Gateway().Request(e.Status, verdict, e.Duration, e.Upstream)
}
