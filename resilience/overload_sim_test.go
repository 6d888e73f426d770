package resilience

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// simulation is a process of two processors that answers 10,000 requests/s when it does nothing else. What it turns away
// costs a fiftieth of a request. Each call of Shed stands for five requests. Its queue holds a second of work: clients do not wait for more.
type simulation struct {
	mu        sync.Mutex
	overload  *Overload
	rng       *rand.Rand
	used      time.Duration // processor time since the start
	queue     time.Duration // work that waits
	base      float64       // share of the processors that is used whatever comes
	noise     float64       // of the base
	memory    float64
	perAdmit  float64 // memory that one admitted request holds
	leaves    float64 // part of the memory above 0.5 that is given back each second
	broken    bool
	collected uint64
	arriving  [priorities]float64 // requests/s
	due       [priorities]float64
	came      [priorities]int
	shed      [priorities]int
}

const (
	simCPUs  = 2.0
	simRate  = 10_000.0
	simSlice = 20 * time.Millisecond
	simEach  = 5 // requests that one call of Shed stands for
)

func newSimulation() *simulation {
	return &simulation{rng: rand.New(rand.NewPCG(1, 2)), memory: 0.5}
}

func (s *simulation) config() OverloadConfig {
	return OverloadConfig{Sampler: s.sample, Rand: s.random, Collect: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.collected++
	}}
}

// random needs no lock: only run calls Shed.
func (s *simulation) random() uint64 { return s.rng.Uint64() }

func (s *simulation) sample() (LoadSample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return LoadSample{}, fmt.Errorf("no such file")
	}
	return LoadSample{CPUTime: s.used, CPUs: simCPUs, MemoryUsed: int64(s.memory * 1e9), MemoryBound: 1e9, MemoryBy: "bound of the test",
		Collections: s.collected}, nil
}

// run lets virtual time pass, and calls each after every slice of it.
func (s *simulation) run(d time.Duration, each func()) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(simSlice)
		synctest.Wait()
		s.slice()
		if each != nil {
			each()
		}
	}
}

func (s *simulation) slice() {
	const cost = time.Duration(simEach * simCPUs * float64(time.Second) / simRate)
	admitted := 0
	for p := range s.arriving {
		s.due[p] += s.arriving[p] / simEach * simSlice.Seconds()
		for ; s.due[p] >= 1; s.due[p]-- {
			s.came[p]++
			if s.overload.Shed(uint8(p)) {
				s.shed[p]++
				s.queue += cost / 50
				continue
			}
			admitted++
			s.queue += cost
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	room := time.Duration(float64(simSlice) * simCPUs)
	other := min(time.Duration(float64(room)*(s.base+s.noise*s.rng.Float64())), room)
	s.queue = min(s.queue, time.Duration(simCPUs)*time.Second)
	worked := min(s.queue, room-other)
	s.queue -= worked
	s.used += worked + other
	s.memory += float64(admitted) * simEach * s.perAdmit
	s.memory -= max(0, s.memory-0.5) * s.leaves * simSlice.Seconds()
}

// forget starts the counts anew.
func (s *simulation) forget() { s.came, s.shed = [priorities]int{}, [priorities]int{} }

// part is the fraction of a priority's requests that was shed since forget.
func (s *simulation) part(p uint8) float64 {
	return float64(s.shed[p]) / float64(max(s.came[p], 1))
}

// load is the mean share of the processors used since the process had used that much.
func (s *simulation) load(used time.Duration, since time.Time) float64 {
	return float64(s.used-used) / (float64(time.Since(since)) * simCPUs)
}

// changes collects what an observer is told.
type changes struct {
	mu   sync.Mutex
	list []string
}

func (c *changes) OverloadChanged(active bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, fmt.Sprintf("%v: %s", active, why))
}

func (c *changes) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.list...)
}

// start makes the Overload of a simulation. It must be called in a bubble.
func (s *simulation) start(t *testing.T, cfg OverloadConfig) *changes {
	t.Helper()
	seen := &changes{}
	cfg.Observer = seen
	s.overload = NewOverload(cfg)
	t.Cleanup(func() { s.overload.Close() })
	time.Sleep(simSlice / 2) // no slice falls on a sample
	return seen
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s is %.3f, outside %.3f to %.3f", what, got, low, high)
	}
}
