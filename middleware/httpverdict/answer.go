package httpverdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
)

// maxPage bounds what a template may write.
const maxPage = 1 << 20

var errLongPage = errors.New("the page is longer than 1 MB")

// Answer is a denial as it goes over the wire.
type Answer struct {
	Status int
	// Header has every field but Content-Length.
	Header http.Header
	Body   []byte
}

// Write answers a request that the verdict does not let pass: status, headers and, but for HEAD, a body. It adds to the
// Vary that is there and replaces other headers.
func (p Renderer) Write(w http.ResponseWriter, r *http.Request, v *Verdict) {
	a := p.Answer(r.Header, v)
	h := w.Header()
	for name, values := range a.Header {
		if name == "Vary" {
			values = append(slices.Clip(h[name]), values...)
		}
		h[name] = values
	}
	bodied := mayHaveBody(a.Status)
	if bodied {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	if bodied && r.Method != http.MethodHead {
		_, _ = w.Write(a.Body) // the client has gone: nobody is left to tell
	}
}

// Answer returns the whole answer to a request, of which it needs the header alone, that the verdict does not let pass. It
// is for fronts without an http.ResponseWriter.
//
// Titles and messages are in the [Language] that the request prefers. A page that a template cannot make, or makes longer
// than 1 MB, is answered with a problem document. In the style of problem documents, a browser is given a page where the code has one;
// see [FriendlyPage]. A fallback has no Retry-After if its status says that all is well.
func (p Renderer) Answer(request http.Header, v *Verdict) Answer {
	h := make(http.Header, 8)
	retry, again := p.retry(v)
	a := Answer{Status: StatusOf(v.Kind), Header: h}
	if f := v.Fallback; f != nil && f.Status >= 200 && f.Status <= 599 {
		a.Status = f.Status
	}
	p.setHeaders(h, v, retry, again && (v.Fallback == nil || a.Status >= 300))
	values := [...]string{"no-store", "", "", "Accept-Language"} // one allocation for all
	h["Cache-Control"] = values[0:1:1]
	if f := v.Fallback; f != nil {
		values[1], a.Body = f.ContentType, f.Body
	} else {
		d := denial{v: v, page: newPage(request, v, a.Status), again: again}
		d.page.RetryAfter = retry
		values[2] = d.page.Lang
		h["Content-Language"], h["Vary"] = values[2:3:3], values[3:4:4]
		values[1], a.Body = p.body(request, h, &d)
	}
	if !mayHaveBody(a.Status) {
		values[1], a.Body = "", nil
	}
	if values[1] != "" {
		h["Content-Type"] = values[1:2:2]
	}
	allowOrigin(h, request, &v.Response)
	return a
}

func mayHaveBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusResetContent && status != http.StatusNotModified
}

// allowOrigin lets a page of a configured origin read the denial, also where it sends credentials: what a denial says is
// for whoever sent the request. No other origin is named, and never "*", nor
// "null", as which any page can show itself.
func allowOrigin(h, request http.Header, style *ResponseStyle) {
	if len(style.Origins) == 0 {
		return
	}
	h["Vary"] = append(h["Vary"], "Origin")
	origin := request["Origin"]
	if len(origin) != 1 || !slices.Contains(style.Origins, origin[0]) || origin[0] == "*" || origin[0] == "null" {
		return
	}
	h["Access-Control-Allow-Origin"] = []string{origin[0]}
	h["Access-Control-Allow-Credentials"] = []string{"true"}
	exposed := "Retry-After, RateLimit, RateLimit-Policy, Headgate-Id"
	if style.XRateLimit {
		exposed += ", X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
	}
	h["Access-Control-Expose-Headers"] = []string{exposed}
}

func newPage(request http.Header, v *Verdict, status int) Page {
	page := Page{Status: status, Lang: Language(request), Code: v.Code, ID: v.ID}
	page.Title, page.Message = Message(v.Code, v.Kind, page.Lang)
	if v.Detail != "" && page.Lang == English {
		page.Message = v.Detail
	}
	return page
}

// denial is what a body is made of.
type denial struct {
	v     *Verdict
	page  Page
	again bool // whether RetryAfter says anything
}

// problem is the body of RFC 9457, with violated-policies as the ratelimit-headers draft names it.
type problem struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail,omitempty"`
	Code       string   `json:"code"`
	ID         string   `json:"id"`
	RetryAfter *int64   `json:"retry_after,omitempty"`
	Violated   []string `json:"violated-policies,omitempty"`
}

type envelope struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	Data      any    `json:"data"`
	Timestamp int64  `json:"timestamp"`
	ID        string `json:"id"`
}

func (p Renderer) body(request, h http.Header, d *denial) (contentType string, body []byte) {
	switch d.v.Response.Style {
	case StyleEnvelope:
		return asJSON("application/json", envelope{
			Code: d.page.Status, Message: d.page.Message, Timestamp: p.now().UnixMilli(), ID: d.page.ID,
		})
	case StyleTemplate:
		if t := d.v.Response.Template; t != nil {
			var b bounded
			if err := t.Execute(&b, d.page); err == nil && !b.full {
				return "text/html; charset=utf-8", b.page.Bytes()
			}
		}
	default:
		if page, ok := d.friendly(request, h); ok {
			return "text/html; charset=utf-8", page
		}
	}
	return asJSON("application/problem+json", d.problem())
}

// friendly is the page for a browser, where the code has one.
func (d *denial) friendly(request, h http.Header) ([]byte, bool) {
	if !HasFriendlyPage(d.page.Code) {
		return nil, false
	}
	h["Vary"] = append(h["Vary"], "Accept")
	own := d.page
	if own.Message = d.v.Detail; own.Lang != English {
		own.Message = ""
	}
	page, ok := FriendlyPage(request, &own)
	if ok {
		h["Content-Security-Policy"] = []string{FriendlyPolicy}
	}
	return page, ok
}

func (d *denial) problem() problem {
	pr := problem{
		Type: problemType(d.v.Kind), Title: d.page.Title, Status: d.page.Status, Detail: d.page.Message,
		Code: d.page.Code, ID: d.page.ID, Violated: d.v.violated(),
	}
	if d.again {
		pr.RetryAfter = &d.page.RetryAfter
	}
	return pr
}

func asJSON(contentType string, doc any) (string, []byte) {
	body, err := json.Marshal(doc)
	if err != nil { // cannot be: strings and integers only
		return "text/plain; charset=utf-8", []byte("error\n")
	}
	return contentType, append(body, '\n')
}

// bounded keeps what a template writes, up to maxPage bytes.
type bounded struct {
	page bytes.Buffer
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.full || b.page.Len()+len(p) > maxPage {
		b.full = true
		return 0, errLongPage
	}
	return b.page.Write(p)
}

// violated names the limits that denied.
func (v *Verdict) violated() []string {
	if v.Kind != Limited && v.Kind != LockedOut {
		return nil
	}
	var names []string
	for i := range v.Limits {
		if !v.Limits[i].Outcome.Allowed {
			names = append(names, v.Limits[i].Name)
		}
	}
	return names
}
