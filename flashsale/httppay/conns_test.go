package httppay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestRedirects: a request, which is signed and may name a user, goes where it was addressed to, and nowhere else.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int64
	other := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL, "/v1/elsewhere"} {
			service := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "elsewhere") {
					strayed.Add(1)
				}
				http.Redirect(w, r, to, status)
			}))
			_, err := connect(t, newClock(), service.URL, nil).Create(t.Context(), intent("r:1"))
			wantCode(t, fmt.Sprintf("%d to %s", status, to), err, flashsale.CodeUnavailable)
		}
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests have followed", n)
	}
}

// TestSlowAnswers: a call ends in its time, whether the header, the body or the connection does not come, and so does the wait for a turn.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	slow := func(before string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if before != "" {
				_, _ = io.WriteString(w, before)
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
	}
	for name, service := range map[string]http.Handler{"no header": slow(""), "half a body": slow(goodPayment[:20])} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, newClock(), listen(t, service).URL, func(c *Config) { c.Timeout, c.MaxCalls = 100*time.Millisecond, 1 })
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					_, err := client.Query(t.Context(), "r:1")
					wantCode(t, "query", err, flashsale.CodeUnavailable)
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
				})
			}
			all.Wait()
		})
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = connect(t, newClock(), "http://"+silent.Addr().String(), nil).Void(ctx, "r:1")
	wantCode(t, "no answer", err, flashsale.CodeUnavailable)
}

// TestNobodyThere: a service that is not there, a name that is none.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := connect(t, newClock(), gone.URL, nil).Query(t.Context(), "r:1")
	wantCode(t, "refused", err, flashsale.CodeUnavailable)
	client := connect(t, newClock(), gone.URL, nil)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	_, err = client.Query(t.Context(), "r:1")
	wantCode(t, "closed", err, flashsale.CodeClosed)
}

// TestCallsAreBounded: as many calls as are allowed are under way, and no more, on connections that are used again. The service answers when so
// many have come, or they might come one after the other.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	const bound, calls = 4, 200
	var now, most atomic.Int64
	var conns sync.Map // that have carried a call
	came, answer, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := newClock()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		select {
		case came <- struct{}{}:
			<-answer
		case <-over:
		}
		said(200, "application/json", goodPayment).ServeHTTP(w, r)
	}))
	t.Cleanup(service.Close)
	client := connect(t, c, service.URL, func(cfg *Config) { cfg.MaxCalls, cfg.Timeout = bound, 2*time.Minute })
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := client.Query(t.Context(), "r:1"); err != nil {
				t.Error(err)
			}
		})
	}
	late := time.After(time.Minute)
rounds:
	for range calls / bound {
		for n := range bound {
			select {
			case <-came:
			case <-late:
				t.Errorf("no more than %d calls come at a time", n)
				close(answer)
				break rounds
			}
		}
		for range bound {
			answer <- struct{}{}
		}
	}
	close(over)
	all.Wait()
	used := 0
	for range conns.Range {
		used++
	}
	// net/http gives up a connection that was written to and then not looked at for 50 ms, as when the machine stands still.
	if most.Load() > bound || used > calls/10 {
		t.Errorf("%d calls at a time, want at most %d; %d calls on %d connections, want about %d", most.Load(), bound, calls, used, bound)
	}
}

// TestAConnectionThatWasClosedMeanwhile: a kept connection that the service has closed is replaced, and the call is made once more.
func TestAConnectionThatWasClosedMeanwhile(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	service := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 {
			cut("").ServeHTTP(w, r)
			return
		}
		said(200, "application/json", goodPayment).ServeHTTP(w, r)
	}))
	client := connect(t, newClock(), service.URL, nil)
	for range 2 {
		if _, err := client.Refund(t.Context(), "r:1"); err != nil {
			t.Error(err)
		}
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls came; want 3", n)
	}
}
