package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// act does what the rules that deny ask for: the rule that binds decides, but one that rejects beats all. It returns the
// engine to ask again, nil if the verdict stands.
func (e *Engine) act(s *scratch, v *httpverdict.Verdict) *Engine {
	s.bindRejecting()
	binding := s.decision.Binding
	if binding < 0 {
		deny(s, v)
		return nil
	}
	r := s.ruleAt(binding)
	switch r.action.kind {
	case Wait:
		return e.wait(s, v, s.appliedOf(binding))
	case Mark:
		s.settleDenying()
		return e
	case Stale:
		deny(s, v)
		s.setStale(v, func(r *rule) bool { return r.action.kind == Stale })
	case Fallback:
		deny(s, v)
		v.Fallback = r.action.fallback
	default:
		deny(s, v)
	}
	return nil
}

// denies tells whether a charge that was asked for has denied the request.
func (s *scratch) denies(i int) bool {
	mode := s.charges[i].Mode
	return !s.decision.Outcomes[i].Allowed && (mode == headgate.Pay || mode == headgate.Check)
}

// bindRejecting lets, of the charges that deny, only those of rules that reject bind, if there are any: the client is told
// when those let it pass, and not when one does that would not have stopped it.
func (s *scratch) bindRejecting() {
	best := -1
	for i := range s.charges[:s.asked] {
		if s.denies(i) && s.ruleAt(i).action.rejects() && (best < 0 || longer(s.decision.Outcomes[i].RetryAfter, s.decision.Outcomes[best].RetryAfter)) {
			best = i
		}
	}
	if best >= 0 {
		s.decision.Binding = best
	}
}

// longer compares waits as a decision does: unknown is shorter than any time, never is longer.
func longer(a, b headgate.Retry) bool {
	if a.State != headgate.RetryAfter || b.State != headgate.RetryAfter {
		return a.State == headgate.RetryNever && b.State != headgate.RetryNever || b.State == headgate.RetryUnknown && a.State != headgate.RetryUnknown
	}
	return a.After > b.After
}

// settleDenying lets the request pass the limits that it is over in rules that mark: what is left of them is charged, and
// nothing is denied. Other rules that deny are asked again.
func (s *scratch) settleDenying() {
	for i := range s.charges[:s.asked] {
		if !s.denies(i) || s.ruleAt(i).action.kind != Mark {
			continue
		}
		s.charges[i].Mode = headgate.Settle
		if a := s.appliedOf(i); a.after {
			s.charges[i].Cost = 0 // it is charged when the answer is known
		}
		if name := s.ruleAt(i).name; !slices.Contains(s.over, name) {
			s.over = append(s.over, name)
		}
	}
}

// letPass writes what the front has to do with an allowed request.
func (e *Engine) letPass(s *scratch, v *httpverdict.Verdict) {
	if len(s.over) > 0 {
		v.Over = httpverdict.SignOver(e.cfg.MarkKey, httpverdict.OverMark{
			Rules: s.over, ID: v.ID, At: e.now(), Method: s.req.Method, Host: s.req.Host, Path: s.req.Path,
		})
	}
	if len(s.over) == 0 { // what the service answers to a mark is for nobody else
		s.setStale(v, (*rule).stale)
		v.Fallback = s.fallbackOfRules()
	}
	v.Wait += s.held
}

// setStale tells the front under what it keeps answers, if a rule of a kind applies. The strictest counts: an answer is
// public only if all these rules say so, those as well that do not apply to this request but match it. A request with a
// body has no part in it: nobody can tell what of the body the answer is for.
func (s *scratch) setStale(v *httpverdict.Verdict, is func(*rule) bool) {
	if s.req.Method != http.MethodGet && s.req.Method != http.MethodHead || s.req.ContentLength != 0 {
		return
	}
	age, public, asked := time.Duration(math.MaxInt64), !s.personal, false
	for i := range s.applied {
		r := &s.p.rules[s.applied[i].rule]
		if r.shadow || !r.stale() {
			continue
		}
		asked = asked || is(r)
		age = min(age, r.action.maxAge)
		public = public && r.public()
	}
	if !asked {
		return
	}
	v.Stale = &httpverdict.Stale{MaxAge: age}
	if !public {
		v.Stale.Identity = s.identity()
	}
}

// identity tells apart who an answer may have been made for: everything that comes with the request counts but what is
// known to say nothing of who asks.
func (s *scratch) identity() string {
	names := make([]string, 0, len(s.req.Header))
	for name := range s.req.Header {
		if !saysNothingOfWho(name) && !(s.peerTrusted && saysAddress(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	sum := sha256.New()
	write := func(text string) {
		_, _ = io.WriteString(sum, text) // a hash takes everything
		_, _ = sum.Write([]byte{0})
	}
	write(s.IP())
	for _, name := range names {
		write(name)
		for _, line := range s.req.Header[name] {
			write(line)
		}
		write("")
	}
	for i := range s.applied {
		if a := &s.applied[i]; s.p.rules[a.rule].stale() {
			write(string(s.buf[a.key.from:a.key.to]))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// saysNothingOfWho names the headers that differ between requests of one client, or that do not tell clients apart. What an
// answer depends on among them is in its Vary, which the front minds.
func saysNothingOfWho(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Pragma", "Connection", "Content-Length", "Date",
		"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range", "Keep-Alive", "Te", "Priority",
		"Referer", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "Sec-Fetch-User", "Traceparent", "Tracestate",
		"Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Forwarded-Proto", "X-Request-Id":
		return true
	}
	return false
}

// saysAddress names the headers that the client's address is taken from, if they come from a trusted proxy. From anybody
// else they are not believed here, but perhaps by the service.
func saysAddress(name string) bool { return name == "X-Forwarded-For" || name == "Forwarded" }
