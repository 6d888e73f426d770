package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// ReservedPrefix is the part of the path space that is never forwarded.
const ReservedPrefix = "/_headgate/"

// Gateway is the reverse proxy. It is an http.Handler, safe for concurrent use.
type Gateway struct {
	cfg       Config
	up        upstream
	transport *http.Transport
	upgrades  *http.Transport // for websockets; another one if the service speaks h2c
	holds     *httpverdict.Holds
	inflight  atomic.Int64
	open      atomic.Int64 // tunnels among them
	buffers   sync.Pool    // of *[copyBuffer]byte
}

// Stats is what a Gateway does at the moment.
type Stats struct {
	// InFlight is the number of requests at the service, Tunnels that of the websockets among them, Held that of requests
	// that wait in a queue.
	InFlight, Tunnels, Held int
}

// Event is a request that is over.
type Event struct {
	Request *http.Request
	// Verdict is nil if the policy was not asked.
	Verdict *httpverdict.Verdict
	// Status is the answer's, 0 if there was none; Bytes is the size of its body.
	Status int
	Bytes  int64
	// Duration is the whole time in the gateway. Upstream is the part of it from handing the request on to the header of the
	// answer, 0 if it was not handed on; Body is the part spent with the body of the answer, or as a tunnel.
	Duration, Upstream, Body time.Duration
}

// New returns a Gateway for one service. It refuses a malformed upstream, and a policy that needs what it cannot give.
func New(cfg Config) (*Gateway, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	up, err := parseUpstream(cfg.Upstream)
	if err != nil {
		return nil, err
	}
	if cfg.Stale == nil {
		if cfg.Stale, err = stale.New(stale.Config{}); err != nil {
			return nil, err
		}
	}
	g := &Gateway{cfg: cfg, up: up, holds: httpverdict.NewHolds(cfg.MaxHeld)}
	g.buffers.New = func() any { return new([copyBuffer]byte) }
	g.connect()
	return g, nil
}

// Stats returns what the gateway does at the moment.
func (g *Gateway) Stats() Stats {
	return Stats{InFlight: int(g.inflight.Load()), Tunnels: int(g.open.Load()), Held: g.holds.Held()}
}

// Close closes the idle connections to the service, and those of requests that are under way when they are over. It does
// not end those, nor keep new ones from coming: close the server first.
func (g *Gateway) Close() error {
	g.transport.CloseIdleConnections()
	g.upgrades.CloseIdleConnections()
	return nil
}

// ServeHTTP judges a request and answers or forwards it.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{g: g, w: w, r: r, start: time.Now()}
	defer x.finish()
	x.serve()
}

// enter takes one of the places at the service.
func (g *Gateway) enter() bool {
	if g.inflight.Add(1) <= int64(g.cfg.MaxConcurrent) {
		return true
	}
	g.inflight.Add(-1)
	return false
}

func (g *Gateway) leave() { g.inflight.Add(-1) }
