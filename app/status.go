package app

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/resilience"
)

// Status is what the admin listener's /status says, in the parts that the process is made of.
type Status struct {
	Process ProcessStatus `json:"process"`
	Policy  PolicyStatus  `json:"policy"`
	Store   StoreStatus   `json:"store"`
	// Breaker, Leases and Denials are of a remote store only.
	Breaker   *BreakerStatus  `json:"breaker,omitempty"`
	Instances InstancesStatus `json:"instances"`
	Leases    *LeasesStatus   `json:"leases,omitempty"`
	Denials   *DenialsStatus  `json:"deny_cache,omitempty"`
	Level     LevelStatus     `json:"level"`
	Overload  OverloadStatus  `json:"overload"`
	Gateway   GatewayStatus   `json:"gateway"`
	// Sale is of a process that runs sales only.
	Sale *SaleStatus `json:"sale,omitempty"`
}

// ProcessStatus is of the process.
type ProcessStatus struct {
	// Version is that of the program.
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// UptimeSeconds is how long ago that is.
	UptimeSeconds float64 `json:"uptime_seconds"`
	// Ready tells that new requests are welcome; it is false while the process drains.
	Ready bool            `json:"ready"`
	Admin *ListenerStatus `json:"admin,omitempty"`
}

// PolicyStatus is of the policy.
type PolicyStatus struct {
	Name string `json:"name"`
	// Version begins the SHA-256 of the document and of what was read for it.
	Version      string    `json:"version"`
	InForceSince time.Time `json:"in_force_since"`
	Rules        int       `json:"rules"`
	// Current tells that the source has nothing newer, which would have been refused.
	Current bool `json:"current"`
	// Reloads counts the policies that came in force after the first, Refused those that could not.
	Reloads     int64    `json:"reloads"`
	Refused     int64    `json:"refused"`
	LastRefused *Refusal `json:"last_refused,omitempty"`
	// Warnings are of the policy in force.
	Warnings []string `json:"warnings,omitempty"`
}

// Refusal is a version that was not put in force.
type Refusal struct {
	At time.Time `json:"at"`
	// Version is "" if there was nothing to read.
	Version string `json:"version,omitempty"`
	// Error is what is wrong with it, in at most 11 lines.
	Error []string `json:"error"`
}

// StoreStatus is of the store.
type StoreStatus struct {
	Name string `json:"name"`
	// Remote tells that it can be lost while this process lives.
	Remote bool `json:"remote"`
	// Reached tells that it has been reached at some time since the start, Lost that it, or a node of it, is not asked now.
	Reached bool `json:"reached"`
	Lost    bool `json:"lost"`
}

// BreakerStatus is of the breakers before a remote store.
type BreakerStatus struct {
	// State is "closed", or "open" if that of a node is, and Why is what opened it.
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
	// Nodes are those that have been asked.
	Nodes []NodeStatus `json:"nodes"`
}

// InstancesStatus is of the processes that share the store, this one among them.
type InstancesStatus struct {
	Live int `json:"live"`
	// AgeSeconds is how long ago that was known: with the store gone it is the last that was.
	AgeSeconds float64 `json:"age_seconds"`
}

// NodeStatus is of a node of the store.
type NodeStatus struct {
	Node string `json:"node"`
	// State is "closed" or "open", since when, and why.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
	// Opened counts how often it has opened.
	Opened int `json:"opened"`
	// LastError is what the last probe met.
	LastError string `json:"last_error,omitempty"`
}

// LeasesStatus is of what leased rules have charged ahead.
type LeasesStatus struct {
	// Keys is how many keys have leases, or had a moment ago; Held how many units they have in hand.
	Keys int   `json:"keys"`
	Held int64 `json:"held"`
	// Calls counts the calls for units, Failed those that failed.
	Calls  uint64 `json:"calls"`
	Failed uint64 `json:"failed"`
	// Asked and Granted count the units of these calls, Refunded and Lost those that were not spent.
	Asked    uint64 `json:"asked"`
	Granted  uint64 `json:"granted"`
	Refunded uint64 `json:"refunded"`
	Lost     uint64 `json:"lost"`
}

func leasesStatus(s leasestore.Stats) *LeasesStatus {
	return &LeasesStatus{Keys: s.Keys, Held: s.Held, Calls: s.Calls, Failed: s.Failed, Asked: s.Asked, Granted: s.Granted, Refunded: s.Refunded, Lost: s.Lost}
}

// DenialsStatus is of the keys that are known to be denied.
type DenialsStatus struct {
	Keys int `json:"keys"`
	// Hits counts the takes that were denied without a call, Misses those that were passed on, Evictions the denials that had
	// to go for others.
	Hits      uint64 `json:"hits"`
	Misses    uint64 `json:"misses"`
	Evictions uint64 `json:"evictions"`
}

func denialsStatus(s leasestore.DenyStats) *DenialsStatus {
	return &DenialsStatus{Keys: s.Keys, Hits: s.Hits, Misses: s.Misses, Evictions: s.Evictions}
}

// OverloadStatus is of the load of the process.
type OverloadStatus struct {
	// Active tells that the process is beyond a threshold, or was lately; Why is what it is, or was.
	Active bool   `json:"active"`
	Why    string `json:"why,omitempty"`
	// CPU and Memory are shares of what the process may use.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	// Shedding is the fraction of the requests of each priority that is being turned away, Shed how many have been.
	Shedding ByPriority[float64] `json:"shedding"`
	Shed     ByPriority[uint64]  `json:"shed"`
}

// ByPriority has a figure for each priority.
type ByPriority[T any] struct {
	Critical  T `json:"critical"`
	Normal    T `json:"normal"`
	Sheddable T `json:"sheddable"`
}

// GatewayStatus is of the gateway.
type GatewayStatus struct {
	Listener ListenerStatus `json:"listener"`
	// Upstreams are the servers of the service.
	Upstreams []UpstreamStatus `json:"upstreams"`
	// InFlight is the number of requests at the service, Tunnels that of the websockets among them, Held that of requests
	// that wait in a queue or for their turn.
	InFlight int `json:"in_flight"`
	Tunnels  int `json:"tunnels"`
	Held     int `json:"held"`
}

// UpstreamStatus is of a server of the service.
type UpstreamStatus struct {
	Upstream string `json:"upstream"`
	// State is "healthy", "ejected" or "on trial", since when, and why.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
	// InFlight is the number of requests there; Requests and Failures count since the start.
	InFlight int    `json:"in_flight"`
	Requests uint64 `json:"requests"`
	Failures uint64 `json:"failures"`
	// Limit is how many requests may be there at a time, where that is found out.
	Limit int `json:"limit,omitempty"`
}

// ListenerStatus is of a listener.
type ListenerStatus struct {
	Address       string `json:"address"`
	TLS           bool   `json:"tls"`
	ProxyProtocol bool   `json:"proxy_protocol,omitempty"`
}

// status puts the parts together.
func (s *service) status() Status {
	stats := s.gateway.Stats()
	now := Status{
		Process: ProcessStatus{
			Version: s.cfg.Version, Started: s.started.UTC(), UptimeSeconds: time.Since(s.started).Seconds(), Ready: s.health.Ready(),
		},
		Policy:   s.reloader.Status(),
		Store:    StoreStatus{Name: s.store.Name, Remote: s.store.Remote, Reached: s.store.Reached(), Lost: s.store.Lost()},
		Level:    levelStatus(s.reloader.guard.levels),
		Overload: overloadStatus(s.overload),
		Gateway: GatewayStatus{
			Listener: listenerStatus(s.front, s.tls != nil), Upstreams: upstreamStatus(stats.Upstreams),
			InFlight: stats.InFlight, Tunnels: stats.Tunnels, Held: stats.Held + s.reloader.guard.Waiting(),
		},
	}
	now.Gateway.Listener.ProxyProtocol = s.cfg.ProxyProtocol
	s.reloader.guard.addStatus(&now)
	if s.sale != nil {
		now.Sale = s.sale.status()
	}
	if s.admin != nil {
		of := listenerStatus(s.admin, false)
		now.Process.Admin = &of
	}
	return now
}

// addStatus adds what is known of the store, and of what is decided without it.
func (g *Guard) addStatus(now *Status) {
	live, age := g.Instances()
	now.Instances = InstancesStatus{Live: live, AgeSeconds: age.Seconds()}
	if !g.cfg.Store.Remote {
		return
	}
	now.Breaker = breakerStatus(g.cfg.Store)
	now.Leases, now.Denials = leasesStatus(g.limiters.leases.Stats()), denialsStatus(g.limiters.denials.Stats())
}

func breakerStatus(store *Store) *BreakerStatus {
	out := &BreakerStatus{State: stateOf(store.Lost()), Nodes: []NodeStatus{}}
	if store.Lost() {
		out.Why = store.whyLost()
	}
	for _, n := range store.breakers.States() {
		out.Nodes = append(out.Nodes, NodeStatus{Node: n.Node, State: stateOf(n.Open), Since: n.Since, Why: n.Why, Opened: n.Opened, LastError: n.LastError})
	}
	return out
}

func stateOf(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

func overloadStatus(o *resilience.Overload) OverloadStatus {
	s := o.Stats()
	return OverloadStatus{
		Active: s.Active, Why: s.Why, CPU: s.CPU, Memory: s.Memory,
		Shedding: ByPriority[float64]{s.Shedding[0], s.Shedding[1], s.Shedding[2]},
		Shed:     ByPriority[uint64]{s.Shed[0], s.Shed[1], s.Shed[2]},
	}
}

func upstreamStatus(all []gateway.UpstreamStats) []UpstreamStatus {
	out := make([]UpstreamStatus, len(all))
	for i, u := range all {
		state := "healthy"
		switch {
		case u.OnTrial:
			state = "on trial"
		case u.Ejected:
			state = "ejected"
		}
		out[i] = UpstreamStatus{Upstream: u.Upstream, State: state, Since: u.Since, Why: u.Why, InFlight: u.InFlight, Requests: u.Requests, Failures: u.Failures, Limit: u.Limit}
	}
	return out
}

func listenerStatus(l net.Listener, tls bool) ListenerStatus {
	return ListenerStatus{Address: l.Addr().String(), TLS: tls}
}

// show answers with a value in JSON, in lines that a person can read.
func show(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value) // a client that has gone away needs no answer
}
