package filesource_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
