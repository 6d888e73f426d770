package stale

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"time"
)

// flight is one request at the service for whose answer others wait. The cache's mu guards it until done is closed.
type flight struct {
	key       flightKey
	done      chan struct{}
	answer    *variant // nil if there is none that others may have
	headed    bool     // whether an answer that others may have has begun
	landed    bool
	followers int
}

// strikes counts the answers in a row that somebody has waited for in vain.
type strikes struct {
	n     int
	until time.Time
}

const (
	enough   = 2               // strikes after which nobody waits any more
	remember = 5 * time.Second // for that long
)

// flightKey is what must be equal for one request to wait for another.
type flightKey struct {
	key       key
	condition string
	vary      string // the values of what the answer has depended on lately
}

// Join lets an allowed request go to the service, or gives it the answer of an identical one. Of its two results
//
//   - the Answer is to be given, if there is one;
//   - else the request goes to the service, and its answer is taken down if there is a Keeping, whose End must be called.
//
// While an identical request is at the service, a request gets the answer that is kept, and waits if there is none. When the
// other has failed it takes its place, or waits for the one that does. It does not wait any more, and goes to the service, when it
// has waited for Config.Wait, when too many wait already, when its context ends, and when two answers in a row had come that nobody
// else may have: then none is awaited for 5 s, so that pages that cannot be kept are not served one by one.
func (c *Cache) Join(ctx context.Context, q *Query) (*Answer, *Keeping) {
	if !q.shareable() {
		return nil, nil
	}
	k := q.key()
	f, a, keeping := c.board(q, k)
	if f == nil {
		return a, keeping
	}
	patience := time.NewTimer(c.cfg.Wait)
	defer patience.Stop()
	for ; f != nil; f, a, keeping = c.board(q, k) {
		if a, again := c.await(ctx, q, f, patience.C); !again {
			return a, nil
		}
	}
	return a, keeping
}

// board returns a flight to wait for, or none and how the request goes on.
func (c *Cache) board(q *Query, k key) (*flight, *Answer, *Keeping) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.unkept[k]; s.n >= enough {
		if c.cfg.Now().Before(s.until) {
			return nil, nil, nil
		}
		delete(c.unkept, k)
	}
	fk := c.flightKey(q, k)
	f := c.flights[fk]
	if f == nil {
		f = &flight{key: fk, done: make(chan struct{})}
		c.flights[fk] = f
		own := *q
		own.Header = maps.Clone(q.Header) // handlers may change theirs
		return nil, nil, &Keeping{c: c, q: &own, flight: f, born: c.cfg.Now()}
	}
	if a := c.find(q, k, byRefresh); a != nil {
		return nil, a, nil
	}
	if c.waiting >= c.cfg.MaxWaiting {
		return nil, nil, nil
	}
	c.waiting++
	f.followers++
	return f, nil, nil
}

// await waits for a flight. again says that the request must look for another one.
func (c *Cache) await(ctx context.Context, q *Query, f *flight, patience <-chan time.Time) (a *Answer, again bool) {
	late := false
	select {
	case <-f.done:
	case <-patience:
		late = true
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if !f.landed {
		f.followers--
		if late && f.headed { // a stream, it may go on for ever
			c.unkept[f.key.key] = strikes{n: enough - 1}
			c.strike(f.key.key)
		}
		return nil, false
	}
	v := f.answer
	switch {
	case v == nil:
		return nil, !late && ctx.Err() == nil
	case !v.matches(q.Header):
		return nil, v.status != http.StatusNotModified // what is kept now tells by what answers differ
	}
	if age := v.age(c.cfg.Now()); age <= q.Stale.MaxAge {
		return &Answer{variant: v, age: age, how: byWaiting}, false
	}
	return nil, false // it came from the service too old
}

// flightKey is what must be equal for one request to wait for another. The caller holds mu.
func (c *Cache) flightKey(q *Query, k key) flightKey {
	fk := flightKey{key: k}
	if q.conditional() { // a 304 is an answer to the same condition alone
		fk.condition = strings.Join(q.Header["If-None-Match"], ",") + "\n" + strings.Join(q.Header["If-Modified-Since"], ",")
	}
	if kept := c.kept[k]; len(kept) > 0 {
		for _, f := range kept[len(kept)-1].Value.(*variant).vary {
			now := fieldOf(q.Header, f.name)
			fk.vary += now.name + ":" + now.value + "\n"
			if now.absent {
				fk.vary += "absent\n"
			}
		}
	}
	return fk
}

// land ends a flight. v is its answer, nil for none that others may have; struck says that there was one of that kind.
func (c *Cache) land(k *Keeping, v *variant, struck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := k.flight
	delete(c.flights, f.key)
	f.answer, f.landed = v, true
	switch {
	case v == nil && struck && f.followers > 0:
		c.strike(f.key.key)
	case v == nil:
	case v.status == http.StatusNotModified:
		c.freshen(k.q, v)
	default:
		delete(c.unkept, v.key)
		c.store(v)
	}
	close(f.done)
}

// strike notes an answer that was awaited in vain. The caller holds mu.
func (c *Cache) strike(k key) {
	s, known := c.unkept[k]
	if !known && len(c.unkept) >= maxUnkept {
		for other := range c.unkept { // any
			delete(c.unkept, other)
			break
		}
	}
	c.unkept[k] = strikes{n: s.n + 1, until: c.cfg.Now().Add(remember)}
}
