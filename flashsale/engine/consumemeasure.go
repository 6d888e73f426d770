package engine

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// windowSeconds is over how long alarms look back.
	windowSeconds = 10
	// enough is how many there must be in a window before a share or a quantile of them says anything.
	enough = 20
)

// measures are what this process sees of deciding, by sku; tries are counted under no sku.
type measures struct {
	// ahead is by how much the Stock's clock is ahead of this process's, in ns.
	ahead             atomic.Int64
	jobs, full, short atomic.Int64

	mu sync.Mutex
	of map[flashsale.Key]*window
}

func newMeasures() *measures { return &measures{of: map[flashsale.Key]*window{}} }

func (m *measures) stockAhead() time.Duration { return time.Duration(m.ahead.Load()) }

// pulled counts a pull, as full or not.
func (m *measures) pulled(full bool) {
	if full {
		m.full.Add(1)
	} else {
		m.short.Add(1)
	}
}

// tried counts a try to decide a batch, of whatever sku: it is the database that makes it necessary to try again.
func (m *measures) tried(again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.window(flashsale.Key{}).seconds[0]
	s.tries++
	if again {
		s.again++
	}
}

// decided takes down how long jobs have taken, from T0 to the commit.
func (m *measures) decided(key flashsale.Key, latencies []time.Duration) {
	m.jobs.Add(int64(len(latencies)))
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.window(key)
	for _, l := range latencies {
		w.seconds[0].took[bucketOf(l)]++
		w.seconds[0].jobs++
	}
}

func (m *measures) window(key flashsale.Key) *window {
	w := m.of[key]
	if w == nil {
		w = &window{}
		w.seconds[0] = &second{}
		m.of[key] = w
	}
	return w
}

// turn ends a second: it returns what a sku has done in the window, and forgets the oldest second.
func (m *measures) turn(key flashsale.Key) *window {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.of[key]
	if w == nil {
		return &window{}
	}
	past := *w
	copy(w.seconds[1:], past.seconds[:windowSeconds-1])
	w.seconds[0] = &second{}
	if past.empty() {
		delete(m.of, key)
	}
	return &past
}

// window are the last seconds of a sku, the current one first.
type window struct {
	seconds [windowSeconds]*second
}

// second is what happened in one.
type second struct {
	tries, again, jobs uint32
	took               [buckets]uint32
}

func (w *window) empty() bool {
	for _, s := range w.seconds {
		if s != nil && (s.tries > 0 || s.jobs > 0) {
			return false
		}
	}
	return true
}

// repeated returns how many tries had to be repeated to each that had not, at most 1, and 0 while there are too few.
func (w *window) repeated() float64 {
	var tries, again uint64
	for _, s := range w.seconds {
		if s != nil {
			tries += uint64(s.tries)
			again += uint64(s.again)
		}
	}
	if tries < enough {
		return 0
	}
	return min(float64(again)/float64(max(tries-again, 1)), 1)
}

// quantile returns an upper bound of a quantile of the latencies, at most 1/16 above it; 0 while there are too few.
func (w *window) quantile(q float64) time.Duration {
	var sum [buckets]uint64
	var n uint64
	for _, s := range w.seconds {
		if s == nil {
			continue
		}
		for i, c := range &s.took {
			sum[i] += uint64(c)
			n += uint64(c)
		}
	}
	if n < enough {
		return 0
	}
	rank := uint64(math.Ceil(q*float64(n))) - 1
	for i, c := range &sum {
		if c > rank {
			return boundOf(i)
		}
		rank -= c
	}
	return boundOf(buckets - 1)
}

// Buckets are linear in an octave and octaves double, as in HdrHistogram: 16 to the octave, of microseconds, up to 134 s.
const (
	perOctave   = 16
	maxOctaves  = 23
	buckets     = perOctave * (maxOctaves + 1)
	octaveShift = 4 // log2(perOctave)
)

func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < perOctave {
		return int(us)
	}
	octave := bits.Len64(us) - octaveShift // at least 1
	return min(octave*perOctave+int(us>>(octave-1))-perOctave, buckets-1)
}

// boundOf returns what every latency in a bucket but the last is below.
func boundOf(i int) time.Duration {
	if i < perOctave {
		return time.Duration(i+1) * time.Microsecond
	}
	octave := i/perOctave - 1
	return time.Duration((i%perOctave+perOctave+1)<<octave) * time.Microsecond
}
