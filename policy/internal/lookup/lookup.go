// Package lookup is the cache in front of look-ups of dimensions: a value that some service knows, such as the tier of a
// user. However many requests ask, a service is asked once for a key at a time, by a bounded number of look-ups in all, and
// nobody waits longer than the time-out.
//
//   - A value, and that there is none, is kept for Config.Keep. In the last fifth of that time the first to ask starts a new
//     look-up and does not wait for it, so that what is asked for all the time is never waited for.
//   - After a failure the key is not looked up again for a second, or Keep if that is shorter. What was known before is
//     given for up to 10·Keep from when it was found out, at once and with new look-ups behind the scenes: the tier that a
//     user had a minute ago is a better guess than none. After that the answer is that it could not be found out.
//   - Keys that have a value and keys that have none are bounded apart, so that a flood of unknown keys pushes out only
//     its like.
//   - Where Config.InFlight look-ups are under way, one more fails at once, and nothing is remembered of that.
package lookup

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Bounds of what is looked up.
const (
	// MaxKey is the longest key, in bytes. A longer one fails without a look-up.
	MaxKey = 1024
	// MaxValue is the longest value, in bytes. A look-up that finds a longer one, or one that is no UTF-8 text or has
	// control characters, has failed.
	MaxValue = 256
)

// Func finds a value. found is false if there is none; an empty value is none as well. It must honour ctx, whose deadline
// is the look-up's and not that of a request: it may run when the request that began it is over, so it must not use what
// belongs to the request.
type Func func(ctx context.Context) (value string, found bool, err error)

// Config says what a Cache keeps. The zero Config is ready for use and keeps nothing.
type Config struct {
	// Keep is how long a value, or that there is none, is kept; 0 keeps nothing. Above a year it counts as a year.
	Keep time.Duration
	// Timeout is the deadline of one look-up. Default 100 ms.
	Timeout time.Duration
	// Entries is how many keys with a value are kept at most, and how many without one. Default 10,000.
	Entries int
	// InFlight is how many look-ups are under way at most. Default 64.
	InFlight int
	// Now is the clock by which things are kept. Default time.Now.
	Now func() time.Time
	// OnFailure, if set, is told of each look-up that failed, in the look-up's own goroutine. The error is never nil.
	OnFailure func(err error)
}

const (
	defaultTimeout  = 100 * time.Millisecond
	defaultEntries  = 10_000
	defaultInFlight = 64

	maxKeep    = 365 * 24 * time.Hour
	staleTimes = 10
	retryAfter = time.Second
)

func (c Config) withDefaults() Config {
	c.Keep = min(max(c.Keep, 0), maxKeep)
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Entries <= 0 {
		c.Entries = defaultEntries
	}
	c.InFlight = cmp.Or(max(c.InFlight, 0), defaultInFlight)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Stats are the figures of a Cache since it was made.
type Stats struct {
	// Hits are calls that were answered without waiting: by what is kept, or by a failure that is remembered.
	Hits int64
	// Stale are those of them that were given a value past its time.
	Stale int64
	// Misses are calls that waited for a look-up.
	Misses int64
	// Shed are calls that needed a look-up when too many were under way, or with a key that is too long.
	Shed int64
	// Lookups are look-ups that began; Failures are those of them that ended without an answer.
	Lookups, Failures int64
	// Entries is how many keys are kept now, with a value or without one; InFlight is how many look-ups are under way now.
	Entries, InFlight int
}

// Cache keeps what look-ups find. It is safe for concurrent use. It starts no goroutine but for each look-up, which ends
// when its Func returns, so there is nothing to close.
type Cache struct {
	cfg   Config
	start time.Time

	mu      sync.Mutex
	known   *simplelru.LRU[string, *entry] // keys with a value; guarded by mu
	unknown *simplelru.LRU[string, *entry] // keys without one, or of which nothing is known but a failure; guarded by mu
	flights map[string]*flight             // look-ups that are under way; guarded by mu
	stats   Stats                          // guarded by mu
}

// New returns an empty cache.
func New(cfg Config) *Cache {
	c := &Cache{cfg: cfg.withDefaults(), flights: map[string]*flight{}}
	c.start = c.cfg.Now()
	// The only error is a size below 1.
	c.known, _ = simplelru.NewLRU[string, *entry](c.cfg.Entries, nil)
	c.unknown, _ = simplelru.NewLRU[string, *entry](c.cfg.Entries, nil)
	return c
}

// Stats returns the figures.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries, s.InFlight = c.known.Len()+c.unknown.Len(), len(c.flights)
	return s
}
