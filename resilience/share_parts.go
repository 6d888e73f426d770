package resilience

import (
	"sync/atomic"
	"time"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

// partsKept is how many divided limits are kept: far more than a policy has in force, and a power of two.
const partsKept = 1024

// parts keeps divided limits, so that a take need not divide. Limits that fall on the same place replace each other; those of
// another number of instances are replaced when they are met.
type parts struct {
	kept [partsKept]atomic.Pointer[divided]
}

type divided struct {
	whole, part headgate.Limit
	n           int
}

// of returns Divide(l, n).
func (p *parts) of(l headgate.Limit, n int) headgate.Limit {
	if n <= 1 {
		return l
	}
	return p.find(l, n).part
}

// find returns the division of a limit, made if need be.
func (p *parts) find(l headgate.Limit, n int) *divided {
	if l == nil {
		return &divided{whole: l, part: l, n: n}
	}
	at := placeOf(l)
	first := p.kept[at].Load()
	if first.is(l, n) {
		return first
	}
	if second := p.kept[at^1].Load(); second.is(l, n) {
		return second
	}
	if first != nil && first.n == n {
		at ^= 1
	}
	d := &divided{whole: l, part: Divide(l, n), n: n}
	p.kept[at].Store(d)
	return d
}

func (d *divided) is(l headgate.Limit, n int) bool {
	return d != nil && d.n == n && (sameWords(d.whole, l) || d.whole == l)
}

// sameWords tells whether two limits are the same value in the same place, as they are where a program has made a limit once: for
// that their numbers need not be compared.
func sameWords(a, b headgate.Limit) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// placeOf spreads limits by their numbers.
func placeOf(l headgate.Limit) uint64 {
	var count, size int64
	var period time.Duration
	switch l := l.(type) {
	case headgate.TokenBucket:
		count, _ = l.Rate().Count()
		size, period = l.Burst(), l.Rate().Period()
	case headgate.FixedWindow:
		unit, zone := l.Calendar()
		count, size, period = l.Count(), int64(unit)<<8+int64(len(zone)), l.Period()
	case headgate.SlidingLog:
		count, period = l.Count(), l.Period()
	case headgate.SlidingWindow:
		count, size, period = l.Count(), l.Cells(), l.Period()
	case headgate.LeakyBucket:
		count, _ = l.Rate().Count()
		size, _ = l.Capacity()
		period = l.Rate().Period()
	case headgate.Concurrency:
		count, period = l.Count(), l.TTL()
	}
	// Multiplied by odd numbers without a pattern: what differs in any of the three differs in the upper bits.
	h := (uint64(count)*0x9E3779B97F4A7C15 ^ uint64(size)) * 0xD6E8FEB86659FD93
	h = (h ^ h>>32 ^ uint64(period)) * 0xA0761D6478BD642F
	return h >> (64 - 10)
}
