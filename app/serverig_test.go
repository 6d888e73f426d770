package app

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logLines is a log that a test can wait on.
type logLines struct {
	w     *io.PipeWriter
	lines chan string
}

func newLogLines(t *testing.T) *logLines {
	t.Helper()
	r, w := io.Pipe()
	l := &logLines{w: w, lines: make(chan string, 10_000)}
	go func() {
		defer close(l.lines)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			l.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() { _ = w.Close() })
	return l
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l.w, nil)) }

// ample bounds what a test waits for; nothing is expected to take it, on a machine under load neither.
const ample = time.Minute

// await returns the first line that has a text.
func (l *logLines) await(t *testing.T, text string) string {
	t.Helper()
	deadline := time.After(ample)
	var seen []string
	for {
		select {
		case line, ok := <-l.lines:
			if !ok {
				t.Fatalf("the log ended without %q:\n%s", text, strings.Join(seen, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
			seen = append(seen, line)
		case <-deadline:
			t.Fatalf("the log has no %q after %s:\n%s", text, ample, strings.Join(seen, "\n"))
		}
	}
}

func writePolicy(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// twoAnHour has a log: the windows of fixed_window end at whole hours, and now and then while a test runs.
const twoAnHour = `version: 1
clients:
  trusted_proxies: [10.0.0.0/8]
dimensions:
  user: {header: X-User-Id, trusted: true}
rules:
  - name: front
    key: [ip]
    limits: [sliding_log 2/1h]
`

// running is a service in the middle of its work.
type running struct {
	log   *logLines
	first string // line that says what is guarded
	url   string
	admin string
	stop  context.CancelFunc
	done  chan error
}

// start serves and waits for the line that says so.
func start(t *testing.T, cfg ServeConfig) *running {
	t.Helper()
	r := &running{log: newLogLines(t), done: make(chan error, 1)}
	cfg.Log = r.log.logger()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	t.Cleanup(cancel)
	go func() {
		err := Serve(ctx, cfg)
		_ = r.log.w.Close()
		r.done <- err
	}()
	line := r.log.await(t, "headgate guards")
	at := regexp.MustCompile(`listen=(\S+) .*admin=(\S+)`).FindStringSubmatch(line)
	if at == nil {
		t.Fatalf("the first line says too little: %s", line)
	}
	r.first, r.url, r.admin = line, at[1], "http://"+at[2]
	return r
}

// get returns the status and body of an answer; the connection is not kept.
func get(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := (&http.Client{Timeout: ample}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
