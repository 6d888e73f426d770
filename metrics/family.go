package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// family is what a metric is called. The names, units and labels follow Prometheus's conventions.
type family string

// about is what a metric means; a test holds docs/metrics.md to it.
type about struct {
	family
	kind   prometheus.ValueType
	unit   string
	labels []string
	help   string
}

const (
	counter   = prometheus.CounterValue
	gauge     = prometheus.GaugeValue
	histogram = prometheus.ValueType(0)
)

// Labels of several families.
const (
	labelRule   = "rule"
	labelCode   = "code"
	labelNode   = "node"
	labelScript = "script"
	labelTo     = "to"
	labelStore  = "store"
)

// none and other stand for what has no name, and for all that have no series of their own. No rule, node or code is called so.
const (
	none  = "(none)"
	other = "(other)"
)

const (
	// Decisions and the policy in force.
	famDecisions     family = "headgate_decisions_total"
	famDecisionTime  family = "headgate_decision_duration_seconds"
	famShadow        family = "headgate_shadow_denials_total"
	famStoreErrors   family = "headgate_store_errors_total"
	famShed          family = "headgate_shed_requests_total"
	famLimit         family = "headgate_limit_units"
	famLimitPeriod   family = "headgate_limit_period_seconds"
	famLimitBurst    family = "headgate_limit_burst_units"
	famPolicyInfo    family = "headgate_policy_info"
	famPolicySince   family = "headgate_policy_in_force_timestamp_seconds"
	famPolicyRules   family = "headgate_policy_rules"
	famPolicyCurrent family = "headgate_policy_current"

	// The store.
	famCalls           family = "headgate_store_calls_total"
	famCallTime        family = "headgate_store_call_duration_seconds"
	famCallTakes       family = "headgate_store_call_takes"
	famCallers         family = "headgate_store_caller_errors_total"
	famUnknown         family = "headgate_store_unknown_states_total"
	famNewKeys         family = "headgate_store_new_keys_total"
	famMemoryKeys      family = "headgate_memory_keys"
	famMemorySlots     family = "headgate_memory_slots"
	famMemoryOverflows family = "headgate_memory_overflows_total"
	famMemoryForgotten family = "headgate_memory_forgotten_keys_total"

	// Leases and the deny cache.
	famLeaseCalls    family = "headgate_lease_calls_total"
	famLeaseTime     family = "headgate_lease_call_duration_seconds"
	famLeaseAsked    family = "headgate_lease_asked_units_total"
	famLeaseGranted  family = "headgate_lease_granted_units_total"
	famLeaseRefunded family = "headgate_lease_refunded_units_total"
	famLeaseLost     family = "headgate_lease_lost_units_total"
	famLeaseKeys     family = "headgate_lease_keys"
	famLeaseHeld     family = "headgate_lease_held_units"
	famDenyKeys      family = "headgate_deny_cache_keys"
	famDenyHits      family = "headgate_deny_cache_hits_total"
	famDenyMisses    family = "headgate_deny_cache_misses_total"
	famDenyEvicted   family = "headgate_deny_cache_evictions_total"

	// Breakers, levels, instances, overload.
	famBreakerOpen     family = "headgate_breaker_open"
	famBreakerChanges  family = "headgate_breaker_changes_total"
	famLevel           family = "headgate_level"
	famSwitch          family = "headgate_level_switch"
	famLevelChanges    family = "headgate_level_changes_total"
	famLevelAlerts     family = "headgate_level_alerts_total"
	famInstances       family = "headgate_instances"
	famFleetAge        family = "headgate_fleet_age_seconds"
	famOverloaded      family = "headgate_overload_active"
	famOverloadChanges family = "headgate_overload_changes_total"
	famLoad            family = "headgate_overload_load_ratio"
	famThreshold       family = "headgate_overload_threshold_ratio"
	famShedding        family = "headgate_overload_shedding_ratio"

	// The gateway.
	famRequests         family = "headgate_requests_total"
	famRequestTime      family = "headgate_request_duration_seconds"
	famUpstreamTime     family = "headgate_upstream_duration_seconds"
	famInFlight         family = "headgate_requests_in_flight"
	famTunnels          family = "headgate_tunnels"
	famHeld             family = "headgate_requests_held"
	famWaiting          family = "headgate_requests_waiting"
	famUpstreamEjected  family = "headgate_upstream_ejected"
	famUpstreamInFlight family = "headgate_upstream_requests_in_flight"
	famUpstreamLimit    family = "headgate_upstream_requests_limit"
	famUpstreamRequests family = "headgate_upstream_requests_total"
	famUpstreamFailures family = "headgate_upstream_failures_total"

	// The program.
	famBuild        family = "headgate_build_info"
	famRulesBundled family = "headgate_metrics_bundled_rules"
)

// families are all of them, in the order of the documentation.
func families() []about {
	return slices.Concat(decisionFamilies(), storeFamilies(), leaseFamilies(), resilienceFamilies(), gatewayFamilies(), saleFamilies(), programFamilies())
}

func decisionFamilies() []about {
	return []about{
		{famDecisions, counter, "requests", []string{labelRule, "verdict"},
			"Requests decided, by the rule that decided and the kind of the verdict."},
		{famDecisionTime, histogram, "seconds", nil,
			"Time that a decision added to a request, without the time that a rule had it wait."},
		{famShadow, counter, "requests", []string{labelRule},
			"Requests that a rule in shadow mode would have denied."},
		{famStoreErrors, counter, "calls", []string{labelCode, "fallback"},
			"Calls of the store by the policy that failed, and whether the request was decided all the same; false also for calls that decide nothing, such as giving back, settling, releasing."},
		{famShed, counter, "requests", []string{"priority"},
			"Requests turned away because the process was in danger."},
		{famLimit, gauge, "units", []string{labelRule, "limit", "algorithm"},
			"The count of a limit in force now: units per period; of a concurrency limit, holders at a time."},
		{famLimitPeriod, gauge, "seconds", []string{labelRule, "limit", "algorithm"},
			"The period of a limit in force now; of a calendar window, its length without changes of clocks, of a month 31 days."},
		{famLimitBurst, gauge, "units", []string{labelRule, "limit", "algorithm"},
			"The burst of a token bucket, or the capacity of a leaky bucket, in force now."},
		{famPolicyInfo, gauge, "1", []string{"version"},
			"The version of the policy in force."},
		{famPolicySince, gauge, "seconds", nil,
			"When the policy came into force, since the Unix epoch."},
		{famPolicyRules, gauge, "rules", nil,
			"Rules of the policy in force."},
		{famPolicyCurrent, gauge, "0 or 1", nil,
			"Whether the policy in force is the one that its source has: 0 after one was refused."},
	}
}

func storeFamilies() []about {
	return []about{
		{famCalls, counter, "calls", []string{labelNode, labelScript, labelCode},
			"Script calls on the wire, by the code of their failure (ok: none)."},
		{famCallTime, histogram, "seconds", []string{labelScript},
			"Duration of script calls on the wire."},
		{famCallTakes, histogram, "takes", nil,
			"Takes that went together in one call of the take script: the size of a batch."},
		{famCallers, counter, "takes", []string{labelCode, "cause"},
			"Callers that got an error from the store; cause is caller where their own deadline ended first."},
		{famUnknown, counter, "states", nil,
			"States in a format that this version does not know, which started fresh."},
		{famNewKeys, counter, "keys", []string{labelRule},
			"Keys charged for the first time, or the first time since they expired."},
		{famMemoryKeys, gauge, "keys", []string{labelStore},
			"Keys that a store in this process holds."},
		{famMemorySlots, gauge, "slots", []string{labelStore},
			"Limits that have state in a store in this process."},
		{famMemoryOverflows, counter, "takes", []string{labelStore},
			"Takes of new keys that had to share a state because their limit's keys were at the bound."},
		{famMemoryForgotten, counter, "keys", []string{labelStore},
			"Idle keys that a store in this process has forgotten."},
	}
}

func leaseFamilies() []about {
	return []about{
		{famLeaseCalls, counter, "calls", []string{labelRule, labelCode},
			"Calls of the store for leases, by the code of their failure (ok: none)."},
		{famLeaseTime, histogram, "seconds", nil,
			"Duration of calls for leases."},
		{famLeaseAsked, counter, "units", []string{labelRule},
			"Units that leases asked for."},
		{famLeaseGranted, counter, "units", []string{labelRule},
			"Units that were charged in the store ahead of their use."},
		{famLeaseRefunded, counter, "units", []string{labelRule},
			"Units that were given back unspent."},
		{famLeaseLost, counter, "units", []string{labelRule},
			"Units that were neither spent nor given back."},
		{famLeaseKeys, gauge, "keys", nil,
			"Keys that have a lease."},
		{famLeaseHeld, gauge, "units", nil,
			"Units in hand: charged in the store and not spent yet."},
		{famDenyKeys, gauge, "keys", nil,
			"Denials that the deny cache keeps."},
		{famDenyHits, counter, "takes", nil,
			"Takes denied by the deny cache, without a call."},
		{famDenyMisses, counter, "takes", nil,
			"Takes that the deny cache passed on."},
		{famDenyEvicted, counter, "denials", nil,
			"Denials that had to go from the deny cache before their time was over."},
	}
}

func resilienceFamilies() []about {
	return []about{
		{famBreakerOpen, gauge, "0 or 1", []string{labelNode},
			"Whether the breaker of a node of the store is open: it is not asked."},
		{famBreakerChanges, counter, "changes", []string{labelNode, labelTo},
			"Times that a breaker opened or closed."},
		{famLevel, gauge, "0 to 3", nil,
			"The level of degradation: the highest switch that is on."},
		{famSwitch, gauge, "0 or 1", []string{"level"},
			"Whether the switch of a level is on: 1 store lost, 2 device layer lifted, 3 listed users only."},
		{famLevelChanges, counter, "changes", []string{"level", labelTo, "by"},
			"Times that the switch of a level was turned, and by what."},
		{famLevelAlerts, counter, "alerts", []string{"level"},
			"Times that a level would have been worth turning on."},
		{famInstances, gauge, "instances", nil,
			"Instances of the fleet that live, as last known."},
		{famFleetAge, gauge, "seconds", nil,
			"Time since the number of instances was last known."},
		{famOverloaded, gauge, "0 or 1", nil,
			"Whether the process counts as overloaded."},
		{famOverloadChanges, counter, "changes", []string{labelTo},
			"Times that the process became overloaded, or ceased to be."},
		{famLoad, gauge, "ratio", []string{"resource"},
			"Share that the process uses of the processor time and the memory that it may use."},
		{famThreshold, gauge, "ratio", []string{"resource"},
			"Share from which requests are shed."},
		{famShedding, gauge, "ratio", []string{"priority"},
			"Part of the requests of a priority that is being shed."},
	}
}

func gatewayFamilies() []about {
	return []about{
		{famRequests, counter, "requests", []string{"status", "verdict"},
			"Requests answered by the gateway, by the status of the answer."},
		{famRequestTime, histogram, "seconds", nil,
			"Whole time of a request in the gateway, the service's included."},
		{famUpstreamTime, histogram, "seconds", nil,
			"Time from handing a request on to the header of the service's answer."},
		{famInFlight, gauge, "requests", nil,
			"Requests at the service."},
		{famTunnels, gauge, "connections", nil,
			"Requests at the service that are open websockets."},
		{famHeld, gauge, "requests", nil,
			"Requests that the gateway holds for their turn in a queue."},
		{famWaiting, gauge, "requests", nil,
			"Requests that wait because of on_deny: wait."},
		{famUpstreamEjected, gauge, "0 or 1", []string{"upstream"},
			"Whether an upstream gets no requests because it fails."},
		{famUpstreamInFlight, gauge, "requests", []string{"upstream"},
			"Requests at an upstream."},
		{famUpstreamLimit, gauge, "requests", []string{"upstream"},
			"Requests that may be at an upstream at a time, as adaptive concurrency has it."},
		{famUpstreamRequests, counter, "requests", []string{"upstream"},
			"Requests that an upstream was sent."},
		{famUpstreamFailures, counter, "requests", []string{"upstream"},
			"Requests to an upstream whose outcome says that it is in trouble."},
	}
}

func programFamilies() []about {
	return []about{
		{famBuild, gauge, "1", []string{"version", "go_version", "revision"},
			"The version of the program."},
		{famRulesBundled, gauge, "rules", nil,
			"Rules of the policy that have no series of their own and are counted together as (other)."},
	}
}

// shown is a family as it is given to Prometheus.
type shown struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func descriptions() map[family]shown {
	out := make(map[family]shown)
	for _, f := range families() {
		out[f.family] = shown{prometheus.NewDesc(string(f.family), f.help, f.labels, nil), f.kind}
	}
	return out
}
