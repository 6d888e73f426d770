package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/source"
)

// fakeSource has what the test says.
type fakeSource struct {
	mu      sync.Mutex
	text    string
	err     error
	loads   int
	changed func()
	fail    chan error // ends Watch
}

func (*fakeSource) Name() string { return "fake" }

func (f *fakeSource) Load(context.Context) (*source.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	if f.err != nil {
		return nil, f.err
	}
	return &source.Document{Name: "fake", Data: []byte(f.text)}, nil
}

func (f *fakeSource) Watch(ctx context.Context, changed func()) error {
	f.mu.Lock()
	f.changed = changed
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil
	case err := <-f.fail:
		return err
	}
}

// put changes what the source has, and tells.
func (f *fakeSource) put(text string, err error) {
	f.mu.Lock()
	f.text, f.err = text, err
	changed := f.changed
	f.mu.Unlock()
	changed()
}

// reloading is a reloader at work in virtual time.
type reloading struct {
	*testing.T
	*reloader
	src *fakeSource
	hup chan os.Signal
	log bytes.Buffer
}

func reloads(t *testing.T, check func(*policy.Engine) error, test func(*reloading)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reloading{T: t, src: &fakeSource{text: "version: 1\nrules: []\n", fail: make(chan error)}, hup: make(chan os.Signal)}
		log := slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "took" {
				return slog.Attr{}
			}
			return a
		}}))
		r.reloader = &reloader{source: r.src, check: check, asked: r.hup, log: log}
		first, err := r.first(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mem := memstore.New(memstore.Config{})
		defer mem.Close()
		if err := r.begin(first, GuardConfig{Store: &Store{Limiter: mem, Name: "memory"}}); err != nil {
			t.Fatal(err)
		}
		defer r.guard.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(ctx)
		}()
		synctest.Wait()
		r.expect()
		test(r)
		cancel()
		<-done
	})
}

func versionOf(text string) string {
	d := source.Document{Data: []byte(text)}
	return d.Version()[:12]
}

// expect wants these lines in the log since it was last asked.
func (r *reloading) expect(lines ...string) {
	r.Helper()
	synctest.Wait()
	want := ""
	for _, line := range lines {
		want += line + "\n"
	}
	if got := r.log.String(); got != want {
		r.Errorf("logged\n%swant\n%s", got, want)
	}
	r.log.Reset()
}

const bad, worse, good = "version: 2\n", "version: 3\n", "version: 1\nrules: [] # good\n"

func refusedLine(problem, refused, inForce, trigger string) string {
	line := fmt.Sprintf("level=ERROR msg=\"policy refused: the old one stays in force\" error=%q in_force=%s trigger=%s",
		problem, versionOf(inForce), trigger)
	if refused != "" {
		line += " refused=" + versionOf(refused)
	}
	return line
}

func inForceLine(text, trigger string) string {
	return "level=INFO msg=\"policy in force\" policy=fake version=" + versionOf(text) + " rules=0 trigger=" + trigger
}

const (
	firstText   = "version: 1\nrules: []\n"
	saysVersion = `fake:1:10: version "2" is unknown; write version: 1`
)

// TestOneLineForEachBadVersion, however often the source tells of it.
func TestOneLineForEachBadVersion(t *testing.T) {
	reloads(t, nil, func(r *reloading) {
		for range 5 {
			r.src.put(bad, nil)
			time.Sleep(10 * time.Second)
		}
		r.expect(refusedLine(saysVersion, bad, firstText, "change"))
		r.src.put(worse, nil)
		time.Sleep(time.Second)
		r.expect(refusedLine(strings.Replace(saysVersion, "2", "3", 1), worse, firstText, "change"))
		r.src.put(good, nil)
		r.expect(inForceLine(good, "change"))
		r.src.put(bad, nil)
		time.Sleep(time.Second)
		r.expect(refusedLine(saysVersion, bad, good, "change"))
		r.src.put(good, nil)
		r.expect("level=INFO msg=\"policy unchanged: the one in force is what there is\" policy=fake version=" + versionOf(good) + " trigger=change")
		r.src.put(good, nil)
		r.expect()
		if s := r.Status(); s.Refused != 3 || s.Reloads != 1 || !s.Current || s.Version != versionOf(good) || s.LastRefused.Version != versionOf(bad) {
			t.Errorf("the status is %+v", s)
		}
	})
}

// TestHalfWritten: what cannot be put in force and is another thing at once is not worth a word; what never rests is.
func TestHalfWritten(t *testing.T) {
	reloads(t, nil, func(r *reloading) {
		for _, text := range []string{"ver", "version", "version: 1\nrul"} {
			r.src.put(text, nil)
			time.Sleep(patience - time.Millisecond)
		}
		r.src.put(good, nil)
		r.expect(inForceLine(good, "change"))
		begin := time.Now()
		for i := 0; r.log.Len() == 0 && i < 100; i++ {
			r.src.put(fmt.Sprint("version: ", i+2), nil)
			time.Sleep(patience / 2)
			synctest.Wait()
		}
		if took := time.Since(begin); took < longestPatience || took > longestPatience+patience {
			t.Errorf("what never rests is complained of after %v, want %v", took, longestPatience)
		}
	})
}

// TestLost: a source that has nothing, or cannot be asked, leaves the policy in force.
func TestLost(t *testing.T) {
	reloads(t, nil, func(r *reloading) {
		r.src.put("", errors.New("fake cannot be reached\nby anybody"))
		time.Sleep(time.Second)
		r.expect(refusedLine("policy fake cannot be reached; by anybody", "", firstText, "change"))
		r.src.put("", errors.New("fake cannot be reached\nby anybody"))
		time.Sleep(time.Second)
		r.expect()
		if s := r.Status(); s.Current || s.Refused != 1 || s.LastRefused.Version != "" {
			t.Errorf("the status is %+v", s)
		}
		r.src.put(firstText, nil)
		r.expect("level=INFO msg=\"policy unchanged: the one in force is what there is\" policy=fake version=" + versionOf(firstText) + " trigger=change")
	})
}

// TestAsked: whoever asks with a signal is told what came of it, whatever it is.
func TestAsked(t *testing.T) {
	reloads(t, nil, func(r *reloading) {
		unchanged := "level=INFO msg=\"policy unchanged: the one in force is what there is\" policy=fake version=" + versionOf(firstText) + " trigger=hangup"
		r.hup <- syscall.SIGHUP
		r.expect(unchanged)
		r.src.mu.Lock()
		r.src.text = bad
		r.src.mu.Unlock()
		for range 2 {
			r.hup <- syscall.SIGHUP
			time.Sleep(time.Second)
			r.expect(refusedLine(saysVersion, bad, firstText, "hangup"))
		}
		r.src.mu.Lock()
		r.src.text = good
		r.src.mu.Unlock()
		r.hup <- syscall.SIGHUP
		r.expect(inForceLine(good, "hangup"))
	})
}

// TestCheckRefuses: what the fronts cannot serve does not come in force, also not for a moment.
func TestCheckRefuses(t *testing.T) {
	refuse := func(e *policy.Engine) error {
		if len(e.Policy().Rules()) > 0 {
			return errors.New("this front has no hands")
		}
		return nil
	}
	reloads(t, refuse, func(r *reloading) {
		before := r.guard.live.Load()
		text := limited("token_bucket 1/s")
		r.src.put(text, nil)
		time.Sleep(time.Second)
		r.expect(refusedLine("this front has no hands", text, firstText, "change"))
		if r.guard.live.Load() != before {
			t.Error("another policy is in force")
		}
	})
}

// TestWatchFails: who cannot be told of changes any more says so, and can still be asked.
func TestWatchFails(t *testing.T) {
	reloads(t, nil, func(r *reloading) {
		r.src.fail <- errors.New("no more")
		r.expect("level=ERROR msg=\"the policy is not watched any more; a signal still has it loaded\" error=\"no more\"")
		r.src.mu.Lock()
		r.src.text = good
		r.src.mu.Unlock()
		r.hup <- syscall.SIGHUP
		r.expect(inForceLine(good, "hangup"))
	})
}

// TestProblemLines: whatever is wrong, and however much, is a bounded number of bounded lines.
func TestProblemLines(t *testing.T) {
	t.Parallel()
	many := &policy.Error{More: 7}
	for i := range 40 {
		many.Problems = append(many.Problems, policy.Problem{File: "p", Line: i + 1, Column: 1, Message: strings.Repeat("é", 1000)})
	}
	lines := problemLines(fmt.Errorf("refused: %w", many), 3)
	if len(lines) != 4 || lines[3] != "and 44 more" || !strings.HasPrefix(lines[2], "p:3:1: é") {
		t.Errorf("got %d lines: %q", len(lines), lines)
	}
	for _, line := range lines {
		if len(line) > problemBytes+len("…") || strings.ContainsRune(line, '\ufffd') {
			t.Errorf("the line %q has %d bytes", line, len(line))
		}
	}
	if got := oneLine(errors.New("one\ntwo")); got != "one; two" {
		t.Errorf("got %q", got)
	}
}

// hungSource does not answer until it is released.
type hungSource struct {
	fakeSource
	asked, release chan struct{}
}

func (h *hungSource) Load(ctx context.Context) (*source.Document, error) {
	close(h.asked)
	<-h.release
	return h.fakeSource.Load(ctx)
}

// TestFollowHung: a file that does not answer does not keep the process from ending.
func TestFollowHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &hungSource{asked: make(chan struct{}), release: make(chan struct{})}
		src.text = "version: 1\nrules: []\n"
		hup := make(chan os.Signal)
		var log bytes.Buffer
		s := &service{cfg: ServeConfig{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		s.reloader = &reloader{source: src, asked: hup, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.follow(ctx)
		}()
		hup <- syscall.SIGHUP
		<-src.asked
		begin := time.Now()
		cancel()
		<-ended
		if took := time.Since(begin); took > 2*time.Second || !strings.Contains(log.String(), "does not answer") {
			t.Errorf("it ended after %v and said %q", took, log.String())
		}
		close(src.release)
	})
}
