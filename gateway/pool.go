package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// upstream is one server of the service.
type upstream struct {
	endpoint
	name     string // as a Config would have it
	lanes    *lanes
	upgrades *http.Transport // for websockets; another one if it speaks h2c
	health   *health
	limiter  *limiter // nil for none

	inflight           atomic.Int64
	requests, failures atomic.Uint64
	timer              *time.Timer // of the next probe; the pool's changes guards it
}

// pool is the upstreams, and which of them may be sent requests.
type pool struct {
	all     []*upstream
	cfg     *Config
	probe   func(context.Context, *upstream) error
	open    atomic.Pointer[[]*upstream] // those that are not ejected
	serving atomic.Int32                // how many of them are not on trial

	changes sync.Mutex // held while an upstream changes its phase, and while that is told
	closed  bool
	life    context.Context
	end     context.CancelFunc
	probes  sync.WaitGroup
}

func newPool(endpoints []endpoint, cfg *Config, probe func(context.Context, *upstream) error) *pool {
	p := &pool{cfg: cfg, probe: probe}
	p.life, p.end = context.WithCancel(context.Background())
	now := time.Now()
	for _, e := range endpoints {
		u := &upstream{endpoint: e, name: e.String(), health: newHealth(&cfg.Ejection, cfg.Random, now)}
		if cfg.Adaptive != nil {
			u.limiter = newLimiter(*cfg.Adaptive, now)
		}
		p.all = append(p.all, u)
	}
	p.refresh()
	return p
}

// refresh notes which upstreams are open. The caller holds changes, or nobody else has the pool yet.
func (p *pool) refresh() {
	open, serving := make([]*upstream, 0, len(p.all)), int32(0)
	for _, u := range p.all {
		switch u.health.condition().phase {
		case inService:
			serving++
			open = append(open, u)
		case onTrial:
			open = append(open, u)
		}
	}
	p.open.Store(&open)
	p.serving.Store(serving)
}

// attempt is a request at an upstream.
type attempt struct {
	p        *pool
	u        *upstream // nil before there is one, and when it is left
	entered  time.Time
	answered time.Time // when the header of the answer has come, or its want was known
	admitted admission
	reported bool
	way      *course // nil before an answer, or its want
	lane     *lane   // nil before it is sent
	coming   *upload // nil unless its body takes a place that it may have to give back
}

// search is what a request looks for an upstream with.
type search struct {
	now      time.Time
	priority uint8
	avoid    *upstream // nil for none
	crowded  bool      // whether one had no place within its adaptive limit
}

// refusal says why a request finds no upstream.
type refusal struct {
	crowded bool
	after   time.Duration // when to come again
}

// pick finds an upstream for a request: of two drawn at random that with fewer requests (Mitzenmacher, The power of two choices in
// randomized load balancing, 2001), and any other where these have no place.
func (p *pool) pick(s search) (attempt, *refusal) {
	open := *p.open.Load()
	switch len(open) {
	case 0:
	case 1:
		if at, entered := p.enter(&s, open[0]); entered {
			return at, nil
		}
	default:
		first, second := p.draw(len(open))
		if open[second].inflight.Load() < open[first].inflight.Load() {
			first, second = second, first
		}
		if at, entered := p.enter(&s, open[first]); entered {
			return at, nil
		}
		for i := range open { // the second, and any other
			if at, entered := p.enter(&s, open[(second+i)%len(open)]); entered {
				return at, nil
			}
		}
	}
	return attempt{}, p.refuse(&s)
}

// draw returns two different numbers below n, which is at least 2.
func (p *pool) draw(n int) (first, second int) {
	first = min(int(p.cfg.Random()*float64(n)), n-1)
	second = min(int(p.cfg.Random()*float64(n-1)), n-2)
	if second >= first {
		second++
	}
	return first, second
}

// enter begins an attempt at an upstream that has a place for it.
func (p *pool) enter(s *search, u *upstream) (attempt, bool) {
	if u == s.avoid {
		return attempt{}, false
	}
	admitted, ok := u.health.admit(s.now)
	if !ok {
		return attempt{}, false
	}
	if u.limiter != nil && !u.limiter.enter(s.now, s.priority) {
		u.health.report(s.now, admitted, unknown, 0)
		s.crowded = true
		return attempt{}, false
	}
	u.inflight.Add(1)
	u.requests.Add(1)
	return attempt{p: p, u: u, entered: s.now, admitted: admitted}, true
}

// refuse says why there is no upstream, and when to come again.
func (p *pool) refuse(s *search) *refusal {
	if s.crowded {
		return &refusal{crowded: true, after: time.Second}
	}
	after := p.cfg.Ejection.Most
	for _, u := range p.all {
		c := u.health.condition()
		if c.phase != ejected { // it is on trial
			return &refusal{after: time.Second}
		}
		after = min(after, c.until.Sub(s.now))
	}
	return &refusal{after: max(after, time.Second)}
}

// report notes how an attempt has gone, and what its time tells, once: at the header of the answer, or when there is none.
func (a *attempt) report(o outcome, t timing, cause error) {
	if a.u == nil || a.reported {
		return
	}
	a.reported = true
	if o == failed || o == busy {
		a.u.failures.Add(1)
	}
	now := a.answered
	if now.IsZero() {
		now = time.Now()
	}
	a.coming.end()
	if a.u.limiter != nil {
		a.u.limiter.leave(now, a.entered, t)
	}
	if o == failed && a.way.repeats() {
		o = unknown
	}
	a.act(now, a.u.health.report(now, a.admitted, o, a.p.spare()), cause)
}

// broke notes that the answer has broken off after its header.
func (a *attempt) broke(cause error) {
	now := time.Now()
	a.u.failures.Add(1)
	if a.way.repeats() {
		return
	}
	a.act(now, a.u.health.broke(now, a.admitted, a.p.spare()), cause)
}

// leave ends an attempt.
func (a *attempt) leave() {
	if a.u != nil {
		a.report(unknown, untimed, nil)
		a.u.inflight.Add(-1)
		a.u.lanes.leave(a.lane)
		a.u = nil
	}
}

func (a *attempt) act(now time.Time, j judgement, cause error) {
	switch {
	case j.back:
		a.p.restore(now, a)
	case j.eject != "":
		if cause != nil {
			j.eject += ", the last: " + brief(cause)
		}
		a.p.eject(now, a, j)
	}
}

// eject takes an upstream out of service for a while.
func (p *pool) eject(now time.Time, a *attempt, j judgement) {
	p.changes.Lock()
	defer p.changes.Unlock()
	u := a.u
	if p.closed || j.mild && !p.othersServe(u) {
		return
	}
	wait := u.health.eject(now, a.admitted, j.eject)
	if wait == 0 {
		return
	}
	p.refresh()
	u.closeIdle()
	p.arm(u, wait)
	p.cfg.Logger.Warn("an upstream is ejected", "upstream", u.name, "why", j.eject, "for", wait.Round(time.Millisecond).String(), "left", len(*p.open.Load()))
	p.tell(u, true, j.eject)
}

// spare is how many upstreams in service there are, without those that must stay: half of all. A client that can have the service
// answer 503 must not be able to bring all of its load onto the last one.
func (p *pool) spare() int { return int(p.serving.Load()) - (len(p.all)-1)/2 }

// othersServe tells whether enough other upstreams are in service. The caller holds changes.
func (p *pool) othersServe(u *upstream) bool {
	spare := p.spare()
	if u.health.condition().phase == inService {
		spare--
	}
	return spare > 0
}

// restore puts an upstream back into service that has passed its trial.
func (p *pool) restore(now time.Time, a *attempt) {
	p.changes.Lock()
	defer p.changes.Unlock()
	if !a.u.health.restore(now, a.admitted) {
		return
	}
	p.refresh()
	const why = "a request on trial was answered"
	p.cfg.Logger.Info("an upstream is back", "upstream", a.u.name, "why", why)
	p.tell(a.u, false, why)
}

func (p *pool) tell(u *upstream, ejected bool, why string) {
	if p.cfg.UpstreamChanged != nil {
		p.cfg.UpstreamChanged(u.name, ejected, why)
	}
}

// probeEvery is how often an upstream is probed that has not been reached when its ejection was over.
const probeEvery = time.Second

// arm has an upstream probed after a time. The caller holds changes.
func (p *pool) arm(u *upstream, wait time.Duration) {
	p.probes.Add(1)
	u.timer = time.AfterFunc(wait, func() {
		defer p.probes.Done()
		p.look(u)
	})
}

// look probes an ejected upstream, and lets it have its trial if it can be reached.
func (p *pool) look(u *upstream) {
	err := p.probe(p.life, u)
	p.changes.Lock()
	defer p.changes.Unlock()
	switch {
	case p.closed:
	case err != nil:
		p.cfg.Logger.LogAttrs(p.life, slog.LevelDebug, "an ejected upstream cannot be reached", slog.String("upstream", u.name), slog.Any("error", err))
		p.arm(u, jittered(min(probeEvery, p.cfg.Ejection.For), p.cfg.Random))
	default:
		u.health.reached()
		p.refresh()
	}
}

// close ends all probes, and waits for them.
func (p *pool) close() {
	p.changes.Lock()
	p.closed = true
	p.end()
	for _, u := range p.all {
		if u.timer != nil && u.timer.Stop() {
			p.probes.Done()
		}
		u.closeIdle()
	}
	p.changes.Unlock()
	p.probes.Wait()
}

func (u *upstream) closeIdle() {
	if u.lanes != nil { // a test may have none
		u.lanes.closeIdle()
		u.upgrades.CloseIdleConnections()
	}
}

// stats returns what the upstream does at the moment.
func (u *upstream) stats() UpstreamStats {
	c := u.health.condition()
	limit := 0
	if u.limiter != nil {
		limit = u.limiter.now()
	}
	return UpstreamStats{
		Upstream: u.name, Limit: limit, Ejected: c.phase != inService, OnTrial: c.phase == onTrial, Since: c.since, Why: c.why,
		InFlight: int(u.inflight.Load()), Requests: u.requests.Load(), Failures: u.failures.Load(),
	}
}
