// Package sourcetest judges any [source.Source] by what the interface promises.
package sourcetest

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/source"
)

// Config says how to make the sources that are judged.
type Config struct {
	// New returns a source of a place in which nothing is yet.
	New func(t testing.TB) Place
	// Within is how soon Watch tells of a change; 0 stands for 2 s. Of several changes one must be told in twice that at most; a busy machine may
	// hold up the others.
	Within time.Duration

	slack time.Duration // what a busy machine may add to a time that a source promises; 0 stands for a minute
}

// Place is a source with the other end of it in hand.
type Place struct {
	Source source.Source
	// Put puts a document there in place of what is there.
	Put func(data []byte)
	// Remove takes it away.
	Remove func()
}

// Run judges the sources that cfg makes.
func Run(t *testing.T, cfg Config) {
	if cfg.Within == 0 {
		cfg.Within = 2 * time.Second
	}
	if cfg.slack == 0 {
		cfg.slack = time.Minute
	}
	for _, c := range []struct {
		name string
		test func(*bench)
	}{
		{"name", name}, {"loads", loads}, {"versions", versions}, {"nothing", nothing}, {"size", size},
		{"context", ended}, {"together", together},
		{"watch", watched}, {"same", same}, {"early", early}, {"gone", gone}, {"burst", burst}, {"end", end},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(&bench{T: t, Place: cfg.New(t), within: cfg.Within, slack: cfg.slack})
		})
	}
}

// bench is the place where one test happens.
type bench struct {
	*testing.T
	Place
	within time.Duration
	slack  time.Duration
}

func (b *bench) load(want string) *source.Document {
	b.Helper()
	d, err := b.Source.Load(b.Context())
	if err != nil {
		b.Fatalf("Load: %v, want %q", err, want)
	}
	if string(d.Data) != want || d.Name == "" {
		b.Fatalf("Load: %q named %q, want %q", d.Data, d.Name, want)
	}
	return d
}

func name(b *bench) {
	before := b.Source.Name()
	b.Put([]byte("version: 1\n"))
	if before == "" || b.Source.Name() != before {
		b.Errorf("the name is %q, and with a document %q", before, b.Source.Name())
	}
}

func loads(b *bench) {
	for _, text := range []string{"one", "", "three\r\n\x00\xff"} {
		b.Put([]byte(text))
		b.load(text)
	}
}

func versions(b *bench) {
	seen := map[string]string{}
	for _, text := range []string{"one", "two", "one", "", "two"} {
		b.Put([]byte(text))
		version := b.load(text).Version()
		if before, ok := seen[text]; ok && before != version {
			b.Errorf("%q is first version %q and then %q", text, before, version)
		}
		seen[text] = version
	}
	if len(seen) != 3 || seen["one"] == seen["two"] || seen["one"] == seen[""] || seen["two"] == seen[""] {
		b.Errorf("the versions of three documents are %v", seen)
	}
}

func nothing(b *bench) {
	if d, err := b.Source.Load(b.Context()); err == nil {
		b.Errorf("Load of nothing: %q", d.Data)
	} else if !strings.Contains(err.Error(), b.Source.Name()) {
		b.Errorf("the error %q does not say where, which is %q", err, b.Source.Name())
	}
}

func size(b *bench) {
	largest := strings.Repeat("x", source.MaxDocument)
	b.Put([]byte(largest))
	b.load(largest)
	b.Put([]byte(largest + "x"))
	if d, err := b.Source.Load(b.Context()); err == nil {
		b.Errorf("a document of %d bytes is taken", len(d.Data))
	}
	b.Put([]byte("small"))
	b.load("small")
}

func ended(b *bench) {
	b.Put([]byte("one"))
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if _, err := b.Source.Load(ctx); !errors.Is(err, context.Canceled) {
		b.Errorf("Load with a context that has ended: %v, want %v", err, context.Canceled)
	}
}

func together(b *bench) {
	b.Put([]byte("one"))
	results := make(chan error)
	for range 8 {
		go func() {
			d, err := b.Source.Load(b.Context())
			if err == nil && string(d.Data) != "one" {
				err = errors.New("got " + string(d.Data))
			}
			results <- err
		}()
	}
	for range 8 {
		if err := <-results; err != nil {
			b.Error(err)
		}
	}
}

// watching is a Watch under way.
type watching struct {
	*bench
	least time.Duration // in which a change was told
	told  chan struct{}
	stop  context.CancelFunc
	done  chan error
}

func (b *bench) watch() *watching {
	ctx, cancel := context.WithCancel(b.Context())
	w := &watching{bench: b, least: math.MaxInt64, told: make(chan struct{}, 1), stop: cancel, done: make(chan error, 1)}
	var inside atomic.Int32
	go func() {
		w.done <- b.Source.Watch(ctx, func() {
			if inside.Add(1) > 1 {
				b.Error("changed is called while it runs")
			}
			select {
			case w.told <- struct{}{}:
			default: // the test has a word to read that says the same
			}
			inside.Add(-1)
		})
	}()
	b.Cleanup(w.end)
	return w
}

// await loads whenever it is told to, until ok is content with what comes.
func (w *watching) await(what string, ok func(*source.Document, error) bool) {
	w.Helper()
	limit := time.After(w.within + w.slack)
	for begin := time.Now(); ; {
		select {
		case <-w.told:
			if !ok(w.Source.Load(w.Context())) {
				continue
			}
			w.least = min(w.least, time.Since(begin))
			return
		case <-limit:
			w.Fatalf("%s: not told within %v", what, w.within+w.slack)
		}
	}
}

func (w *watching) awaitText(text string) {
	w.Helper()
	w.await("the document "+text, func(d *source.Document, err error) bool { return err == nil && string(d.Data) == text })
}

// end ends the watch and sees it end.
func (w *watching) end() {
	w.stop()
	select {
	case err := <-w.done:
		if err != nil {
			w.Errorf("Watch: %v, want nil for a context that has ended", err)
		}
		w.done <- nil // for whoever ends it again
	case <-time.After(w.slack):
		w.Errorf("Watch goes on %v after its context has ended", w.slack)
	}
}

func watched(b *bench) {
	b.Put([]byte("one"))
	b.load("one")
	w := b.watch()
	for _, text := range []string{"two", "three, which is longer", "four", "two"} {
		b.Put([]byte(text))
		w.awaitText(text)
	}
	if w.least > 2*w.within {
		b.Errorf("of four changes each was told after %v at least, which is above %v", w.least, w.within)
	}
}

// same: what is put again as it was does not hide what comes after it.
func same(b *bench) {
	b.Put([]byte("one"))
	b.load("one")
	w := b.watch()
	for range 3 {
		b.Put([]byte("one"))
	}
	b.Put([]byte("two"))
	w.awaitText("two")
}

// early: what has changed before Watch began is told too.
func early(b *bench) {
	b.Put([]byte("one"))
	b.load("one")
	b.Put([]byte("two"))
	b.watch().awaitText("two")
}

func gone(b *bench) {
	b.Put([]byte("one"))
	b.load("one")
	w := b.watch()
	for range 2 {
		b.Remove()
		w.await("the removal", func(_ *source.Document, err error) bool { return err != nil })
		b.Put([]byte("one"))
		w.awaitText("one")
	}
}

// burst: of many changes the last counts.
func burst(b *bench) {
	b.Put([]byte("0"))
	b.load("0")
	w := b.watch()
	for i := range 200 {
		b.Put([]byte(strings.Repeat("x", i)))
	}
	b.Put([]byte("last"))
	w.awaitText("last")
}

func end(b *bench) {
	b.Put([]byte("one"))
	b.load("one")
	w := b.watch()
	w.end()
	b.Put([]byte("two"))
	again := b.watch() // whose word shows that there was time for one
	again.awaitText("two")
	select {
	case <-w.told:
		b.Error("a Watch that has ended tells of a change")
	default:
	}
}
