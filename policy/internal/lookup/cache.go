package lookup

import (
	"context"
	"strings"
	"time"
)

// Get returns the value for a key: from the cache, or by find. ok is false if there is none or it could not be found out;
// failed tells the latter. Concurrent calls for one key share one look-up. A caller leaves when its ctx ends or when the
// look-up's time is up, whatever the look-up does; the look-up goes on without the caller, and what it finds is kept.
func (c *Cache) Get(ctx context.Context, key string, find Func) (value string, ok, failed bool) {
	a, f := c.begin(ctx, key, find)
	if f != nil {
		a = f.await(ctx, a)
	}
	return a.Value, a.OK, a.Failed
}

// Cached answers as Get does where that needs no look-up. If hit is false, call Get. It lets a caller make the Func, which
// allocates, only when it is needed.
func (c *Cache) Cached(key string) (a Answer, hit bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(key)
	if !e.answers(now) || e.due(now) && c.mayBegin(key) {
		return Answer{}, false
	}
	return c.hit(e, now), true
}

// Kept answers by what is kept alone: it has nothing looked up, and waits for nothing.
func (c *Cache) Kept(key string) Answer {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(key)
	if !e.answers(now) {
		return Answer{}
	}
	return c.hit(e, now)
}

// begin returns the answer, and the look-up to wait for, if there is one; then the answer is for the case that it fails.
func (c *Cache) begin(ctx context.Context, key string, find Func) (Answer, *flight) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(key)
	ready := e.answers(now)
	f := c.flights[key]
	if f == nil && e.due(now) && c.mayBegin(key) {
		f = c.launch(ctx, key, find)
	}
	switch {
	case ready:
		return c.hit(e, now), nil
	case f == nil:
		c.stats.Shed++
	default:
		c.stats.Misses++
	}
	return e.answer(now), f
}

func (c *Cache) now() time.Duration { return c.cfg.Now().Sub(c.start) }

// entry returns what is kept of a key, nil for nothing. c.mu is held.
func (c *Cache) entry(key string) *entry {
	if e, ok := c.known.Get(key); ok {
		return e
	}
	e, _ := c.unknown.Get(key)
	return e
}

// hit returns an entry's answer and counts it. c.mu is held.
func (c *Cache) hit(e *entry, now time.Duration) Answer {
	c.stats.Hits++
	if e.stale(now) {
		c.stats.Stale++
	}
	return e.answer(now)
}

// mayBegin tells whether a look-up of a key could begin now. c.mu is held.
func (c *Cache) mayBegin(key string) bool {
	return len(key) <= MaxKey && len(c.flights) < c.cfg.InFlight && c.flights[key] == nil
}

// launch begins a look-up. c.mu is held.
func (c *Cache) launch(ctx context.Context, key string, find Func) *flight {
	// The key may lie in the memory of a request, which is not to be kept for its sake.
	f := &flight{key: strings.Clone(key), done: make(chan struct{})}
	f.ctx, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
	c.flights[f.key] = f
	c.stats.Lookups++
	go c.fly(f, find)
	return f
}

// land takes up what a look-up has found.
func (c *Cache) land(f *flight, a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, f.key)
	if a.Failed {
		c.stats.Failures++
	}
	if c.cfg.Keep > 0 {
		c.keep(f.key, a)
	}
	f.answer = a
	close(f.done)
}

// keep remembers an answer. c.mu is held.
func (c *Cache) keep(key string, a Answer) {
	now := c.now()
	if a.Failed {
		e := c.entry(key)
		if e == nil {
			e = &entry{}
			c.unknown.Add(key, e)
		}
		e.failed, e.retryAt = true, now+min(c.cfg.Keep, retryAfter)
		return
	}
	to, from := c.known, c.unknown
	if !a.OK {
		to, from = from, to
	}
	from.Remove(key)
	to.Add(key, newEntry(a, now, c.cfg.Keep))
}
