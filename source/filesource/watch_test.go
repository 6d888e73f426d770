package filesource_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/source"
	"github.com/headgate-io/headgate/source/filesource"
)

// soon is when a change must have been told, in the virtual time in which these tests run, on real files.
const soon = 900 * time.Millisecond

// place is a folder with a policy, a list beside it, and who follows them.
type place struct {
	*testing.T
	dir, file, list string
	src             *filesource.Source
	told            atomic.Int32
	stop            func()
	lists           []string // the names of the files that the policy is taken to name
}

const oldText, newText = "version: 1 # old\n", "version: 1 # new\n"

// follow runs a test with a source that has been loaded and is watched.
func follow(t *testing.T, test func(*place)) {
	dir := t.TempDir()
	p := &place{dir: dir, file: filepath.Join(dir, "policy.yaml"), list: filepath.Join(dir, "list.txt"), lists: []string{"list.txt"}}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p.T = t
		p.write(p.file, oldText)
		p.write(p.list, "192.0.2.1\n")
		p.start(p.file)
		test(p)
		p.stop()
	})
}

// start loads a file and begins to watch it, in place of another.
func (p *place) start(file string) {
	if p.stop != nil {
		p.stop()
	}
	p.src = filesource.New(file)
	p.load()
	ctx, cancel := context.WithCancel(p.Context())
	done := make(chan error, 1)
	go func(src *filesource.Source) { done <- src.Watch(ctx, func() { p.told.Add(1) }) }(p.src)
	p.stop = func() {
		cancel()
		if err := <-done; err != nil {
			p.Error(err)
		}
	}
}

// load loads, and reads the lists as a policy would. What is wrong comes as text.
func (p *place) load() (text, list string) {
	d, err := p.src.Load(p.Context())
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), p.dir, "DIR"), ""
	}
	for _, name := range p.lists {
		data, err := fs.ReadFile(d.Files(), name)
		if err != nil {
			data = []byte("error: " + strings.ReplaceAll(err.Error(), p.dir, "DIR"))
		}
		list += string(data)
	}
	return string(d.Data), list
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) write(file, text string) {
	p.Helper()
	p.must(os.WriteFile(file, []byte(text), 0o600))
}

// expect lets time pass, and then wants to have been told so often.
func (p *place) expect(what string, after time.Duration, times int) {
	p.Helper()
	p.told.Store(0)
	time.Sleep(after)
	synctest.Wait()
	if told := p.told.Load(); int(told) != times {
		p.Errorf("%s: told %d times within %v, want %d", what, told, after, times)
	}
}

// TestSaves: every habit of saving is one change, told soon and once.
func TestSaves(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(p *place, text string){
		"in place": func(p *place, text string) { p.write(p.file, text) },
		"under another name and renamed": func(p *place, text string) {
			p.write(p.file+".tmp", text)
			p.must(os.Rename(p.file+".tmp", p.file))
		},
		"removed and made anew": func(p *place, text string) {
			p.must(os.Remove(p.file))
			time.Sleep(50 * time.Millisecond)
			p.write(p.file, text)
		},
		"the old renamed to a backup": func(p *place, text string) { // vim
			p.must(os.Rename(p.file, p.file+"~"))
			p.write(p.file, text)
			p.must(os.Remove(p.file + "~"))
		},
		"in two writes": func(p *place, text string) {
			p.write(p.file, text[:5])
			time.Sleep(90 * time.Millisecond)
			p.write(p.file, text)
		},
		"in two writes with a rest between them": func(p *place, text string) {
			p.write(p.file, text[:5])
			time.Sleep(490 * time.Millisecond)
			p.write(p.file, text)
		},
		"line by line over seconds": func(p *place, text string) {
			for i := range 10 {
				p.write(p.file, strings.Repeat("#", i))
				time.Sleep(400 * time.Millisecond)
			}
			p.write(p.file, text)
		},
		"in many writes": func(p *place, text string) {
			for i := range text {
				p.write(p.file, text[:i])
				time.Sleep(20 * time.Millisecond)
			}
			p.write(p.file, text)
		},
		"made a symlink to elsewhere": func(p *place, text string) {
			other := filepath.Join(p.TempDir(), "other.yaml")
			p.write(other, text)
			p.must(os.Remove(p.file))
			p.must(os.Symlink(other, p.file))
		},
		"with the times of the old one": func(p *place, text string) {
			info, err := os.Stat(p.file)
			p.must(err)
			p.write(p.file+".tmp", text)
			p.must(os.Chtimes(p.file+".tmp", info.ModTime(), info.ModTime()))
			p.must(os.Rename(p.file+".tmp", p.file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, func(p *place) {
				p.expect("nothing happens", 10*time.Second, 0)
				save(p, newText)
				p.expect("a change", soon, 1)
				if text, _ := p.load(); text != newText {
					p.Errorf("loaded %q, want %q", text, newText)
				}
				p.expect("nothing more", time.Minute, 0)
			})
		})
	}
}

// TestNoChange: what leaves the contents as they are is not told.
func TestNoChange(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(p *place){
		"touched":      func(p *place) { p.must(os.Chtimes(p.file, time.Time{}, time.Unix(1e9, 0))) },
		"list touched": func(p *place) { p.must(os.Chtimes(p.list, time.Time{}, time.Unix(1e9, 0))) },
		"mode":         func(p *place) { p.must(os.Chmod(p.file, 0o640)) },
		"same saved":   func(p *place) { p.write(p.file, oldText) },
		"same renamed": func(p *place) { p.write(p.file+".tmp", oldText); p.must(os.Rename(p.file+".tmp", p.file)) },
		"for a moment": func(p *place) {
			p.write(p.file, newText)
			time.Sleep(30 * time.Millisecond)
			p.write(p.file, oldText)
		},
		"other files": func(p *place) { p.write(filepath.Join(p.dir, "other.txt"), "x") },
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, func(p *place) {
				for _, wait := range []time.Duration{10 * time.Second, 0} { // with and without what was read fresh in mind
					time.Sleep(wait)
					do(p)
					p.expect(name, 10*time.Second, 0)
					p.load()
				}
				p.write(p.file, newText)
				p.expect("a change", soon, 1)
			})
		})
	}
}

// TestSameSizeAndTime: a file that changes twice within the grain of the file system's times looks the same.
func TestSameSizeAndTime(t *testing.T) {
	follow(t, func(p *place) {
		info, err := os.Stat(p.file)
		p.must(err)
		time.Sleep(time.Second)
		p.write(p.file, strings.Repeat("#", len(oldText)))
		p.must(os.Chtimes(p.file, info.ModTime(), info.ModTime()))
		p.expect("other contents", soon, 1)
		p.load()
		info, err = os.Stat(p.list)
		p.must(err)
		p.write(p.list, "192.0.2.2\n")
		p.must(os.Chtimes(p.list, info.ModTime(), info.ModTime()))
		p.expect("other contents of a list", soon, 1)
	})
}

// TestConfigMap: the way in which Kubernetes mounts a ConfigMap and changes it.
func TestConfigMap(t *testing.T) {
	follow(t, func(p *place) {
		mount := filepath.Join(p.dir, "mount")
		version := func(name, text, list string) {
			folder := filepath.Join(mount, name)
			p.must(os.MkdirAll(folder, 0o700))
			p.write(filepath.Join(folder, "policy.yaml"), text)
			p.write(filepath.Join(folder, "list.txt"), list)
			p.must(os.Symlink(name, filepath.Join(mount, "..data_tmp")))
			p.must(os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")))
		}
		version("..1", "one", "a")
		for _, name := range []string{"policy.yaml", "list.txt"} {
			p.must(os.Symlink(filepath.Join("..data", name), filepath.Join(mount, name)))
		}
		p.start(filepath.Join(mount, "policy.yaml"))
		for _, c := range []struct {
			name, text, list string
			told             int
		}{{"..2", "two", "a", 1}, {"..3", "two", "b", 1}, {"..4", "two", "b", 0}, {"..5", "one", "c", 1}} {
			time.Sleep(5 * time.Second)
			before, err := os.Readlink(filepath.Join(mount, "..data"))
			p.must(err)
			version(c.name, c.text, c.list)
			p.must(os.RemoveAll(filepath.Join(mount, before)))
			p.expect(c.name, soon, c.told)
			if text, list := p.load(); text != c.text || list != c.list {
				p.Errorf("%s: loaded %q and %q, want %q and %q", c.name, text, list, c.text, c.list)
			}
		}
	})
}

// TestFolderTurns: a release is put in force by turning a symlink somewhere on the way.
func TestFolderTurns(t *testing.T) {
	follow(t, func(p *place) {
		current := filepath.Join(p.dir, "current")
		for _, name := range []string{"1", "2"} {
			p.must(os.MkdirAll(filepath.Join(p.dir, name, "etc"), 0o700))
			p.write(filepath.Join(p.dir, name, "etc", "policy.yaml"), "the same")
			p.write(filepath.Join(p.dir, name, "etc", "list.txt"), name)
		}
		p.must(os.Symlink("1", current))
		p.start(filepath.Join(current, "etc", "policy.yaml"))
		time.Sleep(5 * time.Second)
		p.must(os.Remove(current))
		p.must(os.Symlink("2", current))
		p.expect("turned", soon, 1)
		if _, list := p.load(); list != "2" {
			p.Errorf("the list is %q, want that of 2", list)
		}
	})
}

// TestUnreadable: whatever stands in a policy's place blocks nothing, is told once, and so is the policy that comes back.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(p *place, file string)
		says string
		root bool // also for a user who may do everything
	}{
		"nothing":     {func(*place, string) {}, "DIR/policy.yaml cannot be opened: no such file or directory", true},
		"a directory": {func(p *place, file string) { p.must(os.Mkdir(file, 0o700)) }, "DIR/policy.yaml is not a regular file", true},
		"a pipe":      {func(p *place, file string) { p.must(syscall.Mkfifo(file, 0o600)) }, "DIR/policy.yaml is not a regular file", true},
		"a symlink to itself": {func(p *place, file string) { p.must(os.Symlink(file, file)) },
			"DIR/policy.yaml cannot be opened: too many levels of symbolic links", true},
		"a symlink to nothing": {func(p *place, file string) { p.must(os.Symlink(file+"x", file)) },
			"DIR/policy.yaml cannot be opened: no such file or directory", true},
		"100 MB": {func(p *place, file string) { p.write(file, ""); p.must(os.Truncate(file, 100<<20)) },
			fmt.Sprintf("DIR/policy.yaml is larger than %d bytes", source.MaxDocument), true},
		"no permission": {func(p *place, file string) { p.write(file, newText); p.must(os.Chmod(file, 0)) },
			"DIR/policy.yaml cannot be opened: permission denied", false},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.root && os.Getuid() == 0 {
				t.Skip("root may read everything")
			}
			follow(t, func(p *place) {
				for _, wait := range []time.Duration{0, 10 * time.Second} {
					time.Sleep(wait)
					p.must(os.Remove(p.file))
					c.put(p, p.file)
					p.expect("it is lost", soon, 1)
					if text, _ := p.load(); text != "error: "+c.says {
						p.Errorf("got %q, want an error that says %q", text, c.says)
					}
					p.expect("it stays lost", time.Minute, 0)
					p.must(os.RemoveAll(p.file))
					p.write(p.file, oldText)
					p.expect("it is back", soon, 1)
					if text, _ := p.load(); text != oldText {
						p.Errorf("got %q back", text)
					}
				}
			})
		})
	}
}

// TestNeverQuiet: a file that changes all the time is told all the same, and not all the time.
func TestNeverQuiet(t *testing.T) {
	follow(t, func(p *place) {
		for i := range 1200 {
			p.write(p.file, strings.Repeat("#", i))
			time.Sleep(25 * time.Millisecond)
			if p.told.Load() > 0 && i%40 == 0 {
				p.load()
			}
		}
		if told := p.told.Load(); told < 4 || told > 6 {
			p.Errorf("told %d times in 30 s of changes, want one every five seconds or so", told)
		}
	})
}

// TestLargeIsNotRead: a document that is too large costs nothing.
func TestLargeIsNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 100<<20); err != nil {
		t.Fatal(err)
	}
	src := filesource.New(file)
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if _, err := src.Load(t.Context()); err == nil {
			t.Fatal("it is taken")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 64<<10 { // others may run at the same time: this is not parallel
		t.Errorf("to refuse it takes %d bytes of memory", each)
	}
}
