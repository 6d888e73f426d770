package leasestore

import (
	"sync/atomic"
	"time"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

// DenyConfig says how much a deny cache keeps and for how long. The zero DenyConfig works.
type DenyConfig struct {
	// MaxKeys bounds the denials that are kept at a time; over it new ones replace old ones. Default (0 or less): 100,000,
	// which take 1.6 MB, and about 250 bytes and the text of the key for each denial that is there.
	MaxKeys int
	// MaxAge is the longest time for which a denial is believed without asking again, however far off its retry-after is, and
	// the time for which one without an end (headgate.RetryNever) is. It bounds how long quota that came back elsewhere stays
	// unseen, and costs one call in that time for each key under attack. Default (0 or less): 1 minute.
	MaxAge time.Duration
	// Now is the clock. Only distances between its times are used, so it should not be one that somebody sets. Default nil: the
	// monotonic clock.
	Now func() time.Time
}

func (c DenyConfig) withDefaults() DenyConfig {
	if c.MaxKeys <= 0 {
		c.MaxKeys = 100_000
	}
	if c.MaxAge <= 0 {
		c.MaxAge = time.Minute
	}
	return c
}

// DenyStats are the figures of a deny cache.
type DenyStats struct {
	// Keys is how many denials are kept now, those past their time included until they are cleared away.
	Keys int
	// Hits counts the takes that were denied without a call, Misses those that were passed on.
	Hits, Misses uint64
	// Evictions counts the denials that had to go for others before their time was over.
	Evictions uint64
}

// denyStripes is how many counters there are of each kind, so that callers seldom wait for each other's cache line.
const denyStripes = 64

type denyCounts struct {
	hits, misses atomic.Uint64
	_            [48]byte
}

// countsOf returns the counters of a caller. Its decision stands for it: no two use one at a time.
func (c *DenyCache) countsOf(d *headgate.Decision) *denyCounts {
	const odd = 0x9e3779b97f4a7c15
	return &c.counts[uint64(uintptr(unsafe.Pointer(d)))*odd>>58]
}

// denyClock tells the time since the cache was made.
type denyClock struct {
	born time.Time
	own  func() time.Time // nil: the monotonic clock
}

func newDenyClock(own func() time.Time) denyClock {
	if own != nil {
		return denyClock{born: own(), own: own}
	}
	return denyClock{born: time.Now()}
}

func (c *denyClock) now() time.Duration {
	if c.own != nil {
		return c.own().Sub(c.born)
	}
	return time.Since(c.born)
}
