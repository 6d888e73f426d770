package metrics

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// On the path of a request a counter of the Prometheus library costs an atomic addition to one word, and a histogram four of
// them and a compare-and-swap: words that all processors share. These are spread over cells instead, of which each call takes
// one by chance, and added up when somebody scrapes.

// maxCells bounds the cells of one counter or histogram.
const maxCells = 16

// cellsFor returns how many cells suit the processors, a power of 2.
func cellsFor(processors int) int {
	n := 1
	for n < processors && n < maxCells {
		n *= 2
	}
	return n
}

func newCells[T any]() []T { return make([]T, cellsFor(runtime.GOMAXPROCS(0))) }

// cell picks one. The number is shared by what one call counts.
func cell[T any](of []T, chance uint32) *T { return &of[int(chance)&(len(of)-1)] }

// chance makes a number of a duration, whose last digits nobody chooses: it costs less than a random one, and where clocks are
// coarse the cells are merely used less evenly.
func chance(took time.Duration) uint32 { return uint32(uint64(took) * 0x9E3779B97F4A7C15 >> 32) }

// count is a counter that is not on the path of every request.
type count struct{ n atomic.Uint64 }

func (c *count) add(n uint64) { c.n.Add(n) }

// The bounds of the histograms, from the least, in nanoseconds and takes.
var (
	decisionBounds = []int64{1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
		1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000, 500_000_000, 1_000_000_000}
	callBounds = []int64{50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
		100_000_000, 200_000_000, 500_000_000, 1_000_000_000}
	requestBounds = []int64{1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000, 500_000_000,
		1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000}
	takeBounds = []int64{1, 2, 4, 8, 16, 32, 64}
)

const maxBounds = 20

// histo is a histogram of whole numbers. Its sum is whole too, so that no addition has to be tried again.
type histo struct {
	bounds []int64
	cells  []histoCell
}

type histoCell struct {
	sum     atomic.Int64
	buckets [maxBounds + 1]atomic.Uint64
	_       [16]byte // 192 bytes in all: three lines
}

func newHisto(bounds []int64) *histo { return &histo{bounds: bounds, cells: newCells[histoCell]()} }

func (h *histo) observe(v int64, chance uint32) {
	c := cell(h.cells, chance)
	c.buckets[h.bucket(v)].Add(1)
	c.sum.Add(v)
}

// observeEach is observe for n of the same value.
func (h *histo) observeEach(v int64, n uint64, chance uint32) {
	c := cell(h.cells, chance)
	c.buckets[h.bucket(v)].Add(n)
	c.sum.Add(v * int64(n))
}

// bucket finds the first bound that is not below v.
func (h *histo) bucket(v int64) int {
	low, high := 0, len(h.bounds)
	for low < high {
		if mid := (low + high) / 2; h.bounds[mid] < v {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// total adds the cells up: counts of each bucket, not of those below it.
func (h *histo) total() (buckets [maxBounds + 1]uint64, sum int64) {
	for i := range h.cells {
		c := &h.cells[i]
		for b := range len(h.bounds) + 1 {
			buckets[b] += c.buckets[b].Load()
		}
		sum += c.sum.Load()
	}
	return buckets, sum
}

// positive is a duration that no clock has made negative.
func positive(d time.Duration) int64 { return max(0, int64(d)) }

// table has a value for each of a bounded set of keys. Reading takes no lock.
type table[K comparable, V any] struct {
	most  int
	fresh func() *V
	rest  *V // for all keys beyond
	mu    sync.Mutex
	now   atomic.Pointer[map[K]*V]
}

func newTable[K comparable, V any](most int, fresh func() *V) *table[K, V] {
	t := &table[K, V]{most: most, fresh: fresh, rest: fresh()}
	t.now.Store(&map[K]*V{})
	return t
}

// newCounts makes a table of counters.
func newCounts[K comparable](most int) *table[K, count] {
	return newTable[K](most, func() *count { return new(count) })
}

func (t *table[K, V]) of(key K) *V {
	now := *t.now.Load()
	if v := now[key]; v != nil {
		return v
	}
	if len(now) >= t.most {
		return t.rest
	}
	return t.add(key)
}

// add copies what is there: a key is added once, and read for ever after.
func (t *table[K, V]) add(key K) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := *t.now.Load()
	if v := was[key]; v != nil {
		return v
	}
	if len(was) >= t.most {
		return t.rest
	}
	now := make(map[K]*V, len(was)+1)
	for k, v := range was {
		now[k] = v
	}
	v := t.fresh()
	now[key] = v
	t.now.Store(&now)
	return v
}
