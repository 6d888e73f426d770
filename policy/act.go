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
	binding := s.decision.Binding
	if binding < 0 || s.anyRejects() {
		deny(s, v)
		return nil
	}
	r := s.ruleAt(binding)
	switch r.action.kind {
	case Wait:
		return e.wait(s, v, r)
	case Mark:
		s.settleDenying()
		return e
	case Stale:
		deny(s, v)
		s.setStale(v, func(r *rule) bool { return r.action.kind == Stale })
	case Fallback:
		deny(s, v)
		v.Fallback = r.action.fallback
	}
	return nil
}

// denies tells whether a charge that was asked for has denied the request.
func (s *scratch) denies(i int) bool {
	mode := s.charges[i].Mode
	return !s.decision.Outcomes[i].Allowed && (mode == headgate.Pay || mode == headgate.Check)
}

func (s *scratch) anyRejects() bool {
	for i := range s.charges[:s.asked] {
		if s.denies(i) && s.ruleAt(i).action.rejects() {
			return true
		}
	}
	return false
}

// settleDenying lets the request pass the limits that it is over: what is left of them is charged, and nothing is denied.
func (s *scratch) settleDenying() {
	for i := range s.charges[:s.asked] {
		if !s.denies(i) {
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
			Rules: s.over, ID: v.ID, At: s.now(), Method: s.req.Method, Host: s.req.Host, Path: s.req.Path,
		})
	}
	s.setStale(v, (*rule).stale)
	if s.held > 0 {
		v.Wait += s.held
		e.keepTails(s)
	}
}

// setStale tells the front under what it keeps answers, if a rule of a kind applies. The strictest counts: an answer is
// public only if all these rules say so.
func (s *scratch) setStale(v *httpverdict.Verdict, is func(*rule) bool) {
	if s.req.Method != http.MethodGet && s.req.Method != http.MethodHead {
		return
	}
	age, public, asked := time.Duration(math.MaxInt64), true, false
	for i := range s.applied {
		r := &s.p.rules[s.applied[i].rule]
		if r.shadow || !r.stale() {
			continue
		}
		asked = asked || is(r)
		age = min(age, r.action.maxAge)
		public = public && r.action.kind == Stale && r.action.public
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
		if !saysNothingOfWho(name) {
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
		"Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Forwarded-Proto", "X-Request-Id", "Forwarded", "X-Forwarded-For":
		return true
	}
	return false
}
