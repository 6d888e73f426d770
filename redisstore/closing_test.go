package redisstore

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// TestCloseIsNoFailureOfRedis: a call that fails is logged, but for one that the store's own end cuts short.
func TestCloseIsNoFailureOfRedis(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]int{"the store is open": 1, "it is closed meanwhile": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 1), answers: []error{context.Canceled}}
			s := openFake(t, f, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			answered, closed := make(chan error, 1), make(chan struct{})
			go func() {
				_, err := takeOne(s)
				answered <- err
			}()
			<-f.entered
			closing := func() { _ = s.Close(); close(closed) }
			if lines == 0 {
				go closing()
				<-s.base.Done()
			}
			close(f.block)
			if err := <-answered; err == nil {
				t.Error("it passes")
			}
			if lines > 0 {
				closing()
			}
			<-closed
			if n := strings.Count(log.String(), "a call of Redis failed"); n != lines {
				t.Errorf("%d lines, want %d: %s", n, lines, &log)
			}
		})
	}
}
