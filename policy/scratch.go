package policy

import (
	"context"
	"net/netip"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// scratch is what one decision works with; it is pooled. Nothing of it outlives the decision.
type scratch struct {
	p           *Policy
	e           *Engine
	ctx         context.Context
	req         *httpverdict.Request
	client      netip.Addr
	peerTrusted bool
	clock       time.Time // zero until somebody asks

	values []dimensionValue // by dimension
	onList []verdictOnList  // by list
	keys   []builtKey       // by key spec
	seen   []uint32         // by rule: the epoch in which it was met
	epoch  uint32
	route  string // the most specific of all patterns; of one rule, while it is looked at
	found  []candidate
	path   splitPath
	ip     [64]byte
	// buf begins with the id of the verdict, up to idEnd; the keys follow.
	buf   []byte
	idEnd int
	body  requestBody

	applied  []applied
	variants []*variant
	charges  []headgate.Charge
	// reports has the report of each charge, ruleOf the index of its rule in applied.
	reports  []*httpverdict.LimitReport
	ruleOf   []int32
	groups   []group
	decision headgate.Decision
	part     headgate.Decision // of one group
	// without and places are the charges that the fallback decides, and where they stand among all.
	without []headgate.Charge
	places  []int
	// asked is how many of the charges have been asked for in the latest take.
	asked int

	ticket   *ticket
	line     string        // in virtual time: where the request stands
	since    time.Time     // when it began to wait, on the clock of the process
	patience time.Duration // how long it may wait, 0 as long as nobody asks it to
	polls    int           // how often it has looked for a slot
	waited   time.Duration
	held     time.Duration // in virtual time
	over     []string      // rules that the request is over and passes all the same
	// personal: a rule whose answers are not public matches, also if it does not apply.
	personal bool
	// lifted: there are rules whose layer is.
	lifted bool
	// findUntil is when the time for look-ups is up; zero before the first.
	findUntil time.Time
	result    httpverdict.Result
}

type dimensionValue struct {
	known, present bool
	text           string
}

type builtKey struct {
	known, lacking bool
	from, to       int
}

type verdictOnList uint8

const (
	listUnknown verdictOnList = iota
	listed
	notListed
)

func newScratch(p *Policy) *scratch {
	return &scratch{
		p:      p,
		values: make([]dimensionValue, len(p.dims)),
		onList: make([]verdictOnList, len(p.lists)),
		keys:   make([]builtKey, len(p.specs)),
		seen:   make([]uint32, len(p.rules)),
	}
}

// begin takes up a request.
func (s *scratch) begin(ctx context.Context, e *Engine, r *httpverdict.Request) {
	if s.epoch++; s.epoch == 0 { // wrapped around after 2^32 requests
		clear(s.seen)
		s.epoch = 1
	}
	s.e, s.ctx, s.req = e, ctx, r
	if e.cfg.NewID == nil {
		s.buf = httpverdict.AppendID(s.buf[:0])
	} else {
		s.buf = append(s.buf[:0], e.cfg.NewID()...)
	}
	s.idEnd = len(s.buf)
	s.client, s.peerTrusted = s.p.clients.address(r.Peer, r.Header)
	if text, ok := r.Dimensions["ip"]; ok {
		a, _ := netip.ParseAddr(text) // what is no address is no client address
		s.client = a.Unmap().WithZone("")
	}
}

// end drops every reference to the request.
func (s *scratch) end() {
	if s.ticket != nil {
		s.ticket.leave()
	}
	s.e, s.ctx, s.req, s.ticket, s.over = nil, nil, nil, nil, nil
	clear(s.values)
	clear(s.onList)
	clear(s.keys)
	clear(s.groups) // the others hold parts of the policy, and copies of keys, until the next request
	s.path.clear()
	s.found, s.applied, s.variants, s.charges = s.found[:0], s.applied[:0], s.variants[:0], s.charges[:0]
	s.reports, s.ruleOf, s.groups, s.asked = s.reports[:0], s.ruleOf[:0], s.groups[:0], 0
	s.route, s.clock, s.since, s.findUntil, s.line, s.personal, s.lifted = "", time.Time{}, time.Time{}, time.Time{}, "", false, false
	s.patience, s.polls, s.waited, s.held = 0, 0, 0, 0
	s.body, s.result = requestBody{}, httpverdict.Result{}
	s.decision.Allowed = false
	if cap(s.buf) > 1<<14 {
		s.buf = nil
	}
}

// now is the time of the request, by the clock of the engine.
func (s *scratch) now() time.Time {
	if s.clock.IsZero() {
		s.clock = s.e.now()
	}
	return s.clock
}

// member tells whether the request is on a list.
func (s *scratch) member(index int) bool {
	if s.onList[index] == listUnknown {
		s.onList[index] = notListed
		if s.judgeList(&s.p.lists[index]) {
			s.onList[index] = listed
		}
	}
	return s.onList[index] == listed
}

func (s *scratch) judgeList(l *list) bool {
	if l.dim < 0 {
		return l.ips.contains(s.client)
	}
	text, ok := s.value(l.dim)
	if !ok {
		return false
	}
	_, on := l.values[text]
	return on
}

// anyPassing is anyMember for lists that let pass: a path with parameters, which the service may take for another one, is
// on no list of paths, nor of what is made of the path.
func (s *scratch) anyPassing(lists []int) int {
	for _, l := range lists {
		if dim := s.p.lists[l].dim; dim >= 0 && s.p.dims[dim].path && strings.IndexByte(s.req.Path, ';') >= 0 {
			continue
		}
		if s.member(l) {
			return l
		}
	}
	return -1
}

// anyMember returns the first of the lists that the request is on, -1 if there is none.
func (s *scratch) anyMember(lists []int) int {
	for _, l := range lists {
		if s.member(l) {
			return l
		}
	}
	return -1
}

// ipText returns the address of the client as far as it counts. It is valid until the next call.
func (s *scratch) ipText(dim *dimension) ([]byte, bool) {
	if dim.kind != dimIP || !s.client.IsValid() {
		return nil, false
	}
	if _, set := s.req.Dimensions[dim.name]; set && dim.name != "ip" {
		return nil, false
	}
	a := s.client
	if a.Is6() {
		if p, err := a.Prefix(dim.bits); err == nil {
			a = p.Addr()
		}
	}
	return a.AppendTo(s.ip[:0]), true
}
