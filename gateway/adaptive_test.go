package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// simulated is a service with so many workers, whose work takes longer the more requests wait for one: memory, locks and switches
// between threads cost.
type simulated struct {
	workers chan struct{}
	work    time.Duration
	strain  float64 // how much longer, for each full set of waiting requests

	mu     sync.Mutex
	random *rand.Rand
	n      int
}

func (s *simulated) serve() {
	s.mu.Lock()
	s.n++
	queued := max(s.n-cap(s.workers), 0)
	took := float64(s.work) * (0.5 + s.random.Float64()) * (1 + s.strain*float64(queued)/float64(cap(s.workers)))
	s.mu.Unlock()
	s.workers <- struct{}{}
	time.Sleep(time.Duration(took)) // virtual time
	<-s.workers
	s.mu.Lock()
	s.n--
	s.mu.Unlock()
}

// crowd is what a crowd of clients, each of which asks again as soon as it is answered, or 50 ms after it is refused, gets out of a
// service.
type crowd struct {
	share        float64 // of the most that the service can do
	median, high time.Duration
	limits       []int // once a second
}

func (c crowd) String() string {
	return fmt.Sprintf("%.2f of the best, p50 %v, p99 %v, limits %v", c.share, c.median.Round(time.Millisecond), c.high.Round(time.Millisecond), c.limits)
}

// besiege measures the second half of a time. A nil limiter limits nothing.
func besiege(s *simulated, l *limiter, clients int, lasts time.Duration) (c crowd) {
	var mu sync.Mutex
	var took []time.Duration
	start := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for time.Since(start) < lasts {
				entered := time.Now()
				if l != nil && !l.enter(entered, httpverdict.PriorityNormal) {
					time.Sleep(50 * time.Millisecond)
					continue
				}
				s.serve()
				if l != nil {
					l.leave(time.Now(), entered, timed)
				}
				if entered.Sub(start) > lasts/2 {
					mu.Lock()
					took = append(took, time.Since(entered))
					mu.Unlock()
				}
			}
		})
	}
	if l != nil {
		all.Go(func() {
			for time.Since(start) < lasts {
				time.Sleep(time.Second)
				c.limits = append(c.limits, l.now())
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	c.share = float64(len(took)) * float64(s.work) / float64(lasts/2) / float64(cap(s.workers))
	c.median, c.high = took[len(took)/2], took[len(took)*99/100]
	return c
}

func newSimulated(workers int, strain float64) *simulated {
	return &simulated{workers: make(chan struct{}, workers), work: 20 * time.Millisecond, strain: strain, random: rand.New(rand.NewPCG(1, 2))}
}

func TestAdaptiveSettles(t *testing.T) {
	for _, c := range []struct {
		name             string
		workers, clients int
		strain           float64
		low, high        int           // of the limit in the second half
		share            float64       // of the best, at least
		p99              time.Duration // at most; the work alone takes up to 30 ms
		without          float64       // what is left of the best without a limit, at most
	}{
		{"a small service", 4, 80, 0.2, 4, 10, 0.83, 90 * time.Millisecond, 0.25},
		{"a crowd somewhat too large", 20, 50, 0.2, 23, 33, 0.90, 50 * time.Millisecond, 0.80},
		{"a crowd far too large", 20, 400, 0.2, 23, 33, 0.90, 50 * time.Millisecond, 0.25},
		{"no strain", 20, 400, 0, 23, 35, 0.96, 50 * time.Millisecond, 1.01},
		{"much strain", 20, 400, 1, 22, 30, 0.75, 70 * time.Millisecond, 0.06},
		{"a large service", 200, 1000, 0.2, 210, 280, 0.90, 50 * time.Millisecond, 0.60},
	} {
		t.Run(c.name, func(t *testing.T) {
			if underRace && c.workers > 100 {
				t.Skip("two million simulated requests take long under the race detector; the smaller services run")
			}
			synctest.Test(t, func(t *testing.T) {
				cfg := Adaptive{}.withDefaults()
				with := besiege(newSimulated(c.workers, c.strain), newLimiter(cfg, time.Now()), c.clients, time.Minute)
				without := besiege(newSimulated(c.workers, c.strain), nil, c.clients, time.Minute)
				t.Logf("with: %s", with)
				t.Logf("without: %s", without)
				if settled := with.limits[30:]; slices.Min(settled) < c.low || slices.Max(settled) > c.high {
					t.Errorf("the limit goes from %d to %d, want %d to %d", slices.Min(settled), slices.Max(settled), c.low, c.high)
				}
				if with.share < c.share || with.high > c.p99 {
					t.Errorf("%.2f of the best in %v, want %.2f in %v", with.share, with.high, c.share, c.p99)
				}
				if without.share > c.without {
					t.Errorf("without a limit there is %.2f of the best: the simulation shows nothing", without.share)
				}
			})
		})
	}
}

// A service whose work takes three times as long is not one that is pressed.
func TestAdaptiveFollowsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(20, 0.2)
		l := newLimiter(Adaptive{}.withDefaults(), time.Now())
		besiege(s, l, 200, 30*time.Second)
		s.work *= 3
		if got := besiege(s, l, 200, 40*time.Second); got.share < 0.88 || slices.Min(got.limits[20:]) < 20 || slices.Max(got.limits[20:]) > 36 {
			t.Errorf("slower work: %s", got)
		}
		s.work /= 3
		if got := besiege(s, l, 200, 40*time.Second); got.share < 0.88 || slices.Min(got.limits[20:]) < 20 || slices.Max(got.limits[20:]) > 36 {
			t.Errorf("the work of before: %s", got)
		}
	})
}

// What nobody asks for is not learnt: a limit that has grown without a need would let a crowd in all at once.
func TestAdaptiveGrowsByNeedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Adaptive{}.withDefaults(), time.Now())
		besiege(newSimulated(100, 0), l, 15, 30*time.Second)
		if l.now() != DefaultAdaptiveInitial {
			t.Errorf("for 15 clients the limit is %d", l.now())
		}
	})
}
