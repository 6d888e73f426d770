package app

import (
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// Status is what the admin listener's /status says, in the parts that the process is made of.
type Status struct {
	Process ProcessStatus `json:"process"`
	Policy  PolicyStatus  `json:"policy"`
	Store   StoreStatus   `json:"store"`
	Gateway GatewayStatus `json:"gateway"`
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
	// Reached tells that it has been reached at some time since the start.
	Reached bool `json:"reached"`
}

// GatewayStatus is of the gateway.
type GatewayStatus struct {
	Listener ListenerStatus `json:"listener"`
	Upstream string         `json:"upstream"`
	// InFlight is the number of requests at the service, Tunnels that of the websockets among them, Held that of requests
	// that wait in a queue or for their turn.
	InFlight int `json:"in_flight"`
	Tunnels  int `json:"tunnels"`
	Held     int `json:"held"`
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
			Version: s.cfg.Version, Started: s.started.UTC(), UptimeSeconds: time.Since(s.started).Seconds(), Ready: s.health.ready.Load(),
		},
		Policy: s.reloader.Status(),
		Store:  StoreStatus{Name: s.store.Name, Remote: s.store.Remote, Reached: s.store.Reached()},
		Gateway: GatewayStatus{
			Listener: listenerStatus(s.front, s.tls != nil), Upstream: s.cfg.Upstream,
			InFlight: stats.InFlight, Tunnels: stats.Tunnels, Held: stats.Held + s.reloader.guard.Waiting(),
		},
	}
	now.Gateway.Listener.ProxyProtocol = s.cfg.ProxyProtocol
	if s.admin != nil {
		of := listenerStatus(s.admin, false)
		now.Process.Admin = &of
	}
	return now
}

func listenerStatus(l net.Listener, tls bool) ListenerStatus {
	return ListenerStatus{Address: l.Addr().String(), TLS: tls}
}

// showStatus answers with a status, in lines that a person can read.
func showStatus(status func() Status) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(status()) // a client that has gone away needs no answer
	}
}
