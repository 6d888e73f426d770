package leasestore

import (
	"crypto/sha256"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// denyWays is how many denials a bucket has room for: what fits into a cache line.
	denyWays = 6
	// denyLocks is how many locks the buckets share. Only what changes a bucket takes one.
	denyLocks = 256
	// maxDenyText is the longest text of a slot and a key together that is kept as it is; what is longer is kept as its hash.
	maxDenyText = 256
	// sweepTime is how long it takes to look at all buckets once, if takes come, and sweepStep how many at once.
	sweepTime = time.Minute
	sweepStep = 32
)

// denyTable keeps denials, each in one of the places of the bucket that its hash leads to, so that it never grows and nothing
// is moved. Looking up takes no lock: a reader sees a denial or does not, and a denial that it sees is whole. To miss one costs
// a call and nothing else.
type denyTable struct {
	buckets []denyBucket
	ways    int
	seed    maphash.Seed

	keys      atomic.Int64
	evictions atomic.Uint64

	// hand is the next bucket to sweep, at the time due.
	hand atomic.Uint64
	due  atomic.Int64

	locks [denyLocks]sync.Mutex
}

// denyBucket fills a cache line.
type denyBucket struct {
	// tags has a byte for each place, 0 where nothing is: a reader looks at a denial only if its tag fits.
	tags atomic.Uint64
	// epoch counts what made denials invalid; see [denyTable.put].
	epoch   atomic.Uint32
	next    uint32 // the clock hand; guarded by the lock
	entries [denyWays]atomic.Pointer[denial]
}

func (t *denyTable) init(most int) {
	t.ways = min(most, denyWays)
	t.buckets = make([]denyBucket, most/t.ways)
	t.seed = maphash.MakeSeed()
}

// denyName returns the texts that name a key in the table, and are no longer than a bound.
func denyName(slot, key string) (string, string) {
	if len(slot)+len(key) > maxDenyText {
		return "", digest(slot, key)
	}
	return slot, key
}

// digest is the SHA-256 of two texts, padded to a length that no short name has. Only keys that are longer than any that is
// meant to be pay for it.
func digest(slot, key string) string {
	a, b := sha256.Sum256([]byte(slot)), sha256.Sum256([]byte(key))
	sum := sha256.Sum256(append(a[:], b[:]...))
	var padded [maxDenyText + 1]byte
	copy(padded[:], sum[:])
	return string(padded[:])
}

// hash is seeded, since clients choose keys.
func (t *denyTable) hash(slot, key string) uint64 {
	return maphash.String(t.seed, key) ^ bits.RotateLeft64(maphash.String(t.seed, slot), 32)
}

// index is the bucket that a hash leads to.
func (t *denyTable) index(hash uint64) int {
	n, _ := bits.Mul64(hash, uint64(len(t.buckets)))
	return int(n)
}

// lock locks a bucket.
func (t *denyTable) lock(index int) (*denyBucket, *sync.Mutex) {
	mu := &t.locks[index%denyLocks]
	mu.Lock()
	return &t.buckets[index], mu
}

// tagOf is from the end of the hash that does not choose the bucket.
func tagOf(hash uint64) uint64 { return max(1, hash&0xff) }

// find returns the denial of a key, whether its time is over or not, and nil if there is none.
func (b *denyBucket) find(hash uint64, slot, key string) *denial {
	const ones, tops = 0x0101_0101_0101_0101, 0x0000_8080_8080_8080
	differ := b.tags.Load() ^ tagOf(hash)*ones
	// The top bit of every byte that is 0, and sometimes of the one after it.
	for fits := (differ - ones) &^ differ & tops; fits != 0; fits &= fits - 1 {
		if e := b.entries[bits.TrailingZeros64(fits)/8].Load(); e != nil && e.is(hash, slot, key) {
			return e
		}
	}
	return nil
}

// set fills or, with nil, clears a place. The caller holds the lock.
func (b *denyBucket) set(way int, e *denial) {
	tags := b.tags.Load() &^ (0xff << (8 * way))
	if e != nil {
		tags |= tagOf(e.hash) << (8 * way)
	}
	b.entries[way].Store(e)
	b.tags.Store(tags)
}

// put keeps a denial, unless something has made denials in its bucket invalid since the epoch that was read before the take was
// sent: then it may be of the time before.
func (t *denyTable) put(epoch uint32, e *denial, now time.Duration) {
	b, mu := t.lock(t.index(e.hash))
	defer mu.Unlock()
	if b.epoch.Load() != epoch {
		return
	}
	way, old := t.place(b, e, now)
	switch {
	case old == nil:
		t.keys.Add(1)
	case old.is(e.hash, e.slot, e.key):
		if old.covers(e, now) {
			return
		}
	case now < old.until:
		t.evictions.Add(1)
	}
	b.set(way, e)
}

// place finds the place for a denial and what is there: that of the same key, else one whose time is over, else one that is free,
// else one that was not used since the hand was there last.
func (t *denyTable) place(b *denyBucket, e *denial, now time.Duration) (way int, old *denial) {
	free, over := -1, -1
	for i := range t.ways {
		switch old := b.entries[i].Load(); {
		case old == nil:
			free = i
		case old.is(e.hash, e.slot, e.key):
			return i, old
		case now >= old.until:
			over = i
		}
	}
	switch {
	case over >= 0:
		return over, b.entries[over].Load()
	case free >= 0:
		return free, nil
	}
	for {
		way = int(b.next) % t.ways
		b.next = uint32(way + 1)
		if old = b.entries[way].Load(); !old.used.Swap(false) {
			return way, old
		}
	}
}

// drop forgets a key, and what is on its way of it.
func (t *denyTable) drop(slot, key string) {
	slot, key = denyName(slot, key)
	hash := t.hash(slot, key)
	b, mu := t.lock(t.index(hash))
	defer mu.Unlock()
	b.epoch.Add(1)
	t.clear(b, func(e *denial) bool { return e.is(hash, slot, key) })
}

// dropAll forgets every key.
func (t *denyTable) dropAll() {
	for i := range t.buckets {
		b, mu := t.lock(i)
		b.epoch.Add(1)
		t.clear(b, func(*denial) bool { return true })
		mu.Unlock()
	}
}

// clear empties places. The caller holds the bucket's lock.
func (t *denyTable) clear(b *denyBucket, which func(*denial) bool) {
	for i := range t.ways {
		if e := b.entries[i].Load(); e != nil && which(e) {
			b.set(i, nil)
			t.keys.Add(-1)
		}
	}
}

// sweep clears away denials whose time is over, some buckets at a time, so that all have been looked at after sweepTime.
func (t *denyTable) sweep(now time.Duration) {
	due := t.due.Load()
	if int64(now) < due || t.keys.Load() == 0 {
		return
	}
	steps := (len(t.buckets) + sweepStep - 1) / sweepStep
	if !t.due.CompareAndSwap(due, int64(now)+int64(sweepTime)/int64(steps)) {
		return // another does it
	}
	at := t.hand.Add(sweepStep) - sweepStep
	for i := range uint64(min(sweepStep, len(t.buckets))) {
		if n := int((at + i) % uint64(len(t.buckets))); t.buckets[n].tags.Load() != 0 {
			b, mu := t.lock(n)
			t.clear(b, func(e *denial) bool { return now >= e.until })
			mu.Unlock()
		}
	}
}
