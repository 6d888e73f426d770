package resilience

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/fstest"
	"time"
)

const (
	mountsV2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsV1 = "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	noneV1 = "9223372036854771712\n"
)

func TestReadGroups(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  groupBounds
	}{
		{"no groups at all", nil, groupBounds{}},
		{"version 2, a service of systemd", map[string]string{
			"proc/self/cgroup":    "0::/system.slice/gate.service\n",
			"proc/self/mountinfo": "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + mountsV2,
			"sys/fs/cgroup/system.slice/gate.service/cpu.max":    "150000 100000\n",
			"sys/fs/cgroup/system.slice/gate.service/memory.max": "536870912\n",
			"sys/fs/cgroup/system.slice/cpu.max":                 "max 100000\n",
			"sys/fs/cgroup/system.slice/memory.max":              "max\n",
		}, groupBounds{1.5, memoryGroup{536870912, "sys/fs/cgroup/system.slice/gate.service", 2}}},
		{"version 2, the bounds are above", map[string]string{
			"proc/self/cgroup": "0::/a/b/c\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/b/c/cpu.max": "max 100000\n", "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n", "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
			"sys/fs/cgroup/a/b/c/memory.max": "3000\n", "sys/fs/cgroup/a/b/memory.max": "2000\n", "sys/fs/cgroup/a/memory.max": "1000\n",
		}, groupBounds{0.5, memoryGroup{1000, "sys/fs/cgroup/a", 2}}},
		{"version 2, wider bounds are above", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/a/b/cpu.max": "50000 100000\n", "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
			"sys/fs/cgroup/a/b/memory.max": "1000\n", "sys/fs/cgroup/a/memory.max": "2000\n",
		}, groupBounds{0.5, memoryGroup{1000, "sys/fs/cgroup/a/b", 2}}},
		{"version 2, a container with its own namespace", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/cpu.max": "25000 100000\n", "sys/fs/cgroup/memory.max": "1073741824\n",
		}, groupBounds{0.25, memoryGroup{1073741824, "sys/fs/cgroup", 2}}},
		{"version 1", map[string]string{
			"proc/self/cgroup":                                      "4:memory:/docker/c1\n2:cpu,cpuacct:/docker/c1\n1:name=systemd:/docker/c1\n0::/docker/c1\n",
			"proc/self/mountinfo":                                   mountsV1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":            "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":           "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":            noneV1,
			"sys/fs/cgroup/memory/docker/c1/cgroup.procs":           "1\n",
			"sys/fs/cgroup/unified/docker/c1/cgroup.procs":          "1\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/c1/irrelevant":        "1\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_quota_us":  "300000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/c1/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes":  "268435456\n",
		}, groupBounds{3, memoryGroup{268435456, "sys/fs/cgroup/memory/docker/c1", 1}}},
		{"version 1, a container that sees its own group alone", map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/c1\n2:cpu:/docker/c1\n",
			"proc/self/mountinfo":                        "35 31 0:32 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n36 31 0:33 /docker/c1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "10000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "20000\n",
		}, groupBounds{0.5, memoryGroup{1000, "sys/fs/cgroup/memory", 1}}},
		{"a mount of another group tells nothing", map[string]string{
			"proc/self/cgroup":           "0::/pods/b\n",
			"proc/self/mountinfo":        "29 23 0:26 /pods/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory.max":   "1000\n",
			"sys/fs/cgroup/b/memory.max": "1000\n",
		}, groupBounds{}},
		{"a mount point with a space in it", map[string]string{
			"proc/self/cgroup": "0::/g\n", "proc/self/mountinfo": `29 23 0:26 / /my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			"my groups/g/memory.max": "77\n",
		}, groupBounds{0, memoryGroup{77, "my groups/g", 2}}},
		{"nonsense", map[string]string{
			"proc/self/cgroup": "0::/../../g\n\nx\n3:memory\n::\n0:cpu:\n", "proc/self/mountinfo": "\n- - -\n1 2 3 - cgroup2\n" + mountsV2 + mountsV1,
			"sys/fs/cgroup/g/cpu.max": "0 0\n", "sys/fs/cgroup/g/memory.max": "-5\n", "sys/fs/cgroup/memory.max": "0\n", "sys/fs/cgroup/cpu.max": "1e3 100000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "12\n",
		}, groupBounds{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := readGroups(files(tc.files)); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

func files(text map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, content := range text {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

const (
	mib  = int64(1 << 20)
	noGo = math.MaxInt64 // GOMEMLIMIT that is not set
)

// The nearest bound is taken, each compared with what counts to it.
func TestSampleMemory(t *testing.T) {
	t.Parallel()
	group := map[string]string{
		"proc/self/cgroup": "0::/g\n", "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/g/cpu.max": "50000 100000\n",
		"sys/fs/cgroup/g/memory.max": "1048576000\n", "sys/fs/cgroup/g/memory.current": "943718400\n", // 1000 and 900 MiB
		"sys/fs/cgroup/g/memory.stat": "anon 1\nfile 314572800\nactive_file 104857600\ninactive_file 209715200\n", // 100 and 200 MiB
	}
	withoutStat := maps.Clone(group)
	delete(withoutStat, "sys/fs/cgroup/g/memory.stat")
	hybrid := map[string]string{
		"proc/self/cgroup": "4:memory:/g\n", "proc/self/mountinfo": mountsV1, "sys/fs/cgroup/memory/g/memory.limit_in_bytes": "1048576000\n",
		"sys/fs/cgroup/memory/g/memory.usage_in_bytes": "943718400\n",
		"sys/fs/cgroup/memory/g/memory.stat":           "active_file 1\ntotal_active_file 104857600\ntotal_inactive_file 99\nhierarchical_memory_limit 1048576000\n",
	}
	for _, tc := range []struct {
		name                                   string
		files                                  map[string]string
		machine, resident                      int64 // MiB
		total, released, free, objects, living int64 // MiB, of Go
		limit                                  int64 // MiB
		used, bound                            int64 // bytes
		by                                     string
	}{
		{"the machine alone", nil, 8000, 500, 480, 10, 50, 300, 100, noGo, 450 * mib, 8000 * mib, "memory of the machine"},
		{"the group, without cached files and free spans", group, 8000, 500, 480, 10, 50, 300, 100, noGo, 550 * mib, 1000 * mib, "limit of the control group"},
		{"garbage does not count where GOMEMLIMIT is below the group's", group, 8000, 500, 480, 10, 50, 300, 100, 900, 350 * mib, 1000 * mib, "limit of the control group"},
		{"but where it is above", group, 8000, 500, 480, 10, 50, 300, 100, 1100, 550 * mib, 1000 * mib, "limit of the control group"},
		{"GOMEMLIMIT is the nearest", group, 8000, 900, 880, 10, 0, 850, 800, 850, 820 * mib, 850 * mib, "limit of GOMEMLIMIT"},
		{"a group whose use cannot be read: the process's", withoutStat, 8000, 700, 680, 0, 0, 600, 600, noGo, 700 * mib, 1000 * mib, "limit of the control group"},
		{"version 1", hybrid, 8000, 500, 480, 10, 0, 300, 100, noGo, 943718400 - 104857600 - 99, 1000 * mib, "limit of the control group"},
		{"less than nothing", nil, 8000, 40, 0, 0, 50, 0, 0, noGo, 0, 8000 * mib, "memory of the machine"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := NewProcessSampler()
			s.root = files(tc.files)
			s.machine = func() (int64, error) { return tc.machine * mib, nil }
			s.resident = func() (int64, error) { return tc.resident * mib, nil }
			s.groups, s.lookedAt = readGroups(s.root), time.Now()
			s.total, _ = s.machine()
			limit := tc.limit
			if limit != noGo {
				limit *= mib
			}
			figures := []int64{goTotal: tc.total * mib, goReleased: tc.released * mib, goFree: tc.free * mib, goObjects: tc.objects * mib, goLive: tc.living * mib, goLimit: limit}
			var out LoadSample
			s.memoryOf(&out, func(i int) int64 { return figures[i] })
			if out.MemoryUsed != tc.used || out.MemoryBound != tc.bound || out.MemoryBy != tc.by {
				t.Errorf("%d of %d by %q, want %d of %d by %q", out.MemoryUsed, out.MemoryBound, out.MemoryBy, tc.used, tc.bound, tc.by)
			}
		})
	}
}

// The names of the runtime's figures are those that this version of Go has.
func TestRuntimeFigures(t *testing.T) {
	t.Parallel()
	samples := runtimeSamples()
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			t.Errorf("%s has kind %v", s.Name, s.Value.Kind())
		}
	}
}

// A real process is seen to use what it uses.
func TestProcessSampler(t *testing.T) {
	t.Parallel()
	s := NewProcessSampler()
	first, err := s.Sample()
	if err != nil {
		t.Fatal(err)
	}
	if first.CPUs <= 0 || first.CPUs > float64(runtime.GOMAXPROCS(0)) || first.MemoryBound <= 0 || first.Memory() <= 0 || first.Memory() > 1 || first.MemoryBy == "" {
		t.Errorf("%+v", first)
	}
	sum := 0
	for now := first; now.CPUTime < first.CPUTime+50*time.Millisecond; {
		for i := range 1_000_000 {
			sum += i
		}
		if now, err = s.Sample(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	last, err := s.Sample()
	if err != nil || last.Collections <= first.Collections || sum == 0 {
		t.Errorf("%+v after a collection, before %+v: %v", last, first, err)
	}
}

func TestSampleFails(t *testing.T) {
	t.Parallel()
	s := NewProcessSampler()
	broken := errors.New("no such call")
	s.cpuTime = func() (time.Duration, error) { return 0, broken }
	if _, err := s.Sample(); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	s = NewProcessSampler()
	s.root = files(nil)
	s.machine = func() (int64, error) { return 0, broken }
	s.resident = func() (int64, error) { return 0, fs.ErrPermission }
	got, err := s.Sample()
	if err != nil || got.CPUTime == 0 || got.CPUs == 0 {
		t.Errorf("processor time is lost with memory: %+v, %v", got, err)
	}
}

// What the kernel shows is taken apart without a panic, and bounds are never below zero.
func FuzzReadGroups(f *testing.F) {
	f.Add("0::/a\n", mountsV2, "100 200", "4096")
	f.Add("4:memory:/a\n2:cpu:/b\n", mountsV1, "-1", noneV1)
	f.Fuzz(func(t *testing.T, membership, mounts, cpu, memory string) {
		b := readGroups(files(map[string]string{
			"proc/self/cgroup": membership, "proc/self/mountinfo": mounts,
			"sys/fs/cgroup/cpu.max": cpu, "sys/fs/cgroup/a/cpu.max": cpu, "sys/fs/cgroup/memory.max": memory, "sys/fs/cgroup/a/memory.max": memory,
			"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us": cpu, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": memory,
		}))
		if b.cpus < 0 || b.memory.limit < 0 || b.memory.limit >= unlimited {
			t.Errorf("%+v", b)
		}
	})
}
