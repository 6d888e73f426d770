package resilience

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Floods of several sizes and mixtures are cut to what the process can do, near the threshold, and nobody critical is lost.
func TestOverloadSettles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		arriving        [priorities]float64 // of 10,000/s
		normal, shedabl [2]float64          // the parts of each that are shed, from and to
	}{
		{"a little too much, sheddable enough", [priorities]float64{1000, 5000, 6000}, [2]float64{0, 0.02}, [2]float64{0.4, 0.75}},
		{"twice, nothing sheddable", [priorities]float64{1000, 19000, 0}, [2]float64{0.5, 0.7}, [2]float64{0, 0}},
		{"twice, all sheddable", [priorities]float64{0, 0, 20000}, [2]float64{0, 0}, [2]float64{0.5, 0.7}},
		{"ten times, mixed", [priorities]float64{2000, 48000, 50000}, [2]float64{0.84, 0.97}, [2]float64{0.99, 1}},
		{"sheddable lost in full, normal in part", [priorities]float64{1000, 10000, 5000}, [2]float64{0.1, 0.4}, [2]float64{0.97, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation()
				s.base = 0.05
				seen := s.start(t, s.config())
				s.arriving = [priorities]float64{500, 1000, 500}
				s.run(5*time.Second, nil)
				if s.part(Normal)+s.part(Sheddable) != 0 || s.overload.gate.Load() != 0 {
					t.Fatalf("shed %v while calm", s.shed)
				}
				s.arriving = tc.arriving
				s.run(10*time.Second, nil)
				s.forget()
				used, since := s.used, time.Now()
				s.run(time.Minute, nil)
				within(t, "the load", s.load(used, since), 0.82, 0.93)
				within(t, "what is shed of normal", s.part(Normal), tc.normal[0], tc.normal[1])
				within(t, "what is shed of sheddable", s.part(Sheddable), tc.shedabl[0], tc.shedabl[1])
				within(t, "what is shed of critical", s.part(Critical), 0, 0)
				within(t, "the queue in seconds", s.queue.Seconds(), 0, 0.2)
				if list := seen.all(); len(list) != 1 || !strings.HasPrefix(list[0], "true: cpu at 9") {
					t.Errorf("told %q, want to be told once", list)
				}
			})
		})
	}
}

// A flood is noticed within a second and cut to size soon; when it ends, everything is let in again without anybody's help.
func TestOverloadComesAndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		seen := s.start(t, s.config())
		calm, flood := [priorities]float64{200, 1000, 800}, [priorities]float64{1000, 20000, 29000}
		for round := range 3 {
			s.arriving = calm
			s.run(5*time.Second, nil)
			s.arriving = flood
			s.forget()
			began := time.Now()
			var noticed, drained time.Duration
			s.run(20*time.Second, func() {
				if noticed == 0 && s.shed[Sheddable] > 0 {
					noticed = time.Since(began)
				}
				if noticed > 0 && drained == 0 && s.queue < 50*time.Millisecond {
					drained = time.Since(began)
				}
			})
			within(t, "seconds until it is noticed", noticed.Seconds(), 0.2, 1)
			within(t, "seconds until nothing waits", drained.Seconds(), 1, 6)
			s.arriving = calm
			s.run(15*time.Second, nil)
			s.forget()
			s.run(time.Second, nil)
			st := s.overload.Stats()
			if s.shed != [priorities]int{} || st.Active || s.overload.Danger() || s.overload.gate.Load() != 0 || st.Shedding != [priorities]float64{} {
				t.Errorf("after the flood: shed %v, %+v", s.shed, st)
			}
			if n := len(seen.all()); n != 2*(round+1) {
				t.Errorf("told %d times after %d floods: %q", n, round+1, seen.all())
			}
		}
		if last := seen.all()[5]; !strings.HasPrefix(last, "false: cpu at ") {
			t.Errorf("the end is told as %q", last)
		}
	})
}

// Load on and around the threshold does not make it flap, nor does noise.
func TestOverloadDoesNotFlap(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{7500, 8000, 8500, 9000, 9500} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation()
				s.base, s.noise = 0, 0.15
				seen := s.start(t, s.config())
				s.arriving = [priorities]float64{0, rate / 2, rate / 2}
				s.run(2*time.Minute, nil)
				if n := len(seen.all()); n > 3 {
					t.Errorf("told %d times in two minutes: %q", n, seen.all())
				}
				within(t, "what is shed of normal", s.part(Normal), 0, 0.01)
				within(t, "what is shed of sheddable", s.part(Sheddable), 0, 0.45)
			})
		})
	}
}

// What only critical requests cause, or work that is not a request's, sheds the others and never the critical.
func TestOverloadNeverShedsCriticalByCPU(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		s.start(t, s.config())
		s.arriving = [priorities]float64{50000, 100, 100}
		s.run(30*time.Second, nil)
		s.forget()
		s.run(time.Minute, nil)
		within(t, "what is shed of critical", s.part(Critical), 0, 0)
		within(t, "what is shed of normal", s.part(Normal), 0.97, 1)
		within(t, "what is shed of sheddable", s.part(Sheddable), 0.97, 1)
		if st := s.overload.Stats(); st.Shed[Critical] != 0 || st.Shed[Normal] == 0 || st.Shed[Sheddable] == 0 {
			t.Errorf("shed %v", st.Shed)
		}
	})
}

// A burst as short as a collection of garbage trips nothing.
func TestOverloadIgnoresShortBursts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		seen := s.start(t, s.config())
		s.arriving = [priorities]float64{0, 2500, 2500}
		for range 10 {
			s.base = 0
			s.run(2*time.Second, nil)
			s.base = 1
			s.run(160*time.Millisecond, nil)
		}
		if len(seen.all()) != 0 || s.shed != [priorities]int{} {
			t.Errorf("shed %v, told %q", s.shed, seen.all())
		}
	})
}

// Memory that requests hold is kept below its bound: what is shed follows it, and it stands still where as much comes as goes.
func TestOverloadBoundsMemory(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		perAdmit float64 // of the bound, at 2000/s of each
		low      float64
		high     float64
		shed     [priorities][2]float64
	}{
		{"there is room", 1.0 / 200000, 0.6, 0.66, [priorities][2]float64{}},
		{"some sheddable must go", 1.0 / 69000, 0.85, 0.90, [priorities][2]float64{{}, {}, {0.02, 0.98}}},
		{"all sheddable and some normal", 1.0 / 40000, 0.90, 0.95, [priorities][2]float64{{}, {0.02, 0.98}, {1, 1}}},
		{"critical too", 1.0 / 10500, 0.95, 1.0, [priorities][2]float64{{0.02, 0.98}, {1, 1}, {1, 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation()
				s.perAdmit, s.leaves = tc.perAdmit, 0.2
				seen := s.start(t, s.config())
				s.arriving = [priorities]float64{2000, 1500, 1500}
				s.run(30*time.Second, nil)
				s.forget()
				s.run(30*time.Second, nil)
				within(t, "memory", s.memory, tc.low, tc.high)
				for p, want := range tc.shed {
					within(t, fmt.Sprint("what is shed of priority ", p), s.part(uint8(p)), want[0], want[1])
				}
				over := tc.shed[Sheddable][1] > 0
				if s.overload.Danger() != over || (len(seen.all()) == 1) != over {
					t.Errorf("danger %v, told %q", s.overload.Danger(), seen.all())
				}
				s.arriving = [priorities]float64{}
				s.run(20*time.Second, nil)
				if s.overload.gate.Load() != 0 || s.overload.Danger() || s.overload.Stats().Active {
					t.Errorf("it does not end: %+v", s.overload.Stats())
				}
			})
		})
	}
}

// Garbage that nobody has collected is collected before and while requests are turned away for it, once in 5 s.
func TestOverloadCollects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		s.start(t, s.config())
		s.run(10*time.Second, nil)
		if s.collected != 0 {
			t.Fatalf("collected %d times while there was room", s.collected)
		}
		s.memory = 0.88
		s.run(16*time.Second, nil)
		if s.collected < 3 || s.collected > 4 {
			t.Errorf("collected %d times in 16 s", s.collected)
		}
	})
}

func TestOverloadPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		cfg := s.config()
		cfg.Pass = true
		s.start(t, cfg)
		s.arriving = [priorities]float64{5000, 20000, 20000}
		s.run(5*time.Second, nil)
		if !s.overload.Danger() || s.shed != [priorities]int{} || !s.overload.Stats().Active {
			t.Errorf("danger %v, shed %v, %+v", s.overload.Danger(), s.shed, s.overload.Stats())
		}
		s.overload.SetPass(false)
		s.run(5*time.Second, nil)
		if s.shed[Sheddable] == 0 {
			t.Error("nothing shed after a new policy asks for it")
		}
		s.overload.SetThresholds(2, 2) // never
		s.run(15*time.Second, nil)
		if s.overload.Danger() || s.overload.Stats().Active || s.overload.gate.Load() != 0 {
			t.Errorf("above all thresholds: %+v", s.overload.Stats())
		}
		s.overload.SetThresholds(0, math.NaN())
		s.run(time.Second, nil)
		if st := s.overload.Stats(); st.CPUThreshold != DefaultCPUThreshold || st.MemoryThreshold != DefaultMemoryThreshold {
			t.Errorf("thresholds %v and %v", st.CPUThreshold, st.MemoryThreshold)
		}
	})
}

// Who cannot see does not shed for long; and a process that was stopped, or whose clock was set, is not overloaded by that.
func TestOverloadBlindAndStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		var log bytes.Buffer
		cfg := s.config()
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		var skew time.Duration
		cfg.Now = func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return time.Now().Round(0).Add(skew)
		}
		seen := s.start(t, cfg)
		s.arriving = [priorities]float64{0, 20000, 20000}
		s.run(5*time.Second, nil)
		s.mu.Lock()
		s.broken = true
		s.mu.Unlock()
		s.run(time.Second, nil)
		if s.overload.gate.Load() == 0 {
			t.Error("one second without a sample ends it all")
		}
		s.run(2*time.Second, nil)
		if st := s.overload.Stats(); st.Active || st.Failures < 10 || s.overload.gate.Load() != 0 || !strings.Contains(st.Why, "no such file") {
			t.Errorf("blind: %+v", st)
		}
		s.mu.Lock()
		s.broken, s.arriving, s.queue = false, [priorities]float64{}, 0
		s.mu.Unlock()
		s.run(3*time.Second, nil)
		for _, d := range []time.Duration{-time.Hour, time.Hour} {
			s.mu.Lock()
			skew += d
			s.mu.Unlock()
			s.run(3*time.Second, nil)
		}
		if n := len(seen.all()); n != 2 {
			t.Errorf("told %q", seen.all())
		}
		s.mu.Lock()
		s.arriving = [priorities]float64{0, 20000, 20000}
		s.mu.Unlock()
		s.run(5*time.Second, nil)
		if !s.overload.Danger() {
			t.Error("a flood after a step of the clock is not noticed")
		}
		s.overload.Close()
		for _, want := range []string{"the process is overloaded", "turns_off=\"sheddable requests first", "cannot be read", "is known again", "not overloaded any more"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is not logged:\n%s", want, log.String())
			}
		}
	})
}

func TestOverloadClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation()
		s.start(t, s.config())
		s.arriving = [priorities]float64{0, 40000, 0}
		s.run(5*time.Second, nil)
		if !s.overload.Danger() || s.overload.gate.Load() == 0 {
			t.Fatal("no overload to end")
		}
		for range 2 {
			if err := s.overload.Close(); err != nil {
				t.Error(err)
			}
		}
		if s.overload.Danger() || s.overload.Shed(Sheddable) {
			t.Error("it goes on after Close")
		}
	})
}

func TestPack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		shed  [priorities]float64
		count bool
		want  uint64
	}{
		{want: 0},
		{count: true, want: counting},
		{shed: [priorities]float64{0, 0, 1}, want: counting | 0xFFFF<<32},
		{shed: [priorities]float64{2, 1e-9, 0.5}, want: counting | 0xFFFF | 1<<16 | 0x7FFF<<32},
		{shed: [priorities]float64{math.NaN(), -1, math.Inf(1)}, want: counting | 0xFFFF<<32},
	} {
		if got := pack(tc.shed, tc.count); got != tc.want {
			t.Errorf("pack(%v, %v) = %#x, want %#x", tc.shed, tc.count, got, tc.want)
		}
	}
}

// Shed sheds as large a part as it is told, of each priority and of those that nobody has heard of.
func TestShedParts(t *testing.T) { // not parallel: it counts allocations
	n := uint64(0)
	o := &Overload{cfg: OverloadConfig{Rand: func() uint64 { n += 1 << 60 / 625; return n }}}
	o.gate.Store(pack([priorities]float64{0, 0.25, 1}, false))
	var shed [256]int
	for range 10000 {
		for p := range shed {
			if o.Shed(uint8(p)) {
				shed[p]++
			}
		}
	}
	if shed[Critical] != 0 || shed[Normal] < 2400 || shed[Normal] > 2600 || shed[Sheddable] != 10000 || shed[255] != 10000 {
		t.Errorf("shed %v", shed[:3])
	}
	if n := testing.AllocsPerRun(100, func() { o.Shed(Normal) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkShed(b *testing.B) {
	for _, bc := range []struct {
		name string
		gate uint64
	}{{"calm", 0}, {"counting", counting}, {"shedding", pack([priorities]float64{0, 0.5, 1}, true)}} {
		o := &Overload{cfg: OverloadConfig{}.withDefaults()}
		o.gate.Store(bc.gate)
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.Shed(Normal)
			}
		})
		b.Run(bc.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					o.Shed(Normal)
				}
			})
		})
	}
}
