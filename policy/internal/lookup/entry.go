package lookup

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Answer is what a Cache has to say of a key.
type Answer struct {
	// Value is "" unless OK.
	Value string
	// OK tells that the key has a value.
	OK bool
	// Failed tells that it could not be found out. With neither, the key has no value.
	Failed bool
}

// entry is what is kept of one key. Times count from when the cache was made, so that the steps of a wall clock do not
// matter.
type entry struct {
	value string
	found bool

	refreshAt  time.Duration // when the next look-up may begin
	freshUntil time.Duration // until when the value is as good as a new one
	staleUntil time.Duration // until when it is better than none

	failed  bool          // the last look-up failed
	retryAt time.Duration // and there shall be no other before this
}

// newEntry returns the entry of an answer that was found out at a time.
func newEntry(a Answer, now, keep time.Duration) *entry {
	return &entry{
		value: a.Value, found: a.OK,
		refreshAt: now + keep - keep/5, freshUntil: now + keep, staleUntil: now + staleTimes*keep,
	}
}

// answers tells whether an answer can be given without waiting.
func (e *entry) answers(now time.Duration) bool {
	return e != nil && (now < e.freshUntil || now < e.retryAt || e.failed && now < e.staleUntil)
}

// due tells whether it is time for a look-up.
func (e *entry) due(now time.Duration) bool {
	return e == nil || now >= e.refreshAt && now >= e.retryAt
}

// stale tells whether what is given at this time is past its time.
func (e *entry) stale(now time.Duration) bool { return now >= e.freshUntil && now < e.staleUntil }

// answer returns the best there is.
func (e *entry) answer(now time.Duration) Answer {
	if e == nil || now >= e.staleUntil {
		return Answer{Failed: true}
	}
	return Answer{Value: e.value, OK: e.found}
}

// fit tells whether a value may be one of a dimension.
func fit(value string) bool {
	return len(value) <= MaxValue && utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}
