package replay

import (
	"container/heap"
	"context"
	"math"
	"net/http"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// judge asks the policies about one request after the other.
type judge struct {
	now, before *side // before is nil when there is nothing to compare with
	clients     clientTally
	series      series
	closeUp     closeUp
	difference  Difference
	requests    int64
	first, last int64
	fractions   bool // a time had a part of a second
	durations   bool // a line said how long its request took
	forgotten   int64
	req         httpverdict.Request
}

// side is one policy at work.
type side struct {
	policy *Policy
	tally  *sideTally
	view   httpverdict.Decider
	at     int64
	users  bool            // the policy has a dimension "user"
	set    map[string]bool // unlogged dimensions that a line has set all the same
	given  map[string]bool // headers of unlogged dimensions, and whether a line had them
	open   openRequests
}

func newSide(p *Policy) *side {
	s := &side{policy: p, tally: newSideTally(p.Rules), at: math.MinInt64, set: map[string]bool{}, given: map[string]bool{}}
	for _, u := range p.Unlogged {
		if u.Header != "" {
			s.given[u.Header] = false
		}
	}
	if known, ok := p.Decider.(interface{ HasDimension(name string) bool }); ok {
		s.users = known.HasDimension("user")
	}
	return s
}

func newJudge(cfg *Config) *judge {
	j := &judge{now: newSide(&cfg.Policy), clients: clientTally{newSample[clientFlags](allClients)}}
	j.forgotten = math.MinInt64
	if cfg.Against != nil {
		j.before = newSide(cfg.Against)
		j.before.tally.totals = true
	}
	j.fresh()
	return j
}

// fresh makes a request of its own; the one before may still be looked at.
func (j *judge) fresh() {
	j.req = httpverdict.Request{Header: http.Header{}, Dimensions: map[string]string{}}
}

func (j *judge) judge(ctx context.Context, e *entry) {
	if j.requests == 0 {
		j.first = e.at
	}
	j.requests++
	j.last = e.at
	j.fractions = j.fractions || e.at%1e6 != 0
	j.durations = j.durations || e.took >= 0
	j.forget(e.at)
	client := hashText(e.client)
	allowed, reused := j.now.judge(ctx, e, j.fill(e, j.now.users), client)
	flags := clientSeen
	if !allowed {
		flags |= clientHit
	}
	was := false
	if j.before != nil {
		if !reused {
			j.fresh()
		}
		was, reused = j.before.judge(ctx, e, j.fill(e, j.before.users), client)
		if !was {
			flags |= clientHitBefore
		}
		j.compare(allowed, was)
	}
	j.series.at(e.at).add(allowed, was)
	j.closeUp.at(e.at).add(allowed, was)
	if !reused {
		j.fresh()
	}
	j.clients.see(client, flags)
}

func (j *judge) compare(allowed, was bool) {
	switch {
	case !allowed && !was:
		j.difference.Both++
	case !allowed:
		j.difference.NewOnly++
	case !was:
		j.difference.OldOnly++
	}
}

// forgetEvery is how much of the log's time passes between two looks for keys that are idle.
const forgetEvery = int64(time.Minute / time.Microsecond)

func (j *judge) forget(now int64) {
	if j.forgotten != math.MinInt64 && now-j.forgotten < forgetEvery {
		return
	}
	j.forgotten = now
	for _, s := range [...]*side{j.now, j.before} {
		if s != nil && s.policy.Forget != nil {
			s.policy.Forget(timeOf(now))
		}
	}
}

// fill makes the request of a line.
func (j *judge) fill(e *entry, users bool) *httpverdict.Request {
	r := &j.req
	clear(r.Header)
	clear(r.Dimensions)
	r.Method, r.Host, r.Path, r.RawQuery, r.Peer = e.method, e.host, e.path, e.query, e.addr
	r.ContentLength = e.requestBytes
	if !e.addrIsPeer {
		r.Dimensions["ip"] = e.client
		if e.addr.IsValid() {
			r.Dimensions["ip"] = e.addr.String()
		}
	}
	for i := range e.fields {
		f := &e.fields[i]
		if f.dimension {
			r.Dimensions[f.name] = f.value
		} else {
			r.Header[f.name] = append(r.Header[f.name], f.value)
		}
	}
	if _, set := r.Dimensions["user"]; users && e.user != "" && !set {
		r.Dimensions["user"] = e.user
	}
	return r
}

// judge asks one policy. reused tells that nothing holds on to the request.
func (s *side) judge(ctx context.Context, e *entry, r *httpverdict.Request, client uint64) (allowed, reused bool) {
	s.finishUntil(e.at)
	for name := range r.Dimensions {
		if name != "ip" && !s.set[name] {
			s.set[name] = true
		}
	}
	for name := range s.given {
		if len(r.Header[name]) > 0 {
			s.given[name] = true
		}
	}
	if e.at != s.at || s.view == nil {
		s.at, s.view = e.at, s.policy.Decider.At(timeOf(e.at))
	}
	v := s.view.Decide(ctx, r)
	one := judged{at: e.at, client: client, allowed: v.Allowed(), settled: v.Done == nil, rule: v.Rule, shadow: v.Shadow}
	s.tally.see(&one, v)
	if v.Done == nil {
		return one.allowed, true
	}
	// Of a denied request, too: the log has the answer that it would have been denied.
	over := openRequest{until: e.at, verdict: v, result: httpverdict.Result{Status: e.status, Bytes: e.bytes, RequestBytes: e.requestBytes}}
	if one.allowed && e.took > 0 && s.mayStay(v) {
		over.until += e.took
		s.open.add(over)
		return one.allowed, false
	}
	s.finish(ctx, &over)
	return one.allowed, true
}

// finish ends a request.
func (s *side) finish(ctx context.Context, r *openRequest) {
	r.verdict.Done(ctx, r.result)
	s.tally.settle(r.until, r.verdict)
}

// mayStay tells whether a request occupies something while it runs, and that there is room to remember it.
func (s *side) mayStay(v *httpverdict.Verdict) bool {
	const most = 1 << 17
	if len(s.open) >= most {
		return false
	}
	if holdsSlot(v.Limits) {
		return true
	}
	for i := range v.Matches {
		if holdsSlot(v.Matches[i].Limits) {
			return true
		}
	}
	return false
}

func holdsSlot(limits []httpverdict.LimitReport) bool {
	for i := range limits {
		if _, ok := limits[i].Limit.(headgate.Concurrency); ok {
			return true
		}
	}
	return false
}

// finishUntil ends the requests that were over by a time.
func (s *side) finishUntil(now int64) {
	for len(s.open) > 0 && s.open[0].until <= now {
		o := heap.Pop(&s.open).(openRequest)
		s.finish(context.Background(), &o)
	}
}

// end ends what is still open.
func (j *judge) end() {
	for _, s := range [...]*side{j.now, j.before} {
		if s != nil {
			s.finishUntil(math.MaxInt64)
		}
	}
}

// openRequest is a request that is still being answered.
type openRequest struct {
	until   int64
	verdict *httpverdict.Verdict
	result  httpverdict.Result
}

// openRequests has the one that ends first in front.
type openRequests []openRequest

func (o *openRequests) add(r openRequest) { heap.Push(o, r) }
func (o openRequests) Len() int           { return len(o) }
func (o openRequests) Less(i, j int) bool { return o[i].until < o[j].until }
func (o openRequests) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }

// Push implements heap.Interface.
func (o *openRequests) Push(x any) { *o = append(*o, x.(openRequest)) }

// Pop implements heap.Interface.
func (o *openRequests) Pop() any {
	last := (*o)[len(*o)-1]
	(*o)[len(*o)-1] = openRequest{}
	*o = (*o)[:len(*o)-1]
	return last
}
