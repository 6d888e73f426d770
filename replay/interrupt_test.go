package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestInterrupted: whoever stops a replay gets what it has seen, also while a pipe says nothing.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(errors.New("told to stop")) })
	defer stop()
	go func() {
		for i := range 5000 {
			if _, err := io.WriteString(out, lineAt(i, "192.0.2.1", "/")); err != nil {
				return
			}
		}
		cancel() // and the pipe stays open
	}()
	p, _ := shop(t, "p", "sliding_log 1/1m")
	r, err := Run(ctx, Config{Policy: p, Files: []string{"-"}, Stdin: in, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Log.Lines == 0 || r.Total.Requests != r.Log.Lines {
		t.Errorf("interrupted %v, %d lines, %d requests", r.Interrupted, r.Log.Lines, r.Total.Requests)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "INTERRUPTED at line") || strings.Contains(text.String(), "told to stop") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestInterruptedAtAPipe: a named pipe that nobody writes to, and one whose writer is silent, hold nothing up.
func TestInterruptedAtAPipe(t *testing.T) {
	t.Parallel()
	for _, written := range []int{-1, 0, 3} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p, _ := shop(t, "p", "sliding_log 1/1m")
		var progress Progress
		reports := make(chan *Report, 1)
		go func() {
			r, err := Run(ctx, Config{Policy: p, Files: []string{pipe}, Window: -1, Progress: &progress})
			if err != nil {
				t.Error(err)
			}
			reports <- r
		}()
		var out *os.File
		if written >= 0 {
			var err error
			if out, err = os.OpenFile(pipe, os.O_WRONLY, 0); err != nil {
				t.Fatal(err)
			}
			for i := range written {
				_, _ = out.WriteString(lineAt(i, "192.0.2.1", "/"))
			}
			for progress.Lines.Load() < int64(written) {
				runtime.Gosched()
			}
		}
		for range 1000 { // most often it waits for a writer by then
			runtime.Gosched()
		}
		cancel()
		r := <-reports
		if r != nil && (!r.Interrupted || r.Total.Requests != int64(max(written, 0))) {
			t.Errorf("%d written: interrupted %v, %d requests", written, r.Interrupted, r.Total.Requests)
		}
		var text, page bytes.Buffer
		if err := errors.Join(r.WriteText(&text), r.WriteHTML(&page)); err != nil || strings.Contains(text.String()+page.String(), "0001") {
			t.Errorf("%d written: %v\n%s", written, err, text.String())
		}
		if out == nil { // so that the goroutine that opens it ends
			var err error
			if out, err = os.OpenFile(pipe, os.O_RDWR, 0); err != nil {
				t.Fatal(err)
			}
		}
		out.Close()
	}
}
