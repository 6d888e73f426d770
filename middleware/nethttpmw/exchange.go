package nethttpmw

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// exchange is one request under its verdict.
type exchange struct {
	front   *front
	r       *http.Request // as it came
	judged  *httpverdict.Request
	verdict *httpverdict.Verdict
	body    *body     // nil for none
	rec     *recorder // nil if it does not matter how it is answered
}

// tellsOfAsker tells whether the answer will have headers that are about who asks, and may be one that caches give to others.
func (x *exchange) tellsOfAsker() bool {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		return false
	}
	return x.verdict.Allowed() && (x.verdict.ID != "" || len(x.verdict.Limits) > 0)
}

func (x *exchange) apply(w http.ResponseWriter) {
	v := x.verdict
	if !v.Allowed() {
		x.deny(w, v)
		return
	}
	if err := x.front.holds.Wait(x.r.Context(), v.Wait); err != nil {
		// Too many are held, or the client has left; in case it was somebody else who ended the context, this is no success.
		x.deny(w, v.Overload())
		return
	}
	var keeping *stale.Keeping
	if v.Stale != nil && v.Over == "" { // what a marked request is told is for it alone
		var a *stale.Answer
		if a, keeping = x.front.cfg.Stale.Join(x.r.Context(), stale.QueryOf(x.front, x.r, x.judged, v.Stale)); a != nil {
			x.give(w, a)
			return
		}
	}
	x.front.cfg.Renderer.SetHeaders(w.Header(), v)
	if keeping == nil {
		x.front.next.ServeHTTP(w, x.request())
		return
	}
	defer keeping.Close()
	x.rec.keep = &keep{taking: keeping}
	x.front.next.ServeHTTP(w, x.request())
	x.rec.kept(x.r.Context())
}

// deny answers with what is kept, or with the denial.
func (x *exchange) deny(w http.ResponseWriter, v *httpverdict.Verdict) {
	if v.Stale != nil {
		if a := x.front.cfg.Stale.Kept(stale.QueryOf(x.front, x.r, x.judged, v.Stale)); a != nil {
			x.give(w, a)
			return
		}
	}
	if x.r.ProtoMajor == 1 && x.body.pending() {
		w.Header().Set("Connection", "close") // else the answer would wait for the rest of the body
	}
	x.front.cfg.Renderer.Write(w, x.r, v)
}

// give answers with what is kept.
func (x *exchange) give(w http.ResponseWriter, a *stale.Answer) {
	x.front.cfg.Renderer.SetHeaders(w.Header(), x.verdict)
	w.Header().Del("Retry-After") // here is the answer
	a.Write(w, x.r)
}

// request returns what the handler gets: the request with the path that was judged, the verdict's mark and no other, and
// the body as it was looked at or is counted. It is the request itself if nothing of that is to be done.
func (x *exchange) request() *http.Request {
	out := x.r
	own := func() *http.Request {
		if out == x.r {
			out = out.WithContext(out.Context())
		}
		return out
	}
	if looked := x.body.pass(); looked {
		out = x.body.out
		out.Body = x.body
	} else if x.body != nil && x.verdict.Done != nil {
		own().Body = x.body
	}
	if u := cleanURL(x.r.URL, x.judged.Path); u != x.r.URL {
		own().URL = u
	}
	if x.verdict.Over != "" || marked(x.r.Header) {
		h := maps.Clone(x.r.Header)
		delete(h, httpverdict.HeaderOver)
		delete(h, overWithUnderscore)
		if x.verdict.Over != "" {
			h[httpverdict.HeaderOver] = []string{x.verdict.Over}
			keepOption(h)
		}
		own().Header = h
	}
	return out
}

// keepOption takes the mark's name out of Connection: a proxy behind the handler would take the mark away because its client
// has said so.
func keepOption(h http.Header) {
	lines := h["Connection"]
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(strings.ToLower(line), "headgate") }) {
		return
	}
	kept := make([]string, 0, len(lines))
	for _, line := range lines {
		for option := range strings.SplitSeq(line, ",") {
			if option = strings.TrimSpace(option); option != "" && !strings.EqualFold(option, httpverdict.HeaderOver) {
				kept = append(kept, option)
			}
		}
	}
	h["Connection"] = []string{strings.Join(kept, ", ")}
	if len(kept) == 0 {
		delete(h, "Connection")
	}
}

// overWithUnderscore is what CGI and WSGI applications behind the handler would take for the mark.
const overWithUnderscore = "Headgate_over"

// marked tells whether a client has sent a mark.
func marked(h http.Header) bool {
	_, given := h[httpverdict.HeaderOver]
	if !given {
		_, given = h[overWithUnderscore]
	}
	return given
}

// cleanURL returns a URL with the path that was judged, the URL itself if that is its path already.
func cleanURL(in *url.URL, clean string) *url.URL {
	if clean == "*" || in.RawPath == "" && in.Path == clean {
		return in
	}
	u := *in
	if err := httpverdict.SetPath(&u, clean); err != nil {
		return in // cannot be: the path comes from CleanPath
	}
	if plain := (&url.URL{Path: u.Path}); plain.EscapedPath() == u.RawPath {
		u.RawPath = "" // as net/http has it where the default encoding says the same
	}
	return &u
}
