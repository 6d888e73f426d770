package httpverdict

import (
	"net/http"
	"strings"
)

// Shared reports whether shared caches may keep the final answer to a request and give it to others, by what its header says (RFC 9111,
// section 3; RFC 9213 for caches of a named kind). They keep all header fields of an answer, and what the limits of one client are must not be told to another; the
// draft of the RateLimit fields has clients ignore those of an answer out of a cache. What caches may only guess, of an answer that says nothing, does not
// count. Where the header is ambiguous, it is shared.
func Shared(r *http.Request, status int, answer http.Header) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || status < 200 {
		return false
	}
	_, personal := r.Header["Authorization"]
	for _, name := range [...]string{"Cdn-Cache-Control", "Surrogate-Control"} {
		if lines, ok := answer[name]; ok && cacheControlOf(lines).shared(personal, false) {
			return true
		}
	}
	_, expires := answer["Expires"]
	return cacheControlOf(answer["Cache-Control"]).shared(personal, expires)
}

// Unset takes away what SetHeaders has put into an answer, but for Retry-After.
func Unset(h http.Header, v *Verdict) {
	delete(h, HeaderID)
	if len(v.Limits) == 0 {
		return
	}
	delete(h, HeaderRateLimit)
	delete(h, HeaderRateLimitPolicy)
	if v.Response.XRateLimit {
		for _, name := range [...]string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			delete(h, name)
		}
	}
}

// cacheControl is what matters here of a Cache-Control.
type cacheControl struct {
	// kept: no shared cache keeps it, or none gives it away without asking first, so that each asker gets a header of its own.
	kept bool
	// open: they may, whoever has asked. fresh: they may for a time. revalidated: that time holds where the request names somebody too.
	open, fresh, revalidated bool
}

func (c cacheControl) shared(personal, expires bool) bool {
	switch {
	case c.kept:
		return false
	case c.open:
		return true
	}
	return (c.fresh || expires) && (!personal || c.revalidated)
}

func cacheControlOf(lines []string) (c cacheControl) {
	for _, line := range lines {
		for line != "" {
			var name, value string
			name, value, line = directive(line)
			switch strings.ToLower(name) {
			case "no-store":
				c.kept = true
			case "private", "no-cache": // with the names of fields, all others are shared
				c.kept = c.kept || value == ""
			case "public", "s-maxage":
				c.open = true
			case "max-age":
				c.fresh = c.fresh || strings.Trim(value, "0") != ""
			case "stale-while-revalidate", "stale-if-error":
				c.fresh = true
			case "must-revalidate", "proxy-revalidate":
				c.revalidated = true
			}
		}
	}
	return c
}

// directive cuts the first directive off a line of Cache-Control. A value can be quoted, with commas in it.
func directive(line string) (name, value, rest string) {
	quoted, end := false, len(line)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
			continue
		case c == ',' && !quoted:
			end = i
		}
		if end < len(line) {
			break
		}
	}
	if end < len(line) {
		rest = line[end+1:]
	}
	name, value, _ = strings.Cut(line[:end], "=")
	return strings.TrimSpace(name), strings.Trim(strings.TrimSpace(value), `"`), rest
}
