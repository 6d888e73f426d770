package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// briefly is the bound that a test runs into.
const briefly = 100 * time.Millisecond

// answersWithin changes the time in which the first upstream has to begin its answers, between two requests: where one is to take too long
// and another is not, a machine that stands still for a moment must not mix them up.
func (g *Gateway) answersWithin(d time.Duration) {
	g.pool.all[0].lanes.first().ResponseHeaderTimeout = d
}

func TestSlowHeadersAreCut(t *testing.T) {
	addr := served(t, Config{Upstream: "http://127.0.0.1:9"}, ServerConfig{HeaderTimeout: briefly})
	for _, sent := range []string{"", "G", "PRI * HTTP/2.0", "GET / HTTP/1.1\r\nHost: x\r\nX: ", "GET / HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 20)} {
		conn := dialGateway(t, addr)
		io.WriteString(conn, sent)
		if _, err := io.ReadAll(conn); err != nil && !isReset(err) {
			t.Errorf("after %q the connection stays open: %v", sent, err)
		}
	}
}

func TestSlowBodyIsCut(t *testing.T) {
	cancelled := make(chan error, 2)
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		cancelled <- err
	})
	// A client must not be cut before its request has come to the service, which is looked for.
	addr := served(t, Config{Upstream: service, Stall: 10 * briefly}, ServerConfig{})
	for _, c := range []struct {
		name, framing, first string
	}{
		{"nothing comes", "Content-Length: 10\r\n", ""},
		{"a part comes", "Content-Length: 10\r\n", "abc"},
		{"a chunk comes", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dialGateway(t, addr)
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n%s", c.framing, c.first)
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != http.StatusRequestTimeout || !res.Close {
				t.Fatalf("answer %v %v, want 408 and the end", res, err)
			}
			io.Copy(io.Discard, res.Body)
			if _, err := io.ReadAll(in); err != nil && !isReset(err) {
				t.Errorf("the connection stays open: %v", err)
			}
			if err := <-cancelled; err == nil {
				t.Error("the service takes the part for a whole body")
			}
		})
	}
}

func TestSlowStreamIsCut(t *testing.T) {
	for _, service := range []string{"http", "h2c"} {
		addr := served(t, Config{Upstream: service + "://" + protocolServer(t, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				t.Error("the service takes the part for a whole body")
			}
		}), Stall: briefly}, ServerConfig{})
		body, sender := io.Pipe()
		go io.WriteString(sender, "abc") // and no more
		res, err := client(t, h2c).Post("http://"+addr, "", body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		sender.Close()
		if res.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%s: answer %d, want 408", service, res.StatusCode)
		}
	}
}

// A body may come slowly as long as it comes at the rate, and stop for a moment, however long it takes in all.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(10*time.Second, 100)
		wait := func(d time.Duration, bytes int) bool {
			start := time.Now()
			deadline, _ := p.arm(start)
			if start.Add(d).After(deadline) {
				return false
			}
			time.Sleep(d)
			p.spent(time.Since(start), bytes)
			return true
		}
		for i := range 1000 {
			if !wait(time.Second, 100) {
				t.Fatalf("a body at exactly the rate is cut after %d s", i)
			}
		}
		if !wait(9*time.Second, 100) || wait(9*time.Second, 100) {
			t.Error("want one long pause to pass and a second one to be cut")
		}
		if !wait(0, 1<<30) || wait(10*time.Second+1, 1) {
			t.Error("a fast start earns more than the stall time")
		}
		seconds := 0
		for wait(time.Second, 10) { // a tenth of the rate: every second spends 0.9 s
			seconds++
		}
		if seconds < 10 || seconds > 12 {
			t.Errorf("a trickle is cut after %d s, want 11", seconds)
		}
	})
}

func TestPaceSparesDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(10*time.Second, 100)
		set := 0
		for range 1000 { // 10 s of small fast writes
			if _, again := p.arm(time.Now()); again {
				set++
			}
			p.spent(0, 10)
			time.Sleep(10 * time.Millisecond)
		}
		if set < 2 || set > 4 {
			t.Errorf("the deadline was set %d times, want about every 5 s", set)
		}
		p.replaced()
		if _, again := p.arm(time.Now()); !again {
			t.Error("a deadline that somebody else replaced is not set again")
		}
	})
}

func TestClientThatTakesNothingIsCut(t *testing.T) {
	gone := make(chan struct{})
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, &zeros{1 << 40})
		close(gone)
	})
	done := make(chan httpverdict.Result, 1)
	judge := decider(func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{Binding: -1, Done: func(_ context.Context, res httpverdict.Result) { done <- res }}
	})
	// The kernel takes some megabytes, for which the rate grants almost no time.
	addr := served(t, Config{Upstream: service, Decider: judge}, ServerConfig{Stall: briefly, MinRate: 1 << 40})
	conn := dialGateway(t, addr)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if res := <-done; res.Status != 200 || res.Bytes == 0 {
		t.Errorf("Done got %+v", res)
	}
	<-gone
}

func TestStreamThatTakesNothingIsCut(t *testing.T) {
	done := make(chan httpverdict.Result, 2)
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, &zeros{64 << 20}) })
	judge := decider(func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{Binding: -1, Done: func(_ context.Context, res httpverdict.Result) { done <- res }}
	})
	addr := served(t, Config{Upstream: service, Decider: judge, Stall: briefly}, ServerConfig{})
	res, err := client(t, h2c).Get("http://" + addr) // the body is not read: flow control stops the stream
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := <-done; got.Status != 200 || got.Bytes >= 64<<20 {
		t.Errorf("Done got %+v, want a part of the body", got)
	}
}

func TestServiceThatTakesNothingIsCut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	release := make(chan struct{})
	defer close(release)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		<-release // reads nothing
	}()
	addr := served(t, Config{Upstream: "http://" + l.Addr().String(), Stall: briefly, MinRate: 1 << 40}, ServerConfig{})
	res, err := client(t).Post("http://"+addr, "", &zeros{1 << 40})
	if err != nil {
		if !isReset(err) && !strings.Contains(err.Error(), "broken pipe") {
			t.Fatal(err) // the client may meet the closed connection while it still sends
		}
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusGatewayTimeout && res.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d, want 504 or 502", res.StatusCode)
	}
}

func TestLongBodyIsRefused(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	addr := served(t, Config{Upstream: service, MaxRequestBody: 10}, ServerConfig{})
	for _, c := range []struct {
		body   string
		status int
	}{{"1234567890", 200}, {"12345678901", 413}} {
		for _, length := range []int64{int64(len(c.body)), -1} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			res, err := client(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != c.status || c.status == 200 && string(body) != c.body {
				t.Errorf("%d bytes, length %d: %d %q, want %d", len(c.body), length, res.StatusCode, body, c.status)
			}
		}
	}
}

func TestClientThatLeavesIsFollowed(t *testing.T) {
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			reached, left := make(chan struct{}), make(chan struct{})
			service := protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				close(reached)
				<-r.Context().Done()
				close(left)
			})
			done := make(chan httpverdict.Result, 1)
			judge := decider(func(*httpverdict.Request) *httpverdict.Verdict {
				return &httpverdict.Verdict{Binding: -1, Done: func(_ context.Context, res httpverdict.Result) { done <- res }}
			})
			addr := served(t, Config{Upstream: d.service + "://" + service, Decider: judge}, ServerConfig{})
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client(t, d.client...).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			<-reached
			leave()
			<-left
			if got := <-done; got.Status != 200 {
				t.Errorf("Done got %+v", got)
			}
		})
	}
}

func TestCutAnswerIsNotTakenForWhole(t *testing.T) {
	for _, length := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
		service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(rw, "HTTP/1.1 200 OK\r\n%s\r\n\r\n3\r\nabc\r\n", length)
			rw.Flush()
		})
		res, err := client(t).Get("http://" + served(t, Config{Upstream: service}, ServerConfig{}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) && err == nil {
			t.Errorf("%s: half an answer was read as a whole one", length)
		}
	}
}
