package filesource_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/source"
	"github.com/headgate-io/headgate/source/filesource"
)

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

// TestLists: the files that are read for a document are followed with it, those that it names in vain too.
func TestLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(p *place)
		list string
	}{
		"changed": {func(p *place) { p.write(p.list, "changed") }, "changed"},
		"removed": {func(p *place) { p.must(os.Remove(p.list)) }, "error: statat list.txt: no such file or directory"},
		"a pipe": {func(p *place) { p.must(os.Remove(p.list)); p.must(syscall.Mkfifo(p.list, 0o600)) },
			"error: open list.txt: is not a regular file"},
		"a symlink within": {func(p *place) {
			p.write(filepath.Join(p.dir, "b.txt"), "b")
			p.must(os.Remove(p.list))
			p.must(os.Symlink("b.txt", p.list))
		}, "b"},
		"a symlink outside": {func(p *place) {
			p.must(os.Remove(p.list))
			p.must(os.Symlink(filepath.Join("..", "b.txt"), p.list))
		}, "error: statat list.txt: path escapes from parent"},
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, func(p *place) {
				p.expect("nothing happens", 10*time.Second, 0)
				_, before := p.load()
				c.put(p)
				p.expect("a change", soon, 1)
				if _, list := p.load(); list != c.list {
					p.Errorf("the list is %q, want %q", list, c.list)
				}
				p.expect("nothing more", time.Minute, 0)
				p.must(os.RemoveAll(p.list))
				p.write(p.list, before)
				p.expect("and back", soon, 1)
				if _, list := p.load(); list != before {
					p.Errorf("the list is %q, want %q as before", list, before)
				}
			})
		})
	}
}

// TestListThatComes: a list that is read only later is followed from then on, and one that no document names is not.
func TestListThatComes(t *testing.T) {
	follow(t, func(p *place) {
		p.lists = nil
		p.load()
		p.write(p.list, "nobody reads this")
		p.expect("a list that is not read", 10*time.Second, 0)
		p.lists = []string{"list.txt", "deep/er.txt", "../out.txt"}
		if _, list := p.load(); !strings.Contains(list, "deep/er.txt: no such file") || !strings.Contains(list, "../out.txt: invalid argument") {
			p.Errorf("the lists are %q", list)
		}
		p.expect("what cannot be read", 10*time.Second, 0)
		p.must(os.Mkdir(filepath.Join(p.dir, "deep"), 0o700))
		p.write(filepath.Join(p.dir, "deep", "er.txt"), "x")
		p.expect("a list that was missed", soon, 1)
	})
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

// TestVersion is of everything that was read.
func TestVersion(t *testing.T) {
	follow(t, func(p *place) {
		version := func() string {
			d, err := p.src.Load(p.Context())
			p.must(err)
			f, err := d.Files().Open("list.txt")
			p.must(err)
			_, err = io.Copy(io.Discard, f)
			p.must(err)
			p.must(f.Close())
			return d.Version()
		}
		first := version()
		p.write(p.list, "192.0.2.9\n")
		second := version()
		p.write(p.list, "192.0.2.1\n")
		if third := version(); first == second || first != third {
			p.Errorf("versions %s, %s and %s, want the first again for what was there first", first, second, third)
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
