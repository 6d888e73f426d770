package demo

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Kind is who sends a request.
type Kind uint8

// The kinds of visitors.
const (
	Shopper Kind = iota
	Bot
	kinds
)

// fate is how one request of the crowd ended.
type fate uint8

const (
	served fate = iota // the shop answered
	denied             // the gateway answered in its place
	failed             // nobody did, or with an error of the gateway
)

// Audience counts the requests of one kind of visitor.
type Audience struct {
	// Served were answered by the shop, Denied by the gateway.
	Served int64 `json:"served"`
	Denied int64 `json:"denied"`
}

// Spread is two percentiles.
type Spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// longestSeen is the top of the histograms, in microseconds; a longer time counts as this.
const longestSeen = int64(time.Minute / time.Microsecond)

// spread measures times in microseconds, to three digits. It is safe for concurrent use.
type spread struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
}

func newSpread() *spread { return &spread{h: hdrhistogram.New(1, longestSeen, 3)} }

func (s *spread) record(d time.Duration) {
	us := min(max(d.Microseconds(), 1), longestSeen)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.h.RecordValue(us) // us is within the range that the histogram was made for
}

// read returns the percentiles in units of unit.
func (s *spread) read(unit time.Duration) Spread {
	s.mu.Lock()
	defer s.mu.Unlock()
	each := float64(unit / time.Microsecond)
	return Spread{P50: float64(s.h.ValueAtQuantile(50)) / each, P99: float64(s.h.ValueAtQuantile(99)) / each}
}

// drain is read, and begins anew.
func (s *spread) drain(unit time.Duration) Spread {
	r := s.read(unit)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.h.Reset()
	return r
}

// meter counts what the crowd sees. Every request is counted once, when its answer is there.
type meter struct {
	latency *spread // of requests that the shop served, as their sender saw it
	recent  *spread // the same since the last look
	added   *spread // of requests that the shop served: time in the gateway's handler less time in the shop's
	decided *spread // of all requests: time until the verdict

	mu       sync.Mutex
	audience [kinds]Audience
	failed   int64
	byRule   map[string]int64
}

func newMeter() *meter {
	return &meter{latency: newSpread(), recent: newSpread(), added: newSpread(), decided: newSpread(), byRule: make(map[string]int64)}
}

func (m *meter) count(k Kind, f fate, rule string, took time.Duration) {
	if f == served {
		m.latency.record(took)
		m.recent.record(took)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch f {
	case served:
		m.audience[k].Served++
	case denied:
		m.audience[k].Denied++
		m.byRule[rule]++
	case failed:
		m.failed++
	}
}

// tally is a copy of the counts at one moment.
type tally struct {
	shoppers, bots Audience
	failed         int64
	byRule         map[string]int64
}

func (m *meter) tally() tally {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := tally{shoppers: m.audience[Shopper], bots: m.audience[Bot], failed: m.failed, byRule: make(map[string]int64, len(m.byRule))}
	for rule, n := range m.byRule {
		t.byRule[rule] = n
	}
	return t
}

func (t tally) allowed() int64  { return t.shoppers.Served + t.bots.Served }
func (t tally) denied() int64   { return t.shoppers.Denied + t.bots.Denied }
func (t tally) requests() int64 { return t.allowed() + t.denied() + t.failed }
