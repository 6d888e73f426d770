package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// queueFor is how long the figures of a queue are shown that nobody has told again: they come once a second.
	queueFor = 30 * time.Second
	// skuFor is for how long a sku of which no queue is told keeps its place when others need one, tidyEvery how often is looked for such.
	skuFor    = time.Hour
	tidyEvery = time.Minute
)

// skuSeries is what is counted of one sku.
type skuSeries struct {
	reserves *table[string, count] // by outcome
	moved    [len(transitions)]movedCount
	queue    atomic.Pointer[queueFigures]
	told     atomic.Int64 // when the queue was told, or the series was made, in ns
	epoch    atomic.Int64
}

type movedCount struct{ times, units atomic.Uint64 }

type queueFigures struct {
	depth, pulled, dead, pending int64
	oldest                       time.Duration
}

// skus are the series of the skus. A sku gets its series when it is met, while there is room; when there is none, those that have not been
// on sale for an hour make it. Who finds none is counted as "(other)".
type skus struct {
	most  int
	now   func() time.Time
	none  *skuSeries
	rest  *skuSeries
	mu    sync.Mutex
	known atomic.Pointer[map[string]*skuSeries]
	// tidied is when it was looked for room, in ns.
	tidied atomic.Int64
}

func newSKUs(most int) *skus {
	s := &skus{most: most, now: time.Now}
	s.none, s.rest = s.fresh(), s.fresh()
	s.known.Store(&map[string]*skuSeries{})
	return s
}

func (s *skus) fresh() *skuSeries {
	series := &skuSeries{reserves: newCounts[string](maxCodes)}
	series.told.Store(s.now().UnixNano())
	return series
}

func (s *skus) of(key string) *skuSeries {
	known := *s.known.Load()
	if series := known[key]; series != nil {
		return series
	}
	switch {
	case key == "":
		return s.none
	case len(known) >= s.most && s.now().UnixNano()-s.tidied.Load() < int64(tidyEvery):
		return s.rest
	}
	return s.add(key)
}

// add copies what is there, but for what makes room.
func (s *skus) add(key string) *skuSeries {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := *s.known.Load()
	if series := was[key]; series != nil {
		return series
	}
	full := len(was) >= s.most
	if full {
		s.tidied.Store(s.now().UnixNano())
	}
	now := make(map[string]*skuSeries, len(was)+1)
	for k, series := range was {
		if !full || s.since(series) < skuFor {
			now[k] = series
		}
	}
	if len(now) >= s.most {
		return s.rest
	}
	series := s.fresh()
	now[key] = series
	s.known.Store(&now)
	return series
}

// since is for how long nobody has told the queue of a sku.
func (s *skus) since(series *skuSeries) time.Duration {
	return time.Duration(s.now().UnixNano() - series.told.Load())
}

// each calls f with every sku, and with what has none and all others.
func (s *skus) each(f func(key string, series *skuSeries)) {
	for key, series := range *s.known.Load() {
		f(key, series)
	}
	f("", s.none)
	f(other, s.rest)
}
