package resilience

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The priorities of [Overload.Shed]. What is above Sheddable counts as it.
const (
	Critical  uint8 = iota // shed last of all, and only for memory close to its bound
	Normal                 // shed when there is nothing sheddable left to shed
	Sheddable              // shed first
	priorities
)

// Defaults of an OverloadConfig.
const (
	DefaultCPUThreshold    = 0.90
	DefaultMemoryThreshold = 0.85
	defaultSampling        = 200 * time.Millisecond
	// collectAfter is how old the last collection of garbage may be before memory above its threshold asks for one.
	collectAfter = 5 * time.Second
	// blindAfter is how long the sampler may fail before nothing is shed any more.
	blindAfter = 2 * time.Second
)

// OverloadConfig says when a process counts as overloaded. The zero value works.
type OverloadConfig struct {
	// CPU is the share of the processor time that the process may use from which requests are shed, above 0. Above 1: never.
	// Default 0.90.
	CPU float64
	// Memory is the share of the memory bound from which requests are shed, above 0; 1 or more: never. Default 0.85.
	Memory float64
	// Pass sheds nothing: [Overload.Danger] alone tells of the overload. Default false.
	Pass bool
	// Interval is the time between two samples, 100 ms to 1 s. Default 200 ms.
	Interval time.Duration
	// Sampler tells what the process uses. It is called by one goroutine. Default: a [ProcessSampler].
	Sampler func() (LoadSample, error)
	// Collect collects garbage: it is called, by a goroutine of its own, when memory is above its threshold and the last
	// collection is 5 s old, so that nobody is turned away for garbage. Default runtime.GC.
	Collect func()
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Rand gives 64 random bits, to many goroutines at a time. Default math/rand/v2.Uint64.
	Rand func() uint64
	// Observer is told of changes. Default: nobody.
	Observer OverloadObserver
	// Logger gets each change, with its cause and what it turns off. Default: nothing is logged.
	Logger *slog.Logger
}

// OverloadObserver is told, by one goroutine, that the process has become overloaded or is not any more.
type OverloadObserver interface {
	// OverloadChanged tells what is the case now; why names the cause with its figures.
	OverloadChanged(active bool, why string)
}

// OverloadStats are the figures of an Overload as of its last sample.
type OverloadStats struct {
	// Active tells whether the process counts as overloaded, Since when that last changed (zero: never), Why what its cause
	// is or was.
	Active bool
	Since  time.Time
	Why    string
	// CPU and Memory are shares of what the process may use, smoothed; the thresholds are those in force.
	CPU, Memory                   float64
	CPUThreshold, MemoryThreshold float64
	// CPUs is how many processors the process may use, MemoryBound how many bytes; MemoryBy names what sets the bound.
	CPUs        float64
	MemoryBound int64
	MemoryBy    string
	// Shedding is the fraction of the requests of each priority that is being shed, 0 to 1; Shed counts what was shed since
	// the start.
	Shedding [priorities]float64
	Shed     [priorities]uint64
	// Failures counts samples that could not be had.
	Failures uint64
}

// Overload watches what the process uses and tells which requests to shed so that it stays out of danger. It is safe for
// concurrent use. The control is in overload_control.go, with its sources.
type Overload struct {
	cfg OverloadConfig

	// gate holds what Shed needs in one word: the fraction to shed of each priority in 16 bits each, and whether arrivals
	// are to be counted. Zero while the process is calm.
	gate   atomic.Uint64
	danger atomic.Bool
	pass   atomic.Bool
	limits atomic.Pointer[thresholds]
	stats  atomic.Pointer[OverloadStats] // without Shed
	counts [stripes]stripe

	stop       chan struct{}
	once       sync.Once
	running    sync.WaitGroup
	collecting atomic.Bool
}

// thresholds are the two shares that a policy sets.
type thresholds struct{ cpu, memory float64 }

// stripe counts for some of the callers, apart from the others' cache lines.
type stripe struct {
	arrived, shed [priorities]atomic.Uint64
	_             [128 - 2*priorities*8]byte
}

const (
	stripes  = 16
	counting = 1 << 48 // the bit of the gate that has arrivals counted
	fraction = 0xFFFF  // the largest fraction, which stands for all
)

// NewOverload starts to watch. Close ends it.
func NewOverload(cfg OverloadConfig) *Overload {
	cfg = cfg.withDefaults()
	o := &Overload{cfg: cfg, stop: make(chan struct{})}
	o.SetThresholds(cfg.CPU, cfg.Memory)
	o.SetPass(cfg.Pass)
	w := o.newWatch()
	o.running.Go(func() { w.run() })
	return o
}

func (c OverloadConfig) withDefaults() OverloadConfig {
	if c.Interval == 0 {
		c.Interval = defaultSampling
	}
	c.Interval = min(max(c.Interval, 100*time.Millisecond), time.Second)
	if c.Sampler == nil {
		c.Sampler = NewProcessSampler().Sample
	}
	if c.Collect == nil {
		c.Collect = runtime.GC
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Shed reports whether to turn away a request of this priority, with 503. It takes a nanosecond while the process is calm,
// some more while it is not, and never blocks.
func (o *Overload) Shed(priority uint8) bool {
	gate := o.gate.Load()
	if gate == 0 {
		return false
	}
	return o.draw(gate, priority)
}

func (o *Overload) draw(gate uint64, priority uint8) bool {
	priority = min(priority, Sheddable)
	r := o.cfg.Rand()
	s := &o.counts[r%stripes]
	s.arrived[priority].Add(1)
	part := gate >> (16 * priority) & fraction
	if part == 0 || part != fraction && r>>48 >= part {
		return false
	}
	s.shed[priority].Add(1)
	return true
}

// Danger reports whether the process counts as overloaded: from when it is above a threshold until it has been well below
// for a while and everything is let in again. It is for fronts that would rather skip the limiter's own work than turn
// requests away. Those that shed ask Shed at every request, since it also counts what arrives.
func (o *Overload) Danger() bool { return o.danger.Load() }

// Load returns the smoothed shares of processor time and memory, 0 until there is a sample.
func (o *Overload) Load() (cpu, memory float64) {
	s := o.stats.Load()
	return s.CPU, s.Memory
}

// Stats returns the figures.
func (o *Overload) Stats() OverloadStats {
	s := *o.stats.Load()
	for i := range o.counts {
		for p := range s.Shed {
			s.Shed[p] += o.counts[i].shed[p].Load()
		}
	}
	return s
}

// SetThresholds changes the shares from which requests are shed, as of the next sample. What is not above 0 stands for the
// default.
func (o *Overload) SetThresholds(cpu, memory float64) {
	t := thresholds{cpu: DefaultCPUThreshold, memory: DefaultMemoryThreshold}
	if cpu > 0 {
		t.cpu = cpu
	}
	if memory > 0 {
		t.memory = memory
	}
	o.limits.Store(&t)
}

// SetPass tells, as of the next sample, whether nothing is to be shed.
func (o *Overload) SetPass(pass bool) { o.pass.Store(pass) }

// Close stops watching and shedding. It may be called twice.
func (o *Overload) Close() error {
	o.once.Do(func() { close(o.stop) })
	o.running.Wait()
	o.gate.Store(0)
	o.danger.Store(false)
	return nil
}

// arrivals returns how many requests of each priority were counted since the start.
func (o *Overload) arrivals() (n [priorities]uint64) {
	for i := range o.counts {
		for p := range n {
			n[p] += o.counts[i].arrived[p].Load()
		}
	}
	return n
}

// pack makes the gate: what is all is shed without a draw, and what is not nothing at least once in 65536.
func pack(shed [priorities]float64, count bool) (gate uint64) {
	for p, f := range shed {
		if f <= 0 || math.IsNaN(f) {
			continue
		}
		gate |= min(max(uint64(f*fraction), 1), fraction) << (16 * p)
	}
	if count || gate != 0 {
		gate |= counting
	}
	return gate
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
