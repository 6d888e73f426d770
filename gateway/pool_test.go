package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

var errRefused = errors.New("connection refused")

// scene is a pool in virtual time, without a network. It must be used within synctest.Test.
type scene struct {
	*pool
	away   atomic.Bool // whether probes fail
	probes []time.Duration
	told   []string
	begun  time.Time
}

func newScene(t *testing.T, n int, cfg Config) *scene {
	t.Helper()
	s := &scene{begun: time.Now()}
	for i := range n {
		cfg.Upstreams = append(cfg.Upstreams, fmt.Sprintf("http://u%d", i))
	}
	cfg.UpstreamChanged = func(upstream string, ejected bool, why string) {
		s.told = append(s.told, fmt.Sprintf("%s %s %t: %s", time.Since(s.begun).Round(time.Millisecond), upstream, ejected, why))
	}
	if cfg.Random == nil {
		cfg.Random = func() float64 { return 0 }
	}
	cfg = cfg.withDefaults()
	endpoints, err := cfg.endpoints()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // several upstreams may be probed at a time
	s.pool = newPool(endpoints, &cfg, func(context.Context, *upstream) error {
		mu.Lock()
		defer mu.Unlock()
		s.probes = append(s.probes, time.Since(s.begun).Round(time.Millisecond))
		if s.away.Load() {
			return errRefused
		}
		return nil
	})
	t.Cleanup(s.close)
	return s
}

// sends has requests end in one way at an upstream.
func (s *scene) sends(t *testing.T, u *upstream, n int, o outcome) {
	t.Helper()
	for range n {
		at, ok := s.enter(&search{now: time.Now()}, u)
		if !ok {
			t.Fatalf("%s takes no request", u.name)
		}
		at.report(o, untimed, errRefused)
		at.leave()
	}
}

func TestEjectionAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, Config{})
		u := s.all[0]
		s.away.Store(true)
		s.sends(t, u, 5, failed)
		if got := len(*s.open.Load()); got != 1 || s.serving.Load() != 1 {
			t.Errorf("%d are open", got)
		}
		time.Sleep(6500 * time.Millisecond)
		s.away.Store(false)
		time.Sleep(time.Second)
		if st := u.stats(); !st.Ejected || !st.OnTrial || st.Why == "" || st.Failures != 5 || st.Requests != 5 {
			t.Errorf("on trial it shows %+v", st)
		}
		s.sends(t, u, 1, failed) // the trial fails: twice as long
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s.sends(t, u, 1, good)
		want := []string{
			"0s http://u0:80 true: 5 failures in a row, the last: connection refused",
			"7.5s http://u0:80 true: its trial failed, the last: connection refused",
			"17.5s http://u0:80 false: a request on trial was answered",
		}
		if !slices.Equal(s.told, want) {
			t.Errorf("told\n%s", strings.Join(s.told, "\n"))
		}
		if want := []time.Duration{5 * time.Second, 6 * time.Second, 7 * time.Second, 17500 * time.Millisecond}; !slices.Equal(s.probes, want) {
			t.Errorf("probes at %v, want %v", s.probes, want)
		}
		if st := u.stats(); st.Ejected || st.OnTrial || st.Why != "" || !st.Since.Equal(time.Now()) {
			t.Errorf("back in service it shows %+v", st)
		}
	})
}

func TestAllEjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, Config{})
		s.sends(t, s.all[0], 5, failed)
		time.Sleep(1500 * time.Millisecond)
		s.sends(t, s.all[1], 5, failed)
		for _, want := range []time.Duration{3500 * time.Millisecond, 2500 * time.Millisecond, 1500 * time.Millisecond, time.Second} {
			if _, refused := s.pick(search{now: time.Now()}); refused == nil || *refused != (refusal{after: want}) {
				t.Errorf("refused with %+v, want after %s", refused, want)
			}
			time.Sleep(time.Second)
		}
		at, refused := s.pick(search{now: time.Now()}) // the first is on trial since 5 s
		if refused != nil || at.u != s.all[0] {
			t.Fatalf("%+v %+v", at.u, refused)
		}
		if _, refused := s.pick(search{now: time.Now()}); refused == nil || refused.after != time.Second {
			t.Errorf("two at a time go to the one on trial: %+v", refused)
		}
		at.leave()
	})
}

// The last one in service is not ejected for saying that it is busy, also when the other one goes at the same time.
func TestTheLastMayBeBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, Config{})
		s.sends(t, s.all[0], 5, busy)
		s.sends(t, s.all[1], 50, busy)
		if len(s.told) != 1 || s.serving.Load() != 1 {
			t.Errorf("told %q", s.told)
		}
		at, _ := s.enter(&search{now: time.Now()}, s.all[1])
		s.eject(time.Now(), &at, judgement{eject: "judged before the other went", mild: true})
		if len(s.told) != 1 {
			t.Errorf("told %q", s.told)
		}
		at.leave()
	})
}

// A client that can have the service answer 503 cannot bring all load onto one upstream: half of them stay. What cannot be reached
// does not.
func TestHalfStaysForBeingBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n, gone := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 10: 5} {
			s := newScene(t, n, Config{})
			for _, u := range s.all {
				s.sends(t, u, 5, busy)
			}
			if len(s.told) != gone || int(s.serving.Load()) != n-gone {
				t.Errorf("of %d: %q", n, s.told)
			}
			for _, u := range s.all[gone:] {
				s.sends(t, u, 5, failed)
			}
			if s.serving.Load() != 0 {
				t.Errorf("of %d failing ones %d stay", n, s.serving.Load())
			}
		}
	})
}

// Where fewer than half are in service, one that answers 503 on trial comes back: it is better than none.
func TestTrialOfABusyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 4, Config{Ejection: Ejection{For: 5 * time.Second}})
		for _, u := range s.all[:3] {
			s.sends(t, u, 5, failed)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		s.sends(t, s.all[0], 1, busy)
		s.sends(t, s.all[1], 1, busy)
		want := []string{"5s http://u0:80 false: a request on trial was answered", "5s http://u1:80 true: its trial failed, the last: connection refused"}
		if got := s.told[3:]; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestClosedPoolEjectsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, Config{})
		s.sends(t, s.all[0], 5, failed)
		s.close()
		s.sends(t, s.all[1], 20, failed)
		time.Sleep(time.Hour)
		if len(s.probes) != 0 || len(s.told) != 1 {
			t.Errorf("after the end: probes %v, told %q", s.probes, s.told)
		}
		s.close()
	})
}

// A probe that hangs is ended with the pool.
func TestCloseEndsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, Config{})
		ended := false
		s.probe = func(ctx context.Context, _ *upstream) error {
			<-ctx.Done()
			ended = true
			return ctx.Err()
		}
		s.sends(t, s.all[0], 5, failed)
		time.Sleep(time.Minute)
		s.close()
		if !ended {
			t.Error("the probe goes on")
		}
	})
}

func TestTheOneWithFewerRequestsIsChosen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 10, Config{Random: random.Float64})
		counts := map[*upstream]int{}
		for range 10_000 {
			at, refused := s.pick(search{now: time.Now()})
			if refused != nil {
				t.Fatal(refused)
			}
			counts[at.u]++
		}
		// With one choice the largest would have 1000 and some 30 more; with two it has hardly any (log log n / log 2).
		for u, n := range counts {
			if math.Abs(float64(n-1000)) > 4 {
				t.Errorf("%s has %d of 10000 requests", u.name, n)
			}
		}
	})
}

func TestDrawnAreTwo(t *testing.T) {
	for _, r := range []float64{0, 0.5, 0.999999999999, 1} {
		s := &pool{cfg: &Config{Random: func() float64 { return r }}}
		for n := 2; n < 20; n++ {
			if a, b := s.draw(n); a == b || min(a, b) < 0 || max(a, b) >= n {
				t.Errorf("%d and %d of %d", a, b, n)
			}
		}
	}
}

func TestCrowdedUpstreamsAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, Config{Adaptive: &Adaptive{Initial: 4}})
		var taken []attempt
		for range 8 {
			at, refused := s.pick(search{now: time.Now(), priority: httpverdict.PriorityNormal})
			if refused != nil {
				t.Fatalf("after %d: %+v", len(taken), refused)
			}
			taken = append(taken, at)
		}
		if _, refused := s.pick(search{now: time.Now(), priority: httpverdict.PriorityNormal}); refused == nil || !refused.crowded || refused.after != time.Second {
			t.Errorf("the ninth: %+v", refused)
		}
		taken[0].leave()
		taken[1].leave()
		if _, refused := s.pick(search{now: time.Now(), priority: httpverdict.PrioritySheddable}); refused == nil {
			t.Error("one of lower priority takes the place that one of higher priority has missed")
		}
		if at, refused := s.pick(search{now: time.Now(), priority: httpverdict.PriorityNormal}); refused != nil {
			t.Error("there is no place for one of the same priority")
		} else {
			at.leave()
		}
		time.Sleep(squeeze)
		if at, refused := s.pick(search{now: time.Now(), priority: httpverdict.PrioritySheddable}); refused != nil {
			t.Error("the place is kept for longer than a second")
		} else {
			at.leave()
		}
		for _, at := range taken[2:] {
			at.leave()
		}
		if st := s.all[0].stats(); st.Limit != 4 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}
