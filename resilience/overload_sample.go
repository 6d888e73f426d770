package resilience

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// LoadSample is what a process uses, and what it may use.
type LoadSample struct {
	// CPUTime is what the process has used since it began, CPUs how many processors it may use, also in part.
	CPUTime time.Duration
	CPUs    float64
	// MemoryUsed are the bytes in use that count to MemoryBound, the bound that is nearest; MemoryBy names it. No bound: 0.
	MemoryUsed, MemoryBound int64
	MemoryBy                string
	// Collections counts the collections of garbage that are over.
	Collections uint64
}

// Memory returns the share of the bound that is used, 0 if there is none.
func (s *LoadSample) Memory() float64 {
	if s.MemoryBound <= 0 {
		return 0
	}
	return float64(s.MemoryUsed) / float64(s.MemoryBound)
}

// ProcessSampler reads what this process uses.
//
// Processors: the least of GOMAXPROCS and the quotas of the process's control group and those above it, versions 1 and 2.
// The Go runtime follows the quota too, but rounds it up, to 2 at least, and a program may set GOMAXPROCS as it likes.
//
// Memory: each bound is compared with what counts to it, and the nearest of them is taken.
//
//   - The memory limit of the control group, at which the kernel ends the process. What counts is the whole group: also the
//     buffers of sockets, which are many in a flood and in no process's resident set, and other processes of the container.
//     Cached pages of files are taken off, which the kernel drops before it kills.
//   - The memory of the machine. What counts is the resident set.
//   - GOMEMLIMIT. What counts is the memory of the Go runtime that a collection would not give back: near this limit
//     the runtime collects instead of growing, so that garbage up to it is how a healthy process looks.
//
// Free memory that the runtime has kept is taken off everywhere, since it is used before more is asked for; and garbage is,
// where GOMEMLIMIT keeps it below the bound. A limit that is no limit counts as none.
type ProcessSampler struct {
	root     fs.FS // the file system, for tests
	self     *process.Process
	machine  func() (int64, error) // bytes of memory
	resident func() (int64, error)
	cpuTime  func() (time.Duration, error)
	now      func() time.Time
	runtime  []metrics.Sample

	groups   groupBounds
	total    int64 // of the machine
	lookedAt time.Time
}

// relook is how often bounds are read again: a container can be resized while it runs.
const relook = 10 * time.Second

// NewProcessSampler returns a sampler of this process. It is used by one goroutine.
func NewProcessSampler() *ProcessSampler {
	s := &ProcessSampler{root: os.DirFS("/"), machine: machineMemory, now: time.Now, runtime: runtimeSamples()}
	s.resident = s.residentSet
	s.cpuTime = s.processTime
	return s
}

// The figures of the runtime, in the order of runtimeSamples.
const (
	goTotal = iota
	goReleased
	goFree
	goObjects
	goLive
	goLimit
	goCycles
)

func runtimeSamples() []metrics.Sample {
	return []metrics.Sample{
		goTotal:    {Name: "/memory/classes/total:bytes"},
		goReleased: {Name: "/memory/classes/heap/released:bytes"},
		goFree:     {Name: "/memory/classes/heap/free:bytes"},
		goObjects:  {Name: "/memory/classes/heap/objects:bytes"},
		goLive:     {Name: "/gc/heap/live:bytes"},
		goLimit:    {Name: "/gc/gomemlimit:bytes"},
		goCycles:   {Name: "/gc/cycles/total:gc-cycles"},
	}
}

// Sample reads everything.
func (s *ProcessSampler) Sample() (LoadSample, error) {
	used, err := s.cpuTime()
	if err != nil {
		return LoadSample{}, fmt.Errorf("processor time of the process: %w", err)
	}
	s.look()
	metrics.Read(s.runtime)
	out := LoadSample{CPUTime: used, CPUs: float64(runtime.GOMAXPROCS(0)), Collections: uint64(s.figure(goCycles))}
	if q := s.groups.cpus; q > 0 {
		out.CPUs = min(out.CPUs, q)
	}
	s.memoryOf(&out, s.figure)
	return out, nil
}

// look reads the bounds again if they are old. What cannot be read bounds nothing: there may be no control groups at all.
func (s *ProcessSampler) look() {
	now := s.now()
	if !s.lookedAt.IsZero() && now.Sub(s.lookedAt) < relook {
		return
	}
	s.lookedAt, s.groups = now, readGroups(s.root)
	if total, err := s.machine(); err == nil {
		s.total = total
	}
}

// memoryOf fills in the bound that is nearest, by the figures of the runtime. A bound whose use cannot be read counts as none: processor time is still known.
func (s *ProcessSampler) memoryOf(out *LoadSample, figure func(int) int64) {
	soft := figure(goLimit)
	if soft == math.MaxInt64 {
		soft = 0
	}
	free, garbage := figure(goFree), max(0, figure(goObjects)-figure(goLive))
	spare := func(bound int64) int64 {
		if soft > 0 && soft <= bound {
			return free + garbage
		}
		return free
	}
	if soft > 0 {
		nearest(out, figure(goTotal)-figure(goReleased)-spare(soft), soft, "limit of GOMEMLIMIT")
	}
	resident, err := s.resident()
	if s.total > 0 && err == nil {
		nearest(out, resident-spare(s.total), s.total, "memory of the machine")
	}
	if g := s.groups.memory; g.limit > 0 {
		used, unread := g.used(s.root)
		if unread != nil {
			used, unread = resident, err // of one process at least
		}
		if unread == nil {
			nearest(out, used-spare(g.limit), g.limit, "limit of the control group")
		}
	}
}

// nearest keeps the bound of which more is used.
func nearest(out *LoadSample, used, bound int64, by string) {
	one := LoadSample{MemoryUsed: max(0, used), MemoryBound: bound}
	if out.MemoryBound == 0 || one.Memory() > out.Memory() {
		out.MemoryUsed, out.MemoryBound, out.MemoryBy = one.MemoryUsed, bound, by
	}
}

// figure returns a figure of the runtime, 0 where this version of Go has none of that name.
func (s *ProcessSampler) figure(i int) int64 {
	if v := s.runtime[i].Value; v.Kind() == metrics.KindUint64 {
		return int64(min(v.Uint64(), math.MaxInt64))
	}
	return 0
}

func machineMemory() (int64, error) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, err
	}
	return int64(v.Total), nil
}

func (s *ProcessSampler) residentSet() (int64, error) {
	p, err := s.process()
	if err != nil {
		return 0, err
	}
	m, err := p.MemoryInfo()
	if err != nil {
		return 0, err
	}
	return int64(m.RSS), nil
}

func (s *ProcessSampler) process() (*process.Process, error) {
	if s.self == nil {
		p, err := process.NewProcess(int32(os.Getpid()))
		if err != nil {
			return nil, err
		}
		s.self = p
	}
	return s.self, nil
}
