package filesource_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
