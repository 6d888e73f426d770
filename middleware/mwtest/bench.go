package mwtest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// patience bounds what a test waits for; nothing is expected to take it.
const patience = time.Minute

// bench is the place where one test happens: a front, a scripted policy and a client.
type bench struct {
	front  Front
	judge  *judge
	stale  *stale.Cache
	base   string
	client *http.Client
}

// judge is a Decider that answers as told, and sees to it that Done is called once for every verdict.
type judge struct {
	answer func(*httpverdict.Request) *httpverdict.Verdict
	done   chan httpverdict.Result

	mu    sync.Mutex
	seen  []httpverdict.Request
	calls []int // of Done, by verdict
}

func (j *judge) Decide(_ context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := j.answer(r)
	i := len(j.calls)
	j.seen, j.calls = append(j.seen, *r), append(j.calls, 0)
	v.Done = func(_ context.Context, res httpverdict.Result) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.calls[i]++
		j.done <- res
	}
	return v
}

func (j *judge) requests() []httpverdict.Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]httpverdict.Request(nil), j.seen...)
}

// checkDone runs after the front has stopped.
func (j *judge) checkDone(t testing.TB) {
	for i, n := range j.calls {
		if n != 1 {
			t.Errorf("Done of verdict %d was called %d times, want once", i, n)
		}
	}
}

func allow(*httpverdict.Request) *httpverdict.Verdict {
	return &httpverdict.Verdict{ID: "id-allow", Binding: -1}
}

// start puts an application behind the front under a scripted policy.
func (b *bench) start(t *testing.T, answer func(*httpverdict.Request) *httpverdict.Verdict, app http.HandlerFunc) {
	t.Helper()
	b.judge = &judge{answer: answer, done: make(chan httpverdict.Result, 1024)}
	t.Cleanup(func() { b.judge.checkDone(t) }) // cleanups run last first: after those of the front
	var err error
	if b.stale, err = stale.New(stale.Config{}); err != nil {
		t.Fatal(err)
	}
	base, err := b.front.Start(t, Setup{Decider: b.judge, App: app, MaxHeld: 1, Stale: b.stale})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	b.base = base
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	b.client = &http.Client{Transport: transport, Timeout: patience}
}

// awaitDone returns what the next Done was told.
func (b *bench) awaitDone(t *testing.T) httpverdict.Result {
	t.Helper()
	select {
	case res := <-b.judge.done:
		return res
	case <-time.After(patience):
		t.Fatal("Done was not called")
	}
	return httpverdict.Result{}
}

// do sends a request and returns the answer with its body read.
func (b *bench) do(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: read: %v", method, path, err)
	}
	return res, string(text)
}

// dial opens a raw connection to the front.
func (b *bench) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}
