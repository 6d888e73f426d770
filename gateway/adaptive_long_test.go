package gateway

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Requests that take long, such as reports, keep their places while the time without a queue is measured; that must not shut out all
// others until they are over.
func TestAdaptiveProbeBesideLongRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 3 * time.Minute
		l := newLimiter(Adaptive{}.withDefaults(), time.Now())
		s := newSimulated(4, 0.2)
		start := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for time.Since(start) < lasts {
					if entered := time.Now(); l.enter(entered, httpverdict.PriorityNormal) {
						time.Sleep(30 * time.Second)
						l.leave(time.Now(), entered, timed)
					}
					time.Sleep(time.Second)
				}
			})
		}
		var mu sync.Mutex
		last, gap, served := start, time.Duration(0), 0
		for range 80 {
			all.Go(func() {
				for time.Since(start) < lasts {
					entered := time.Now()
					if !l.enter(entered, httpverdict.PriorityNormal) {
						time.Sleep(50 * time.Millisecond)
						continue
					}
					mu.Lock()
					gap, last = max(gap, entered.Sub(last)), entered
					served++
					mu.Unlock()
					s.serve()
					l.leave(time.Now(), entered, timed)
				}
			})
		}
		all.Wait()
		t.Logf("%d were served, none for %s", served, gap)
		if gap > 1500*time.Millisecond {
			t.Errorf("nobody is let in for %s", gap)
		}
	})
}

// What clients break off at once, while nothing is known of the service yet, is not how fast it is.
func TestAdaptiveLearnsNothingFromAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Adaptive{}.withDefaults(), time.Now())
		for range 2000 {
			entered := time.Now()
			if !l.enter(entered, httpverdict.PriorityNormal) {
				t.Fatal("there is no place")
			}
			time.Sleep(time.Millisecond)
			l.leave(time.Now(), entered, atLeast)
		}
		if l.unforced != 0 || l.now() != DefaultAdaptiveInitial {
			t.Errorf("the limit is %d, the time without a queue %s", l.now(), l.unforced)
		}
	})
}
