package leasestore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// fewCharges is the number of charges up to which a take works on the stack.
const fewCharges = 8

// DenyCache is a Limiter that remembers what the Limiter behind it has denied: the same charge again, or a larger one, is
// denied in process until its retry-after is over. Nothing is ever allowed without the Limiter behind. Make it with
// [NewDenyCache]; it is safe for concurrent use.
//
// A take is denied in process if one of its paying or checking charges is known to be denied. Of the others nothing is asked
// then: their outcomes are allowed and say nothing of what is left. A charge with a lockout is passed on until its key is shut,
// since the store counts its denials; so is a take of several one of whose charges carries a lockout that is not known to be
// shut. Concurrency is never remembered.
//
// What is remembered of a key goes when a refund, a reset or another limit for it comes by. What happens elsewhere it cannot
// see: tell it with [DenyCache.Forget], or it is seen at the retry-after, or after [DenyConfig.MaxAge], at the latest.
//
// It has all abilities, and answers with headgate.CodeUnsupported for those that the Limiter behind lacks. The view that At
// returns is that Limiter's own: nothing is remembered at a time that was passed in.
type DenyCache struct {
	upstream headgate.Limiter
	clock    denyClock
	most     time.Duration
	table    denyTable
	counts   [denyStripes]denyCounts
}

// NewDenyCache returns a cache of the denials of a Limiter. It has nothing to be closed; the Limiter stays the caller's.
func NewDenyCache(upstream headgate.Limiter, cfg DenyConfig) *DenyCache {
	cfg = cfg.withDefaults()
	c := &DenyCache{upstream: upstream, clock: newDenyClock(cfg.Now), most: cfg.MaxAge}
	c.table.init(cfg.MaxKeys)
	return c
}

// Stats returns the figures of the cache.
func (c *DenyCache) Stats() DenyStats {
	s := DenyStats{Keys: int(c.table.keys.Load()), Evictions: c.table.evictions.Load()}
	for i := range c.counts {
		s.Hits += c.counts[i].hits.Load()
		s.Misses += c.counts[i].misses.Load()
	}
	return s
}

// Forget drops what is remembered of a slot's key: call it when the key was reset, or given back to, elsewhere. A denial that
// is on its way is not remembered either.
func (c *DenyCache) Forget(slot, key string) { c.table.drop(slot, key) }

// ForgetAll drops everything that is remembered: call it when the limits have changed.
func (c *DenyCache) ForgetAll() { c.table.dropAll() }

// sighting is what the cache had of a charge's key before the take was sent.
type sighting struct {
	known  *denial // its time is not over; nil: nothing
	epoch  uint32
	never  bool // of such a charge nothing is ever remembered
	denied bool // it is known to be
}

// Take implements [headgate.Limiter]. A take that is denied in process fails with CodeTimeout if ctx is over, and as
// [headgate.Validate] says; all other errors are those of the Limiter behind.
func (c *DenyCache) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	now := c.clock.now()
	var room [fewCharges]sighting
	seen := c.look(charges, room[:0], now)
	if settled(charges, seen) {
		return c.deny(ctx, charges, seen, now, d)
	}
	c.countsOf(d).misses.Add(1)
	c.table.sweep(now)
	c.dropChanged(charges, seen)
	err := c.upstream.Take(ctx, charges, d)
	c.dropChanged(charges, seen)
	if err == nil && len(d.Outcomes) == len(charges) {
		c.learn(charges, seen, now, d)
	}
	return err
}

// look finds what is known of each charge. The epoch is read first: what comes after it is noticed.
func (c *DenyCache) look(charges []headgate.Charge, seen []sighting, now time.Duration) []sighting {
	for i := range charges {
		seen = append(seen, sighting{})
		s := &seen[i]
		if _, s.never = charges[i].Limit.(headgate.Concurrency); s.never {
			continue
		}
		slot, key := denyName(charges[i].Slot, charges[i].Key)
		hash := c.table.hash(slot, key)
		b := &c.table.buckets[c.table.index(hash)]
		s.epoch = b.epoch.Load()
		if e := b.find(hash, slot, key); e != nil && now < e.until {
			s.known, s.denied = e, e.denies(&charges[i])
		}
	}
	return seen
}

// settled tells whether a take can be denied without a call: something denies it, and no lockout waits for the denials of its
// charge. A peek at a key that is not shut is no denial, so nothing would be counted of it.
func settled(charges []headgate.Charge, seen []sighting) bool {
	denied := false
	for i := range seen {
		c := &charges[i]
		if c.Lockout != nil && c.Cost > 0 && c.Mode != headgate.Settle && !seen[i].denied {
			return false
		}
		denied = denied || (seen[i].denied && binds(c))
	}
	return denied
}

// deny answers a take that is known to be denied.
func (c *DenyCache) deny(ctx context.Context, charges []headgate.Charge, seen []sighting, now time.Duration, d *headgate.Decision) error {
	d.Reset(0)
	if ctx.Err() != nil {
		return &headgate.Error{Code: headgate.CodeTimeout, Charge: -1, Message: "leasestore: not begun", Err: context.Cause(ctx)}
	}
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	c.countsOf(d).hits.Add(1)
	d.Reset(len(charges))
	for i := range charges {
		if !seen[i].denied {
			d.Outcomes[i].Allowed = true
			continue
		}
		e := seen[i].known
		e.tell(now, &d.Outcomes[i])
		if !e.used.Load() { // a line that all read is written once
			e.used.Store(true)
		}
	}
	d.Conclude(charges)
	return nil
}

// learn remembers what was denied.
func (c *DenyCache) learn(charges []headgate.Charge, seen []sighting, sent time.Duration, d *headgate.Decision) {
	for i := range charges {
		s, o := &seen[i], &d.Outcomes[i]
		if s.never {
			continue
		}
		if o.Allowed {
			if s.known != nil && charges[i].Mode == headgate.Settle && o.Receipt.Charged > 0 {
				c.table.drop(charges[i].Slot, charges[i].Key) // true still, but of what was left then
			}
			continue
		}
		now := c.clock.now()
		if e := newDenial(&charges[i], o, sent, now, c.most); e != nil {
			slot, key := denyName(charges[i].Slot, charges[i].Key)
			e.name(c.table.hash(slot, key), slot, key)
			c.table.put(s.epoch, e, now)
		}
	}
}

// dropChanged forgets the keys that are now judged by another limit: that may change what the old one would say. It is done
// before the call and after it, since a denial by the old limit may arrive between.
func (c *DenyCache) dropChanged(charges []headgate.Charge, seen []sighting) {
	for i := range seen {
		if s := &seen[i]; s.known != nil && s.known.limit != charges[i].Limit {
			c.table.drop(charges[i].Slot, charges[i].Key)
		}
	}
}
