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
	key        flightKey
	done       chan struct{}
	next       chan struct{} // hands the lead to one of those that wait, when it has failed; holds one
	answer     *variant      // nil if there is none that others may have
	headed     bool          // whether an answer that others may have has begun
	landed     bool
	leaderless bool // whether the lead is in next
	followers  int
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
//   - else the request goes to the service, and its answer is taken down if there is a Keeping, whose Close must be called.
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
		if a, keeping, again := c.await(ctx, q, f, patience.C); !again {
			return a, keeping
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
		f = &flight{key: fk, done: make(chan struct{}), next: make(chan struct{}, 1)}
		c.flights[fk] = f
		return nil, nil, c.lead(q, f)
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

// lead makes a request the one at the service.
func (c *Cache) lead(q *Query, f *flight) *Keeping {
	own := *q
	own.Header = maps.Clone(q.Header) // handlers may change theirs
	return &Keeping{c: c, q: &own, flight: f, born: c.cfg.Now()}
}

// await waits for a flight, or for its lead. again says that the request must look for another one.
func (c *Cache) await(ctx context.Context, q *Query, f *flight, patience <-chan time.Time) (a *Answer, k *Keeping, again bool) {
	leads, late := false, false
	select {
	case <-f.done:
	case <-f.next:
		leads = true
	case <-patience:
		late = true
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	f.followers--
	switch {
	case leads:
		f.leaderless = false
		return nil, c.lead(q, f), false
	case f.landed:
		a, again = c.share(q, f.answer)
		return a, nil, again && !late && ctx.Err() == nil
	}
	c.stay(f, late)
	return nil, nil, false
}

// stay notes that one has left who waited. The caller holds mu.
func (c *Cache) stay(f *flight, late bool) {
	if late && f.headed { // a stream, it may go on for ever
		c.unkept[f.key.key] = strikes{n: enough - 1}
		c.strike(f.key.key)
	}
	if f.leaderless && f.followers == 0 {
		c.end(f)
	}
}

// share gives a request the answer that it has waited for, if it may have it. again says that it may have another one. The
// caller holds mu.
func (c *Cache) share(q *Query, v *variant) (a *Answer, again bool) {
	switch {
	case v == nil:
		return nil, true
	case !v.matches(q.Header):
		return nil, v.status != http.StatusNotModified // what is kept now tells by what answers differ
	}
	if age := v.age(c.cfg.Now()); age <= q.Stale.MaxAge {
		return c.give(v, age, byWaiting), false
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

// land ends a flight, or hands the lead on: one at a time wakes up while a service is in trouble. v is the answer, nil for none
// that others may have; struck says that there was one of that kind.
func (c *Cache) land(k *Keeping, v *variant, struck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := k.flight
	if struck && f.followers > 0 {
		c.strike(f.key.key)
	}
	switch {
	case v == nil:
		if f.followers > 0 && c.unkept[f.key.key].n < enough {
			f.headed, f.leaderless = false, true
			f.next <- struct{}{} // there is room: whoever leads has taken what was in it
			return
		}
	case v.status == http.StatusNotModified:
		c.freshen(k.q, v)
	default:
		delete(c.unkept, v.key)
		c.store(v)
	}
	f.answer = v
	c.end(f)
}

// end lets go who waits. The caller holds mu.
func (c *Cache) end(f *flight) {
	delete(c.flights, f.key)
	f.landed = true
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
