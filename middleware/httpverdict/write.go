package httpverdict

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Header field names that answers carry beside Retry-After.
const (
	HeaderID              = "Headgate-Id"
	HeaderRateLimit       = "Ratelimit" // as net/http spells RateLimit
	HeaderRateLimitPolicy = "Ratelimit-Policy"
	// HeaderOver is on requests to the service; see Verdict.Over.
	HeaderOver = "Headgate-Over"
)

// Renderer turns verdicts into answers. The zero value is ready: it uses the clock and the random source of the runtime.
// It is safe for concurrent use if its functions are.
type Renderer struct {
	// Now is the clock behind X-RateLimit-Reset and the envelope's timestamp; nil stands for time.Now.
	Now func() time.Time
	// Random returns a number in [0, 1) for the jitter of Retry-After; nil stands for math/rand/v2.
	Random func() float64
}

// Write answers a request that the verdict does not let pass, with the zero [Renderer].
func Write(w http.ResponseWriter, r *http.Request, v *Verdict) { Renderer{}.Write(w, r, v) }

// SetHeaders adds a verdict's headers to an answer, with the zero [Renderer].
func SetHeaders(h http.Header, v *Verdict) { Renderer{}.SetHeaders(h, v) }

// SetHeaders adds a verdict's headers to an answer: those of the limits also where the request passed.
func (p Renderer) SetHeaders(h http.Header, v *Verdict) {
	retry, again := p.retry(v)
	p.setHeaders(h, v, retry, again)
}

// retry draws the jitter once per answer, so that Retry-After, t and the body agree.
func (p Renderer) retry(v *Verdict) (seconds int64, again bool) {
	switch v.Kind {
	case Limited, LockedOut, Unavailable, Overloaded:
	default:
		return 0, false
	}
	var random float64
	if v.Response.RetryJitter > 0 {
		random = p.random()
	}
	return RetrySeconds(v.RetryAfter, v.Response.RetryJitter, random)
}

func (p Renderer) setHeaders(h http.Header, v *Verdict, retry int64, again bool) {
	if v.ID != "" {
		h[HeaderID] = []string{v.ID}
	}
	if again {
		h["Retry-After"] = []string{strconv.FormatInt(retry, 10)}
	}
	if len(v.Limits) == 0 {
		return
	}
	if v.Response.IETF || !v.Response.XRateLimit {
		setIETF(h, v, retry, again)
	}
	if v.Response.XRateLimit {
		p.setXRateLimit(h, v, retry, again)
	}
}

// setIETF names every limit in RateLimit-Policy, and in RateLimit the one that decided.
func setIETF(h http.Header, v *Verdict, retry int64, again bool) {
	if len(v.Limits) == 1 {
		h[HeaderRateLimitPolicy] = []string{v.Limits[0].policyItem()}
	} else {
		var b strings.Builder
		for i := range v.Limits {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Limits[i].policyItem())
		}
		h[HeaderRateLimitPolicy] = []string{b.String()}
	}
	l := v.binding()
	if l == nil || !l.Outcome.HasRemaining {
		return
	}
	b := appendName(make([]byte, 0, 64), l.Name)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, l.Outcome.Remaining, 10)
	if t, ok := resetSeconds(l, retry, again); ok {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, t, 10)
	}
	h[HeaderRateLimit] = []string{string(b)}
}

func (p Renderer) setXRateLimit(h http.Header, v *Verdict, retry int64, again bool) {
	l := v.binding()
	if l == nil {
		return
	}
	h.Set("X-RateLimit-Limit", strconv.FormatInt(QuotaOf(l.Limit).Units, 10))
	if !l.Outcome.HasRemaining {
		return
	}
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(l.Outcome.Remaining, 10))
	if t, ok := resetSeconds(l, retry, again); ok {
		h.Set("X-RateLimit-Reset", strconv.FormatInt(p.now().Unix()+t, 10))
	}
}

// resetSeconds returns t: of a denial the time that Retry-After names, of an allowed request the time until the key is as
// if it had never been used. A concurrency limit depends on others, so it has none.
func resetSeconds(l *LimitReport, retry int64, again bool) (int64, bool) {
	switch {
	case l.Limit != nil && l.Limit.Algorithm() == headgate.AlgConcurrency:
		return 0, false
	case !l.Outcome.Allowed:
		return retry, again
	case l.Outcome.ResetAfter <= 0:
		return 0, true
	}
	return ceilSeconds(l.Outcome.ResetAfter), true
}

func (l *LimitReport) policyItem() string {
	if l.Policy != "" {
		return l.Policy
	}
	return PolicyItem(l.Name, l.Limit)
}

func (v *Verdict) binding() *LimitReport {
	if v.Binding < 0 || v.Binding >= len(v.Limits) {
		return nil
	}
	return &v.Limits[v.Binding]
}

func (p Renderer) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

func (p Renderer) random() float64 {
	if p.Random == nil {
		return rand.Float64()
	}
	return p.Random()
}
