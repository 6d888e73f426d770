package httpverdict

import (
	"math"
	"math/bits"
	"strconv"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Quota is a limit in the words of the RateLimit header fields.
type Quota struct {
	// Units is q, the most that the key can have at once.
	Units int64
	// Window is w, in whole seconds rounded up, at least 1; 0 if there is none to name.
	Window int64
	// Concurrent tells that the unit is requests in flight.
	Concurrent bool
}

// QuotaOf returns what q and w say about a limit:
//
//   - token_bucket: the burst, and the time in which it refills
//   - fixed_window, sliding_log, sliding_window: the count and the period; a calendar month has no w
//   - leaky_bucket: the capacity, and the time in which it drains; without a capacity, max_wait and what drains within it, plus one
//   - concurrency: the count, in the unit concurrent-requests, without w
func QuotaOf(l headgate.Limit) Quota {
	switch l := l.(type) {
	case headgate.TokenBucket:
		if num, _ := l.Rate().Count(); num == 0 {
			return Quota{}
		}
		whole, rem, den := l.Pace()
		return Quota{Units: l.Burst(), Window: spanSeconds(l.Burst(), whole, rem, den)}
	case headgate.FixedWindow:
		return Quota{Units: l.Count(), Window: windowSeconds(l)}
	case headgate.SlidingLog:
		return Quota{Units: l.Count(), Window: ceilSeconds(l.Period())}
	case headgate.SlidingWindow:
		return Quota{Units: l.Count(), Window: ceilSeconds(l.Period())}
	case headgate.LeakyBucket:
		return leakyQuota(l)
	case headgate.Concurrency:
		return Quota{Units: l.Count(), Concurrent: true}
	}
	return Quota{}
}

func leakyQuota(l headgate.LeakyBucket) Quota {
	whole, rem, den := l.Pace()
	if den == 0 {
		return Quota{}
	}
	if capacity, ok := l.Capacity(); ok {
		return Quota{Units: capacity, Window: spanSeconds(capacity, whole, rem, den)}
	}
	wait, _ := l.MaxWait()
	units := float64(wait/time.Microsecond)/(float64(whole)+float64(rem)/float64(den)) + 1
	return Quota{Units: int64(math.Min(units, headgate.MaxCount)), Window: ceilSeconds(wait)}
}

func windowSeconds(l headgate.FixedWindow) int64 {
	switch unit, _ := l.Calendar(); unit {
	case headgate.Hour:
		return 3600
	case headgate.Day:
		return 24 * 3600
	case headgate.Week:
		return 7 * 24 * 3600
	case headgate.Month:
		return 0
	}
	return ceilSeconds(l.Period())
}

// spanSeconds returns units·(whole + rem/den) microseconds in seconds. The constructors of limits bound it.
func spanSeconds(units, whole, rem, den int64) int64 {
	if den == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(units), uint64(rem))
	carry, rest := bits.Div64(hi, lo, uint64(den))
	micros := units*whole + int64(carry)
	if rest > 0 {
		micros++
	}
	return ceilDiv(micros, int64(time.Second/time.Microsecond))
}

// ceilSeconds rounds up to whole seconds, at least 1.
func ceilSeconds(d time.Duration) int64 { return ceilDiv(int64(d), int64(time.Second)) }

func ceilDiv(n, by int64) int64 {
	if n <= by {
		return 1
	}
	return (n-1)/by + 1
}

// PolicyItem returns the item of RateLimit-Policy for a limit, such as "login";q=5;w=300.
func PolicyItem(name string, l headgate.Limit) string {
	q := QuotaOf(l)
	b := appendName(nil, name)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, q.Units, 10)
	if q.Concurrent {
		b = append(b, `;qu="concurrent-requests"`...)
	}
	if q.Window > 0 {
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, q.Window, 10)
	}
	return string(b)
}

// appendName writes a structured-field string; what such a string cannot hold becomes "?".
func appendName(b []byte, name string) []byte {
	b = append(b, '"')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// RetrySeconds returns the value of Retry-After: whole seconds, rounded up, at least 1, lengthened by up to the fraction
// jitter as random, in [0, 1), says. ok is false where no time helps. An unknown wait counts as the shortest.
func RetrySeconds(retry headgate.Retry, jitter, random float64) (seconds int64, ok bool) {
	switch retry.State {
	case headgate.RetryNever:
		return 0, false
	case headgate.RetryUnknown:
		retry.After = 0
	}
	seconds = ceilSeconds(retry.After)
	if jitter > 0 && random > 0 {
		longer := time.Duration(float64(retry.After) * (1 + min(jitter, 1)*min(random, 1)))
		seconds = max(seconds, ceilSeconds(longer))
	}
	return seconds, true
}
