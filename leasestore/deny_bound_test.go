package leasestore

import (
	"context"
	"fmt"
	"testing"
	"time"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

// denier denies all, for a time.
type denier struct {
	retry time.Duration
	calls int
}

func (n *denier) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	n.calls++
	d.Reset(len(charges))
	for i := range charges {
		d.Outcomes[i] = headgate.Outcome{Reason: headgate.ReasonLimited, RetryAfter: headgate.Retry{After: n.retry}}
	}
	d.Conclude(charges)
	return nil
}

// count counts the denials that are really there, and checks what the table says of them.
func (t *denyTable) count(tb testing.TB) (n int) {
	tb.Helper()
	for i := range t.buckets {
		b := &t.buckets[i]
		for way := range b.entries {
			e, tag := b.entries[way].Load(), b.tags.Load()>>(8*way)&0xff
			if (e == nil) != (tag == 0) || (e != nil && (tag != tagOf(e.hash) || t.index(e.hash) != i)) {
				tb.Fatalf("bucket %d, place %d: tag %d for %v", i, way, tag, e)
			}
			if e != nil {
				n++
			}
		}
	}
	if n != int(t.keys.Load()) {
		tb.Fatalf("%d denials are there, and %d are counted", n, t.keys.Load())
	}
	return n
}

type denyBench struct {
	cache *DenyCache
	up    *denier
	now   time.Time
	d     headgate.Decision
	limit headgate.Limit
}

func newDenyBench(most int, retry time.Duration) *denyBench {
	r := &denyBench{up: &denier{retry: retry}, now: time.Unix(1e9, 0), limit: headgate.MustParseLimit("fixed_window 1/1h")}
	r.cache = NewDenyCache(r.up, DenyConfig{MaxKeys: most, MaxAge: time.Hour, Now: func() time.Time { return r.now }})
	return r
}

// ask takes on a key and tells whether the store was asked.
func (r *denyBench) ask(key string) bool {
	calls := r.up.calls
	_ = r.cache.Take(context.Background(), []headgate.Charge{headgate.One("s", key, r.limit)}, &r.d)
	return r.up.calls > calls
}

func TestDenyFlood(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2, 6, 7, 100, 1000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			r := newDenyBench(most, time.Hour)
			const flood = 20_000
			for i := range flood {
				key := fmt.Sprint(i)
				if !r.ask(key) || r.ask(key) {
					t.Fatalf("key %d is not known after it was denied", i)
				}
			}
			n := r.cache.table.count(t)
			if n > most || n < most*9/10 {
				t.Errorf("%d denials are kept of at most %d", n, most)
			}
			if got := r.cache.Stats().Evictions; got != uint64(flood-n) {
				t.Errorf("%d evictions of %d", got, flood-n)
			}
			r.cache.ForgetAll()
			if n := r.cache.table.count(t); n != 0 {
				t.Errorf("%d denials are left", n)
			}
		})
	}
}

// TestDenyFloodLeavesWhatIsUsed: keys that are asked for again and again are not pushed out by a flood of keys that are not.
func TestDenyFloodLeavesWhatIsUsed(t *testing.T) {
	t.Parallel()
	const hot, most = 100, 1200
	r := newDenyBench(most, time.Hour)
	asked := 0
	for i := range 50_000 {
		if r.ask(fmt.Sprint("hot", i%hot)) {
			asked++
		}
		r.ask(fmt.Sprint("flood", i))
	}
	if asked > 5*hot {
		t.Errorf("%d keys under attack were asked for %d times while others flooded in", hot, asked)
	}
}

// TestDenyOver: denials whose time is over deny nothing, are the first to be replaced, and are cleared away.
func TestDenyOver(t *testing.T) {
	t.Parallel()
	r := newDenyBench(600, time.Second)
	for i := range 600 {
		r.ask(fmt.Sprint("old", i))
	}
	r.now = r.now.Add(time.Second)
	evicted := r.cache.Stats().Evictions
	for i := range 300 {
		r.ask(fmt.Sprint("new", i))
	}
	if got := r.cache.Stats().Evictions - evicted; got > 30 {
		t.Errorf("%d were evicted though the places of others were free", got)
	}
	if !r.ask("old0") {
		t.Error("a denial holds beyond its time")
	}
	r.up.retry = 0 // nothing is to be remembered any more
	r.now = r.now.Add(time.Second)
	for range 5 {
		r.ask("other")
		r.now = r.now.Add(sweepTime / 4)
	}
	if n := r.cache.table.count(t); n != 0 {
		t.Errorf("%d denials are left after their time", n)
	}
}

// TestDenyPlaces: in a full bucket what is over goes before what holds, and before what is free.
func TestDenyPlaces(t *testing.T) {
	t.Parallel()
	r := newDenyBench(denyWays, time.Hour)
	for i := range denyWays {
		if r.up.retry = time.Hour; i == 3 {
			r.up.retry = time.Second
		}
		r.ask(fmt.Sprint(i))
	}
	r.now = r.now.Add(time.Second)
	r.up.retry = 2 * time.Second
	r.ask("new")
	for i := range denyWays {
		if i != 3 && r.ask(fmt.Sprint(i)) {
			t.Errorf("denial %d was pushed out though another's time was over", i)
		}
	}
	r.cache.Forget("s", "0")
	r.now = r.now.Add(2 * time.Second)
	r.ask("newer")
	if n := r.cache.table.count(t); n != denyWays-1 || r.cache.Stats().Evictions != 0 {
		t.Errorf("%d denials are kept, %d were evicted", n, r.cache.Stats().Evictions)
	}
}

// TestDenyComparesTexts: a hash alone denies nobody.
func TestDenyComparesTexts(t *testing.T) {
	t.Parallel()
	r := newDenyBench(denyWays, time.Hour)
	r.ask("key")
	hash := r.cache.table.hash("s", "key")
	b := &r.cache.table.buckets[r.cache.table.index(hash)]
	if b.find(hash, "s", "key") == nil {
		t.Error("the denial is not found")
	}
	for _, other := range [][2]string{{"s", "kez"}, {"t", "key"}, {"", "skey"}} {
		if b.find(hash, other[0], other[1]) != nil {
			t.Errorf("%q is taken for another key with the same hash", other)
		}
	}
}

// TestDenyBoundsTexts: no key makes a denial large.
func TestDenyBoundsTexts(t *testing.T) {
	t.Parallel()
	r := newDenyBench(denyWays, time.Hour)
	for _, n := range []int{0, 79, 80, maxDenyText - 1, maxDenyText, 1 << 20} {
		r.ask(string(make([]byte, n)))
		for i := range r.cache.table.buckets[0].entries {
			if e := r.cache.table.buckets[0].entries[i].Load(); e != nil && len(e.slot)+len(e.key) > maxDenyText+1 {
				t.Errorf("of a key of %d bytes %d are kept", n, len(e.key))
			}
		}
	}
	if n := r.cache.table.count(t); n != denyWays {
		t.Errorf("%d keys are kept", n)
	}
}

func TestDenySweepsNowAndThen(t *testing.T) {
	t.Parallel()
	r := newDenyBench(60_000, time.Hour)
	r.ask("key")
	for range 100 {
		r.ask("other")
		r.cache.Forget("s", "other")
	}
	if at := r.cache.table.hand.Load(); at != sweepStep {
		t.Errorf("%d buckets were swept in no time", at)
	}
}

func TestDenySweepLeavesWhatHolds(t *testing.T) {
	t.Parallel()
	r := newDenyBench(600, time.Hour)
	for i := range 100 {
		r.ask(fmt.Sprint(i))
	}
	r.up.retry = 0
	for range 20 {
		r.now = r.now.Add(sweepTime / 10)
		r.ask("other")
	}
	if n := r.cache.table.count(t); n != 100 {
		t.Errorf("%d of 100 denials are left", n)
	}
}

// TestDenySizes: what is looked at for a key that is not there is one cache line, and a denial is one of Go's size classes.
func TestDenySizes(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(denyBucket{}); size != 64 {
		t.Errorf("a bucket has %d bytes", size)
	}
	if size := unsafe.Sizeof(denial{}); size != 192 {
		t.Errorf("a denial has %d bytes", size)
	}
}
