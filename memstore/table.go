package memstore

import (
	"sync"
	"sync/atomic"
)

// shards is the number of parts of a table. It bounds how many inserts run at once and how long one waits for a resize.
const shards = 64

// minBuckets is the size of a shard's first table.
const minBuckets = 8

// table finds entries. Looking up takes no lock: a reader may miss an entry that is being moved, never find a wrong one,
// so a miss counts only under the shard's lock.
type table struct{ shards [shards]shard }

type shard struct {
	buckets atomic.Pointer[buckets]
	mu      sync.Mutex
	size    int // entries; guarded by mu
	_       [40]byte
}

// buckets are the heads of the chains. Their number is a power of two.
type buckets []atomic.Pointer[entry]

func (b buckets) of(hash uint32) *atomic.Pointer[entry] { return &b[(hash>>1)&uint32(len(b)-1)] }

func (t *table) shardOf(hash uint64) *shard { return &t.shards[hash>>58] }

// find returns the entry of a key, nil if there is none or, without the lock, if it was being moved.
func (sh *shard) find(hash uint32, slot, key string) *entry {
	b := sh.buckets.Load()
	if b == nil {
		return nil
	}
	for e := b.of(hash).Load(); e != nil; e = e.next.Load() {
		if e.is(hash, slot, key) {
			return e
		}
	}
	return nil
}

func (sh *shard) findID(id *identity) *entry { return sh.find(uint32(id.hash), id.slot, id.key) }

// insert adds an entry that is not there. The caller holds the lock.
func (sh *shard) insert(e *entry) {
	b := sh.buckets.Load()
	if b == nil || sh.size >= len(*b) {
		sh.resize(2 * sh.size)
		b = sh.buckets.Load()
	}
	head := b.of(e.hash)
	e.next.Store(head.Load())
	head.Store(e)
	sh.size++
}

// unlink takes out the entry that link points to. The entry keeps its next, for readers that stand on it. The caller
// holds the lock.
func (sh *shard) unlink(link *atomic.Pointer[entry], e *entry) {
	link.Store(e.next.Load())
	sh.size--
}

// remove takes out an entry if it is there. The caller holds the lock.
func (sh *shard) remove(e *entry) {
	b := sh.buckets.Load()
	if b == nil {
		return
	}
	for link := b.of(e.hash); link.Load() != nil; link = &link.Load().next {
		if link.Load() == e {
			sh.unlink(link, e)
			return
		}
	}
}

// resize moves the entries into buckets for at least n. Readers on the way may miss entries meanwhile. The caller holds
// the lock.
func (sh *shard) resize(n int) {
	size := minBuckets
	for size < n {
		size *= 2
	}
	to := make(buckets, size)
	if from := sh.buckets.Load(); from != nil {
		for i := range *from {
			for e := (*from)[i].Load(); e != nil; {
				next := e.next.Load()
				head := to.of(e.hash)
				e.next.Store(head.Load())
				head.Store(e)
				e = next
			}
		}
	}
	sh.buckets.Store(&to)
}

// shrink gives back memory when few entries are left. The caller holds the lock.
func (sh *shard) shrink() {
	b := sh.buckets.Load()
	switch {
	case b == nil:
	case sh.size == 0:
		sh.buckets.Store(nil)
	case len(*b) > minBuckets && sh.size < len(*b)/8:
		sh.resize(2 * sh.size)
	}
}
