package mwtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func testBodies(t *testing.T, b *bench) {
	b.start(t, allow, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	sent := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	if _, got := b.do(t, http.MethodPost, "/", sent); got != sent {
		t.Errorf("%d bytes came back, want the %d that were sent", len(got), len(sent))
	}
	if got := b.awaitDone(t); got.Bytes != int64(len(sent)) {
		t.Errorf("Done got %d bytes, want %d", got.Bytes, len(sent))
	}
}

// sameResult compares status and size.
func sameResult(a, b httpverdict.Result) bool { return a.Status == b.Status && a.Bytes == b.Bytes }

func testDone(t *testing.T, b *bench) {
	for _, c := range []struct {
		name string
		app  http.HandlerFunc
		want httpverdict.Result
	}{
		{"write", hello, httpverdict.Result{Status: 200, Bytes: 5}},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, httpverdict.Result{Status: 200}},
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, httpverdict.Result{Status: 404}},
		{"status and body", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); io.WriteString(w, "made") },
			httpverdict.Result{Status: 201, Bytes: 4}},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, httpverdict.Result{Status: 204}},
		{"copied", func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, strings.NewReader("12345678")) },
			httpverdict.Result{Status: 200, Bytes: 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.start(t, allow, c.app)
			b.do(t, http.MethodGet, "/", "")
			if got := b.awaitDone(t); !sameResult(got, c.want) {
				t.Errorf("Done got %+v, want %+v", got, c.want)
			}
		})
	}
}

func testDonePanic(t *testing.T, b *bench) {
	b.start(t, allow, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.base, strings.NewReader("x")) // a POST is not repeated
	if err != nil {
		t.Fatal(err)
	}
	if res, err := b.client.Do(req); err == nil {
		res.Body.Close()
		if res.StatusCode < 500 {
			t.Errorf("the client got %d from a handler that panicked", res.StatusCode)
		}
	}
	if got := b.awaitDone(t); got.Status != 0 && got.Status < 500 {
		t.Errorf("Done got %+v from a handler that panicked", got)
	}
}

func testDoneClientLeaves(t *testing.T, b *bench) {
	reached := make(chan struct{})
	b.start(t, allow, func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			t.Error("the application does not learn that the client has left")
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	left := b.send(t, ctx)
	<-reached
	leave()
	<-left
	b.awaitDone(t)
}

// send makes a request that is expected to fail when ctx ends; the channel closes when it has.
func (b *bench) send(t *testing.T, ctx context.Context) <-chan struct{} {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base, nil)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if res, err := b.client.Do(req); err == nil {
			res.Body.Close()
			t.Errorf("answer %d to a client that has left", res.StatusCode)
		}
	}()
	return over
}

func testDoneMany(t *testing.T, b *bench) {
	b.start(t, allow, hello)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 16 {
				if res, err := b.client.Get(b.base); err != nil {
					t.Error(err)
				} else {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
	clients.Wait()
	for range 8 * 16 {
		if got := b.awaitDone(t); !sameResult(got, httpverdict.Result{Status: 200, Bytes: 5}) {
			t.Fatalf("Done got %+v", got)
		}
	}
}

func waiting(wait time.Duration) func(*httpverdict.Request) *httpverdict.Verdict {
	return func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "id-wait", Wait: wait, Binding: -1}
	}
}

func testWait(t *testing.T, b *bench) {
	const wait = 60 * time.Millisecond
	var reached time.Time
	b.start(t, waiting(wait), func(http.ResponseWriter, *http.Request) { reached = time.Now() })
	sent := time.Now()
	b.do(t, http.MethodGet, "/", "")
	if held := reached.Sub(sent); held < wait {
		t.Errorf("the application was reached after %s, want %s at least", held, wait)
	}
}

func testWaitLeave(t *testing.T, b *bench) {
	asked := make(chan struct{})
	b.start(t, func(r *httpverdict.Request) *httpverdict.Verdict {
		close(asked)
		return waiting(time.Hour)(r)
	}, unreached(t))
	ctx, leave := context.WithCancel(t.Context())
	left := b.send(t, ctx)
	<-asked
	leave()
	<-left
	if got := b.awaitDone(t); got.Status == 200 {
		t.Errorf("Done got %+v for a request that was never let in", got)
	}
}

func testWaitBound(t *testing.T, b *bench) {
	var verdicts atomic.Int32
	b.start(t, func(r *httpverdict.Request) *httpverdict.Verdict {
		verdicts.Add(1)
		return waiting(time.Hour)(r)
	}, unreached(t))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	// Two ask for the one place; whichever comes second is turned away, and the other stays.
	statuses := make(chan int, 2)
	var clients sync.WaitGroup
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			if res, err := b.client.Do(req); err == nil {
				res.Body.Close()
				if res.Header.Get("Retry-After") == "" {
					t.Error("the one turned away is not told when to come again")
				}
				statuses <- res.StatusCode
			}
		})
	}
	if got := <-statuses; got != http.StatusServiceUnavailable {
		t.Errorf("over the bound: %d, want 503", got)
	}
	if got := b.awaitDone(t); got.Status != http.StatusServiceUnavailable {
		t.Errorf("Done got %+v, want 503", got)
	}
	leave()
	clients.Wait()
	if len(statuses) != 0 || verdicts.Load() != 2 {
		t.Errorf("%d more answers and %d verdicts; want none and 2", len(statuses), verdicts.Load())
	}
	b.awaitDone(t)
}

func testStream(t *testing.T, b *bench) {
	next := make(chan string)
	b.start(t, allow, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		for event := range next {
			io.WriteString(w, event)
			if err := out.Flush(); err != nil {
				t.Errorf("flush: %v", err)
			}
		}
	})
	stop := sync.OnceFunc(func() { close(next) })
	defer stop()
	go func() { next <- "data: 0\n\n" }()
	res, err := b.client.Get(b.base)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := bufio.NewReader(res.Body)
	for i := range 3 {
		if i > 0 {
			next <- fmt.Sprintf("data: %d\n\n", i)
		}
		// The next event is not written before this one has been read.
		line, err := events.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("event %d: %q %v, want %q", i, line, err, want)
		}
		events.ReadString('\n')
	}
	stop()
	io.Copy(io.Discard, events)
	if got := b.awaitDone(t); !sameResult(got, httpverdict.Result{Status: 200, Bytes: 27}) {
		t.Errorf("Done got %+v, want 200 and 27 bytes", got)
	}
}

func testUpgrade(t *testing.T, b *bench) {
	b.start(t, allow, echoLines(t))
	conn := b.dial(t)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answer %v %v, want 101", res, err)
	}
	for i, want := range []string{"early\n", "one\n", "two\n"} {
		if i > 0 {
			io.WriteString(conn, want)
		}
		if got, err := in.ReadString('\n'); err != nil || got != want {
			t.Fatalf("echo %q %v, want %q", got, err, want)
		}
	}
	select {
	case res := <-b.judge.done:
		t.Errorf("Done was called with %+v while the connection was open", res)
	default:
	}
	conn.Close()
	if got := b.awaitDone(t); got.Status != http.StatusSwitchingProtocols || got.Bytes < 14 {
		t.Errorf("Done got %+v, want 101 and the bytes of the echo", got)
	}
}

// echoLines takes the connection over and returns at once, as servers of websockets may.
func echoLines(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		go func() {
			defer conn.Close() // the second one, which must not count
			for {
				line, err := rw.ReadString('\n')
				if err != nil {
					conn.Close()
					return
				}
				rw.WriteString(line)
				if err := rw.Flush(); err != nil {
					return
				}
			}
		}()
	}
}
