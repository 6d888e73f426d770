package resilience

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Control groups, as cgroups(7), proc_pid_mountinfo(5) and the kernel's documents on both versions describe them. A limit of a
// group holds for all that are below it, so every group from the process's own up to the mount is looked at. Libraries tell
// the limit of memory, but not at which group it is set, and what is used must be read at the same place.

// groupBounds are the nearest bounds of the control groups of a process.
type groupBounds struct {
	cpus   float64 // processors, 0: no quota
	memory memoryGroup
}

// memoryGroup is the group whose limit of memory is the least.
type memoryGroup struct {
	limit   int64 // bytes, 0: none
	dir     string
	version int
}

// unlimited is above every real limit: version 1 writes the largest multiple of a page for "none".
const unlimited = 1 << 60

// readGroups finds the bounds of the process. What is not there, or not understood, bounds nothing.
func readGroups(root fs.FS) (b groupBounds) {
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return b
	}
	mounts := readMounts(root)
	for line := range strings.Lines(string(membership)) {
		id, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case id == "0" && controllers == "":
			b.readV2(root, chain(mounts, "", group))
		default:
			b.readV1(root, mounts, controllers, group)
		}
	}
	return b
}

func (b *groupBounds) readV2(root fs.FS, dirs []string) {
	for _, dir := range dirs {
		if quota, period, ok := strings.Cut(readWord(root, dir, "cpu.max"), " "); ok {
			b.quota(quota, period)
		}
		b.limit(root, memoryGroup{dir: dir, version: 2}, "memory.max")
	}
}

func (b *groupBounds) readV1(root fs.FS, mounts []mount, controllers, group string) {
	for controller := range strings.SplitSeq(controllers, ",") {
		switch controller {
		case "cpu":
			for _, dir := range chain(mounts, controller, group) {
				b.quota(readWord(root, dir, "cpu.cfs_quota_us"), readWord(root, dir, "cpu.cfs_period_us"))
			}
		case "memory":
			for _, dir := range chain(mounts, controller, group) {
				b.limit(root, memoryGroup{dir: dir, version: 1}, "memory.limit_in_bytes")
			}
		}
	}
}

// quota takes processor time per period, if it is one: "max" and -1 are none.
func (b *groupBounds) quota(quota, period string) {
	q, errQ := strconv.ParseInt(quota, 10, 64)
	p, errP := strconv.ParseInt(period, 10, 64)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return
	}
	if cpus := float64(q) / float64(p); b.cpus == 0 || cpus < b.cpus {
		b.cpus = cpus
	}
}

func (b *groupBounds) limit(root fs.FS, g memoryGroup, file string) {
	limit, err := strconv.ParseUint(readWord(root, g.dir, file), 10, 64)
	if err != nil || limit == 0 || limit >= unlimited {
		return
	}
	if g.limit = int64(limit); b.memory.limit == 0 || g.limit < b.memory.limit {
		b.memory = g
	}
}

// used is what the group uses, without the cached pages of files.
func (g *memoryGroup) used(root fs.FS) (int64, error) {
	file, prefix := "memory.current", ""
	if g.version == 1 {
		file, prefix = "memory.usage_in_bytes", "total_"
	}
	used, err := strconv.ParseInt(readWord(root, g.dir, file), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory of the control group: /%s/%s has no number", g.dir, file)
	}
	stat, err := fs.ReadFile(root, path.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0, fmt.Errorf("memory of the control group: %w", err)
	}
	cached := statOf(stat, prefix+"active_file") + statOf(stat, prefix+"inactive_file")
	return max(0, used-cached), nil
}

// statOf returns a field of memory.stat, 0 if it is not there.
func statOf(stat []byte, name string) int64 {
	for line := range bytes.Lines(stat) {
		if field, value, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok && field == name {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return min(n, math.MaxInt64/4)
		}
	}
	return 0
}

// mount is where a hierarchy of groups is seen.
type mount struct {
	root, point string
	controllers []string // of version 1; nil is version 2
}

// unescape undoes the escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func readMounts(root fs.FS) (mounts []mount) {
	f, err := root.Open("proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		where, what, ok := strings.Cut(lines.Text(), " - ")
		place, kind := strings.Fields(where), strings.Fields(what)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		m := mount{root: unescape(place[3]), point: unescape(place[4])}
		switch kind[0] {
		case "cgroup2":
		case "cgroup":
			m.controllers = strings.Split(kind[2], ",")
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// chain returns the folders of a group and of all above it, in the first mount where the group can be seen.
func chain(mounts []mount, controller, group string) (dirs []string) {
	for _, m := range mounts {
		if (controller == "") != (m.controllers == nil) || controller != "" && !slices.Contains(m.controllers, controller) {
			continue
		}
		below, ok := m.below(group)
		if !ok {
			continue
		}
		point := strings.TrimPrefix(path.Clean(m.point), "/")
		for dir := path.Join(point, below); ; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
			if dir == point || len(dir) <= len(point) {
				return dirs
			}
		}
	}
	return nil
}

// below returns where a group is below the mount. In a container without a namespace of its own for groups, the mount shows
// the container's group alone, whose path is the mount's root.
func (m *mount) below(group string) (string, bool) {
	group, top := path.Clean("/"+group), path.Clean("/"+m.root)
	switch {
	case top == "/":
		return group, true
	case group == top:
		return "", true
	}
	rest, ok := strings.CutPrefix(group, top+"/")
	return rest, ok
}

// readWord returns the text of a small file without white space around it, "" if there is none.
func readWord(root fs.FS, dir, file string) string {
	text, err := fs.ReadFile(root, path.Join(dir, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
