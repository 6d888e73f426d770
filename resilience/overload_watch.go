package resilience

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// watch is the goroutine that samples.
type watch struct {
	o          *Overload
	control    *controller
	last       LoadSample
	lastAt     time.Time
	lastSeen   [priorities]uint64
	failing    time.Time // since when there is no sample; zero: there is
	failures   uint64
	collected  time.Time // when the count of collections last changed
	stage      string    // what is shed, as it was last logged
	stageSince time.Time // since when less is shed than that
}

func (o *Overload) newWatch() *watch {
	w := &watch{o: o, control: newController(o.cfg.Interval), stage: shedNothing}
	t := o.limits.Load()
	o.stats.Store(&OverloadStats{CPUThreshold: t.cpu, MemoryThreshold: t.memory})
	return w
}

func (w *watch) run() {
	ticker := time.NewTicker(w.o.cfg.Interval)
	defer ticker.Stop()
	for w.sample(); ; w.sample() {
		select {
		case <-w.o.stop:
			return
		case <-ticker.C:
		}
	}
}

// sample takes one sample and does what follows from it.
func (w *watch) sample() {
	now := w.o.cfg.Now()
	s, err := w.o.cfg.Sampler()
	if err != nil {
		w.fail(now, err)
		return
	}
	if !w.failing.IsZero() {
		w.o.cfg.Logger.Info("the load of the process is known again")
	}
	w.failing = time.Time{}
	first := w.lastAt.IsZero()
	elapsed := now.Sub(w.lastAt)
	used := s.CPUTime - w.last.CPUTime
	seen := w.o.arrivals()
	arrived := w.since(seen)
	if first || s.Collections != w.last.Collections {
		w.collected = now
	}
	w.last, w.lastAt, w.lastSeen = s, now, seen
	if first || elapsed <= 0 || !(s.CPUs > 0) { // the clock was set back: this interval tells nothing
		return
	}
	m := measure{
		at: now, elapsed: elapsed, cpu: min(max(0, float64(used)/(float64(elapsed)*s.CPUs)), 1), memory: max(0, s.Memory()),
		arrived: arrived, limits: *w.o.limits.Load(), pass: w.o.pass.Load(),
	}
	w.collect(&m)
	w.apply(&m, w.control.step(&m))
}

func (w *watch) since(seen [priorities]uint64) (n [priorities]float64) {
	for p := range seen {
		n[p] = float64(seen[p] - w.lastSeen[p])
	}
	return n
}

// collect has garbage collected where it may be what fills the memory.
func (w *watch) collect(m *measure) {
	if m.memory <= m.limits.memory || m.at.Sub(w.collected) < collectAfter || !w.o.collecting.CompareAndSwap(false, true) {
		return
	}
	w.collected = m.at
	w.o.running.Go(func() {
		defer w.o.collecting.Store(false)
		w.o.cfg.Collect()
	})
}

// fail counts a sample that could not be had. What is not known is no reason to shed for long.
func (w *watch) fail(now time.Time, err error) {
	w.failures++
	if w.failing.IsZero() {
		w.failing = now
		w.o.cfg.Logger.Warn("the load of the process cannot be read; after 2 s of that nothing is shed", slog.Any("error", err))
	}
	was := *w.o.stats.Load()
	was.Failures = w.failures
	if now.Sub(w.failing) < blindAfter {
		w.o.stats.Store(&was)
		return
	}
	w.control, w.lastAt = newController(w.o.cfg.Interval), time.Time{}
	was.CPU, was.Memory, was.Shedding = 0, 0, [priorities]float64{}
	w.publish(now, &was, ruling{}, func() string { return "the load of the process cannot be read: " + err.Error() })
}

// apply makes the figures of a ruling, and puts both in force.
func (w *watch) apply(m *measure, r ruling) {
	was := w.o.stats.Load()
	now := OverloadStats{
		Active: was.Active, Since: was.Since, Why: was.Why,
		CPU: w.control.cpu, Memory: m.memory, CPUThreshold: m.limits.cpu, MemoryThreshold: m.limits.memory,
		CPUs: w.last.CPUs, MemoryBound: w.last.MemoryBound, MemoryBy: w.last.MemoryBy,
		Shedding: r.shed, Failures: w.failures,
	}
	w.publish(m.at, &now, r, func() string { return w.why(m, &r) })
}

// publish shows the figures, puts the ruling in force, and tells of changes. The figures come first: whoever is shed can read why.
func (w *watch) publish(at time.Time, s *OverloadStats, r ruling, why func() string) {
	changed := s.Active != r.active
	if changed {
		s.Active, s.Since, s.Why = r.active, at, why()
	}
	w.o.stats.Store(s)
	w.o.gate.Store(pack(r.shed, r.count))
	w.o.danger.Store(r.active)
	stage := stageOf(s.Shedding)
	if changed {
		w.tell(s, stage)
	}
	w.follow(at, s, stage, why)
}

func (w *watch) tell(s *OverloadStats, stage string) {
	if s.Active {
		off := "nothing: the limiter's own work is skipped where the policy says pass"
		if !w.o.pass.Load() {
			off = "sheddable requests first, then normal ones; critical ones only for memory close to its bound"
		}
		w.o.cfg.Logger.Warn("the process is overloaded", slog.String("why", s.Why), slog.String("turns_off", off))
	} else {
		w.o.cfg.Logger.Info("the process is not overloaded any more", slog.String("why", s.Why), slog.String("turns_off", "nothing"))
	}
	if w.o.cfg.Observer != nil {
		w.o.cfg.Observer.OverloadChanged(s.Active, s.Why)
	}
	w.stage, w.stageSince = stage, time.Time{}
}

// follow logs how far shedding goes: more at once, less when it has been less for a while.
func (w *watch) follow(at time.Time, s *OverloadStats, stage string, why func() string) {
	switch {
	case stage == w.stage:
		w.stageSince = time.Time{}
		return
	case rank(stage) > rank(w.stage):
	case w.stageSince.IsZero():
		w.stageSince = at
		return
	case at.Sub(w.stageSince) < calmFor:
		return
	}
	w.o.cfg.Logger.Warn("overload: what is shed has changed", slog.String("sheds", stage), slog.String("before", w.stage),
		slog.String("why", why()), slog.String("sheddable", percent(s.Shedding[Sheddable])),
		slog.String("normal", percent(s.Shedding[Normal])), slog.String("critical", percent(s.Shedding[Critical])))
	w.stage, w.stageSince = stage, time.Time{}
}

// The stages of shedding, each of which includes those before it.
const (
	shedNothing   = "nothing"
	shedSheddable = "sheddable"
	shedNormal    = "normal"
	shedCritical  = "critical"
)

func stageOf(shed [priorities]float64) string {
	switch {
	case shed[Critical] > 0:
		return shedCritical
	case shed[Normal] > 0:
		return shedNormal
	case shed[Sheddable] > 0:
		return shedSheddable
	}
	return shedNothing
}

func rank(stage string) int {
	switch stage {
	case shedSheddable:
		return 1
	case shedNormal:
		return 2
	case shedCritical:
		return 3
	}
	return 0
}

// why puts the figures behind a ruling into words.
func (w *watch) why(m *measure, r *ruling) string {
	cpu := fmt.Sprintf("cpu at %s of %.3g processors (threshold %s)", percent(w.control.cpu), w.last.CPUs, percent(m.limits.cpu))
	memory := fmt.Sprintf("memory at %s of %d MiB, the %s (threshold %s)", percent(m.memory), w.last.MemoryBound>>20,
		w.last.MemoryBy, percent(m.limits.memory))
	var causes []string
	if r.byCPU {
		causes = append(causes, cpu)
	}
	if r.byHeap {
		causes = append(causes, memory)
	}
	if len(causes) == 0 {
		causes = []string{cpu, memory}
	}
	return strings.Join(causes, "; ")
}
