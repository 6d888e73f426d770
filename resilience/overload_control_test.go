package resilience

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is measured, in whatever order: fractions are fractions, who is more important loses no more, and processor time
// alone costs no critical request.
func TestControllerInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newController(defaultSampling)
		at := time.Unix(1_700_000_000, 0)
		arrivals := rapid.SampledFrom([]float64{0, 0, 1, 50, 1e6, 1e12})
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			elapsed := time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "elapsed"))
			at = at.Add(elapsed)
			m := measure{
				at: at, elapsed: elapsed, cpu: rapid.Float64Range(0, 1).Draw(t, "cpu"), memory: rapid.Float64Range(0, 3).Draw(t, "memory"),
				limits: thresholds{cpu: rapid.SampledFrom([]float64{1e-9, 0.5, 0.9, 1, 7}).Draw(t, "t"), memory: rapid.SampledFrom([]float64{1e-9, 0.85, 1, 7}).Draw(t, "tm")},
				pass:   rapid.IntRange(0, 9).Draw(t, "pass") == 0,
			}
			for p := range m.arrived {
				m.arrived[p] = arrivals.Draw(t, "arrived")
			}
			r := c.step(&m)
			near := m.limits.memory < 1 && m.memory > m.limits.memory+(1-m.limits.memory)*2/3
			for _, f := range r.shed {
				if !(f >= 0 && f <= 1) {
					t.Fatalf("shed %v", r.shed)
				}
			}
			switch {
			case r.shed[Critical] > r.shed[Normal] || r.shed[Normal] > r.shed[Sheddable]:
				t.Fatalf("the wrong ones first: %v", r.shed)
			case r.shed[Critical] > 0 && !near:
				t.Fatalf("critical requests shed at memory %v of %v: %v", m.memory, m.limits.memory, r.shed)
			case r.shed != [priorities]float64{} && (m.pass || !r.active):
				t.Fatalf("shed %v, pass %v, active %v", r.shed, m.pass, r.active)
			case !(c.admit >= minAdmit && c.admit <= 1) || !(c.cpu >= 0 && c.cpu <= 1):
				t.Fatalf("let in %v, load %v", c.admit, c.cpu)
			}
		}
		last := thresholds{cpu: rapid.SampledFrom([]float64{1e-6, 0.01, 0.5, 0.9}).Draw(t, "last"), memory: 0.85}
		for range 200 { // and it always ends
			at = at.Add(defaultSampling)
			m := measure{at: at, elapsed: defaultSampling, limits: last}
			if r := c.step(&m); !r.active {
				return
			}
		}
		t.Fatalf("still at it after 40 s of nothing: %+v", c)
	})
}

// Samples that come late, since the process gets no time, count for as long as they stand for.
func TestControllerLateSamples(t *testing.T) {
	t.Parallel()
	admit := func(interval time.Duration) float64 {
		c, at := newController(defaultSampling), time.Unix(0, 0)
		for end := at.Add(3 * time.Second); at.Before(end); {
			at = at.Add(interval)
			c.step(&measure{at: at, elapsed: interval, cpu: 1, limits: thresholds{cpu: 0.9, memory: 0.85}})
		}
		return c.admit
	}
	if quick, late := admit(200*time.Millisecond), admit(600*time.Millisecond); late > 2*quick || quick > 2*late {
		t.Errorf("after 3 s %.3f is let in with samples in time, %.3f with late ones", quick, late)
	}
}

// drive feeds a controller with load, requests of normal priority only.
func drive(c *controller, at *time.Time, cpu float64, steps int) (r ruling) {
	for range steps {
		*at = at.Add(defaultSampling)
		m := measure{at: *at, elapsed: defaultSampling, cpu: cpu, limits: thresholds{cpu: 0.9, memory: 0.85}}
		m.arrived[Normal] = 1000
		r = c.step(&m)
	}
	return r
}

// However long the processors are saturated, a hundredth of the requests is let in, so that the way back is found and nobody is shut
// out for good.
func TestControllerStarvesNobody(t *testing.T) {
	t.Parallel()
	c, at := newController(defaultSampling), time.Unix(0, 0)
	if r := drive(c, &at, 1, 1000); r.shed[Normal] > 1-minAdmit+1e-9 || r.shed[Normal] < 0.98 {
		t.Errorf("shed %v after 200 s at 100%%", r.shed)
	}
	if r := drive(c, &at, 0.3, 60); r.active || r.shed != [priorities]float64{} {
		t.Errorf("shed %v, active %v after 12 s of calm", r.shed, r.active)
	}
}

// What is let in moves only where the smoothed and the last measure agree: not down for what the last cut has cured already, nor up
// for one quiet sample.
func TestControllerWaitsForBoth(t *testing.T) {
	t.Parallel()
	c, at := newController(defaultSampling), time.Unix(0, 0)
	drive(c, &at, 1, 10)
	before := c.admit
	if drive(c, &at, 0.88, 1); c.cpu <= 0.9 || c.admit != before {
		t.Errorf("smoothed %.3f, last 0.88: let in %.3f, was %.3f", c.cpu, c.admit, before)
	}
	if drive(c, &at, 0.1, 1); c.admit <= before { // smoothed below the band as well
		t.Errorf("smoothed %.3f, last 0.1: let in %.3f, was %.3f", c.cpu, c.admit, before)
	}
	before = c.admit
	if drive(c, &at, 0.87, 1); c.cpu >= 0.85 || c.admit != before {
		t.Errorf("smoothed %.3f, last 0.87: let in %.3f, was %.3f", c.cpu, c.admit, before)
	}
}

// An overload is over when it has been calm for two seconds without a break.
func TestControllerCalm(t *testing.T) {
	t.Parallel()
	c, at := newController(defaultSampling), time.Unix(0, 0)
	step := func(memory float64) bool {
		at = at.Add(defaultSampling)
		return c.step(&measure{at: at, elapsed: defaultSampling, memory: memory, limits: thresholds{cpu: 0.9, memory: 0.85}}).active
	}
	for i, memory := range []float64{0.86, 0.5, 0.5, 0.5, 0.5, 0.5, 0.83, 0.81, 0.81, 0.81, 0.81, 0.81, 0.81, 0.81, 0.81, 0.81, 0.81} {
		if !step(memory) {
			t.Fatalf("over at sample %d", i)
		}
	}
	if step(0.81) {
		t.Error("still at it after two seconds of calm")
	}
}
