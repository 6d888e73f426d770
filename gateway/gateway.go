package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// Gateway is the reverse proxy. It is an http.Handler, safe for concurrent use.
type Gateway struct {
	cfg      Config
	pool     *pool
	holds    *httpverdict.Holds
	inflight atomic.Int64
	open     atomic.Int64 // tunnels among them
	buffers  sync.Pool    // of *[copyBuffer]byte
	answers  answerWatches
}

// Stats is what a Gateway does at the moment.
type Stats struct {
	// InFlight is the number of requests at the service, Tunnels that of the websockets among them, Held that of requests
	// that wait in a queue.
	InFlight, Tunnels, Held int
	// Upstreams are in the order of the Config.
	Upstreams []UpstreamStats
}

// UpstreamStats is what an upstream does at the moment.
type UpstreamStats struct {
	// Upstream is its address, as in Config.Upstreams.
	Upstream string
	// Ejected tells that it gets no requests. It is still set while OnTrial, when it gets one at a time until one is answered:
	// where there are no requests, that is until there are.
	Ejected, OnTrial bool
	// Since is when that began, or when it came back, or when the gateway was made. Why is the reason for an ejection, else "".
	Since time.Time
	Why   string
	// InFlight is the number of requests there, websockets among them. Requests counts those that it was sent, Failures those
	// of them that say it is in trouble: see Ejection.
	InFlight           int
	Requests, Failures uint64
	// Limit is that of Config.Adaptive at the moment, 0 without.
	Limit int
}

// Event is a request that is over.
type Event struct {
	Request *http.Request
	// Judged is the request as the policy was asked about it, nil if it was not.
	Judged *httpverdict.Request
	// Verdict is nil if the policy was not asked.
	Verdict *httpverdict.Verdict
	// Status is the answer's, 0 if there was none; Bytes is the size of its body.
	Status int
	Bytes  int64
	// ServedBy is the upstream that the request was last sent to, as in Config.Upstreams; "" if it was not sent.
	ServedBy string
	// Duration is the whole time in the gateway. Upstream is the part of it from handing the request on to the header of the
	// answer, 0 if it was not handed on; Body is the part spent with the body of the answer, or as a tunnel.
	Duration, Upstream, Body time.Duration
}

// New returns a Gateway for one service; Close ends it. It refuses a malformed upstream, and a policy that needs what it cannot give.
func New(cfg Config) (*Gateway, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	endpoints, err := cfg.endpoints()
	if err != nil {
		return nil, err
	}
	if cfg.Stale == nil {
		if cfg.Stale, err = stale.New(stale.Config{}); err != nil {
			return nil, err
		}
	}
	g := &Gateway{cfg: cfg, holds: httpverdict.NewHolds(cfg.MaxHeld)}
	g.buffers.New = func() any { return new([copyBuffer]byte) }
	g.answers.every = cfg.AnswerIdle
	g.pool = newPool(endpoints, &g.cfg, g.probe)
	for _, u := range g.pool.all {
		g.connect(u)
	}
	return g, nil
}

// Stats returns what the gateway does at the moment.
func (g *Gateway) Stats() Stats {
	s := Stats{InFlight: int(g.inflight.Load()), Tunnels: int(g.open.Load()), Held: g.holds.Held()}
	for _, u := range g.pool.all {
		s.Upstreams = append(s.Upstreams, u.stats())
	}
	return s
}

// Close closes the idle connections to the service, and those of requests that are under way when they are over, and ends the
// probes of ejected upstreams. It does not end requests, nor keep new ones from coming: close the server first.
func (g *Gateway) Close() error {
	g.pool.close()
	g.answers.close()
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
