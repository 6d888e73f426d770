// Package stale keeps the last good answers to GET requests, so that a front can give one in place of a denial, and lets one
// of several identical requests go to the service while the others wait for its answer.
//
//   - What is kept: answers 200 and 203 without Set-Cookie and without Cache-Control: no-store, whole ones only, each up to
//     MaxAnswer bytes. Those for everybody (an empty identity) must not be private either, nor belong to a request with an
//     Authorization, unless they say Cache-Control: public.
//   - Who gets one: the same method (HEAD gets that of GET), scheme, host, path and query, the same identity, and the same
//     values of what Vary names. An answer that is not for everybody is given to the same Authorization and Cookie only, for
//     an identity may be an address that many share; one for everybody is given to requests with an Authorization if its own
//     had one, and else to those without. Headers that say where a request came from, such as X-Forwarded-Host, count as parts
//     of its address. A request whose header names another method has no part in it.
//   - How old: the Age that it came with and the time since its request was sent, together at most the verdict's MaxAge.
//
// It is no HTTP cache: an allowed request goes to the service, however young the kept answer is, unless an identical one is
// there already. Then it gets the kept answer at once, and where there is none it waits. What a request says about caches does
// not matter, and of what an answer says only the above: who writes the rule takes the answers for what it says they are.
//
// An answer that is given again has Age, and a Cache-Status (RFC 9211) with "hit; detail=denied" in place of a denial, "hit;
// detail=failed" where the service fails, "hit; detail=refreshing" while it is refreshed, and "fwd=miss; collapsed" for those that waited. Its hop-by-hop and rate limit headers
// are gone. An If-None-Match or If-Modified-Since that it satisfies is answered 304, a Range is ignored.
package stale

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Config.
const (
	DefaultMaxBytes   = 64 << 20
	DefaultMaxAnswer  = 1 << 20
	DefaultMaxWaiting = 16384
	DefaultWait       = 5 * time.Second
)

// Config bounds a Cache. The zero value is ready to use.
type Config struct {
	// MaxBytes is how much memory the kept answers may take together, those least recently used going first; 0 stands for
	// DefaultMaxBytes. Answers that are on their way may take a quarter of it more: those that are being taken down until their
	// client has them, and those that have lost their place while clients still read them. What finds no room is not kept.
	MaxBytes int64
	// MaxAnswer is how many bytes the body of a kept answer may have; 0 stands for DefaultMaxAnswer. It is at most MaxBytes/4.
	// Its header may have 64 kB.
	MaxAnswer int64
	// MaxWaiting is how many requests may wait for the answers of others at a time, all together; 0 stands for
	// DefaultMaxWaiting. Further ones go to the service.
	MaxWaiting int
	// Wait is how long a request waits for the answers of others before it goes to the service; 0 stands for DefaultWait.
	Wait time.Duration
	// Now is the clock behind Age; nil stands for time.Now.
	Now func() time.Time
}

// Cache keeps answers. It is safe for concurrent use.
type Cache struct {
	cfg    Config
	taking atomic.Int64 // bytes of bodies that are on their way, and not among the kept

	mu      sync.Mutex
	kept    map[key][]*list.Element // of *variant, the newest last
	recent  *list.List              // of *variant, the most recently used first
	bytes   int64
	flights map[flightKey]*flight
	waiting int
	unkept  map[key]strikes
}

// Bounds that nobody needs to change.
const (
	maxVariants = 16   // of one address
	maxUnkept   = 4096 // addresses that are known not to be worth waiting for
)

// New returns an empty Cache. It refuses negative bounds, and answers that would take more than a quarter of the memory.
func New(cfg Config) (*Cache, error) {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.MaxAnswer == 0 {
		cfg.MaxAnswer = min(DefaultMaxAnswer, cfg.MaxBytes/4)
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = DefaultMaxWaiting
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"MaxBytes", cfg.MaxBytes}, {"MaxAnswer", cfg.MaxAnswer}, {"MaxWaiting", int64(cfg.MaxWaiting)}, {"Wait", int64(cfg.Wait)}} {
		if f.value < 0 {
			return nil, fmt.Errorf("stale: Config.%s is negative; use 0 for the default", f.name)
		}
	}
	if cfg.MaxAnswer > cfg.MaxBytes/4 {
		return nil, fmt.Errorf("stale: Config.MaxAnswer is %d bytes, more than a quarter of MaxBytes, %d", cfg.MaxAnswer, cfg.MaxBytes)
	}
	return &Cache{
		cfg: cfg, kept: make(map[key][]*list.Element), recent: list.New(),
		flights: make(map[flightKey]*flight), unkept: make(map[key]strikes),
	}, nil
}

// Stats is what a Cache holds at the moment.
type Stats struct {
	// Answers is the number of kept answers, Bytes the memory that they take.
	Answers int
	Bytes   int64
	// Leading is the number of requests at the service whose answers are awaited or may be, Waiting that of those that wait.
	Leading, Waiting int
}

// Stats returns what the cache holds at the moment.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Answers: c.recent.Len(), Bytes: c.bytes, Leading: len(c.flights), Waiting: c.waiting}
}

// Kept returns the answer to give in place of a denial, nil if there is none.
func (c *Cache) Kept(q *Query) *Answer { return c.keptFor(q, byDenial) }

// Failed returns the answer to give to an allowed request that the service fails, nil if there is none.
func (c *Cache) Failed(q *Query) *Answer { return c.keptFor(q, byFailure) }

func (c *Cache) keptFor(q *Query, how string) *Answer {
	if !q.answerable() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(q, q.key(), how)
}

// find returns the newest answer that a request may have. The caller holds mu.
func (c *Cache) find(q *Query, k key, how string) *Answer {
	elements := c.kept[k]
	for i := len(elements) - 1; i >= 0; i-- {
		v := elements[i].Value.(*variant)
		if age := v.age(c.cfg.Now()); age <= q.Stale.MaxAge && v.matches(q.Header) {
			c.recent.MoveToFront(elements[i])
			return c.give(v, age, how)
		}
	}
	return nil
}

// give returns an answer for one client. The caller holds mu.
func (c *Cache) give(v *variant, age time.Duration, how string) *Answer {
	v.given++
	return &Answer{c: c, variant: v, age: age, how: how}
}

// taken notes that a client has an answer, or will not get it.
func (c *Cache) taken(v *variant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.given--; v.given == 0 && v.dropped {
		v.dropped = false
		c.taking.Add(-v.size)
	}
}

// store keeps an answer in place of the one that its request would have got. The caller holds mu.
func (c *Cache) store(v *variant) {
	if v.size > c.cfg.MaxBytes/2 {
		return // its header, since the body is bounded: not worth all others
	}
	elements := c.kept[v.key]
	for _, e := range elements {
		if e.Value.(*variant).sameRequest(v) {
			c.drop(e)
			break
		}
	}
	if elements = c.kept[v.key]; len(elements) >= maxVariants {
		c.drop(elements[0])
	}
	c.bytes += v.size
	c.kept[v.key] = append(c.kept[v.key], c.recent.PushFront(v))
	for c.bytes > c.cfg.MaxBytes {
		c.drop(c.recent.Back())
	}
}

// drop forgets an answer. The caller holds mu.
func (c *Cache) drop(e *list.Element) {
	v := c.recent.Remove(e).(*variant)
	c.bytes -= v.size
	if v.given > 0 {
		v.dropped = true
		c.taking.Add(v.size)
	}
	elements := c.kept[v.key]
	if len(elements) == 1 {
		delete(c.kept, v.key)
		return
	}
	left := make([]*list.Element, 0, len(elements)-1)
	for _, other := range elements {
		if other != e {
			left = append(left, other)
		}
	}
	c.kept[v.key] = left
}
