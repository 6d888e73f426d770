package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchedAnswers(t *testing.T) {
	for _, c := range []struct {
		name           string
		length         int64
		every          time.Duration
		service, reads time.Duration // between the parts, and between reads
		want           error
	}{
		{"brisk", 5, time.Second, 500 * time.Millisecond, 0, nil},
		{"silent from the first", 1, time.Second, 2100 * time.Millisecond, 0, errSilent},
		{"in time for the second look", 5, time.Second, 900 * time.Millisecond, 0, nil},
		{"silent", 5, time.Second, 2100 * time.Millisecond, 0, errSilent},
		{"a slow client", 5, time.Second, 0, time.Hour, nil},
		{"a stream", -1, time.Second, time.Hour, 0, nil},
		{"no bound", 5, -1, time.Hour, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				var writer sync.WaitGroup
				writer.Go(func() {
					defer out.Close()
					for range 5 {
						time.Sleep(c.service)
						if _, err := out.Write([]byte("x")); err != nil {
							return
						}
					}
				})
				w := answerWatches{every: c.every}
				defer w.close()
				a := w.begin(&http.Response{ContentLength: c.length, Body: in})
				defer w.end(a)
				var err error
				for part := make([]byte, 1); err == nil; {
					_, err = a.Read(part)
					time.Sleep(c.reads)
				}
				if err == io.EOF {
					err = nil
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				in.Close()
				writer.Wait()
			})
		})
	}
}

// Watches are used again and begin anew; each answer has its own.
func TestWatchesAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answerWatches{every: time.Second}
		defer w.close()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				for range 10 {
					in, out := io.Pipe()
					a := w.begin(&http.Response{ContentLength: 1, Body: in})
					if i == 0 { // silent
						if _, err := a.Read(make([]byte, 1)); !errors.Is(err, errSilent) {
							t.Errorf("%v", err)
						}
					} else {
						time.AfterFunc(900*time.Millisecond, func() { out.Write([]byte("x")) })
						if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
							t.Errorf("%d %v", n, err)
						}
					}
					w.end(a)
				}
			})
		}
		all.Wait()
		if len(w.active) != 0 {
			t.Errorf("%d are still watched", len(w.active))
		}
	})
}

// stuck is the body of a connection that takes nothing more: closing it waits.
type stuck struct {
	closing chan struct{}
	release chan struct{}
}

func (s *stuck) Read([]byte) (int, error) { <-s.release; return 0, io.ErrClosedPipe }
func (s *stuck) Close() error             { close(s.closing); <-s.release; return nil }

// An answer that cannot be closed at once holds up no other.
func TestClosingASilentAnswerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{make(chan struct{}), make(chan struct{})}
		w := answerWatches{every: time.Second}
		defer w.close()
		a := w.begin(&http.Response{ContentLength: 1, Body: s})
		read := make(chan error)
		go func() {
			_, err := a.Read(make([]byte, 1))
			read <- err
		}()
		<-s.closing
		begun := time.Now()
		w.end(w.begin(&http.Response{ContentLength: 1, Body: http.NoBody}))
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("another answer waits for %s", waited)
		}
		close(s.release)
		if err := <-read; err != errSilent {
			t.Errorf("%v, want %v", err, errSilent)
		}
		w.end(a)
	})
}

// What goes on after the end is watched no more: nothing of the gateway is left to do it.
func TestNoWatchAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		w := answerWatches{every: time.Second}
		w.close()
		a := w.begin(&http.Response{ContentLength: 1, Body: in})
		go func() {
			time.Sleep(time.Hour)
			out.Write([]byte("x"))
		}()
		if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		w.end(a)
	})
}
