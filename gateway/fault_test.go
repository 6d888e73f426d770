package gateway

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// fakeService accepts connections and hands each to serve.
func fakeService(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	return "http://" + l.Addr().String()
}

func TestFaultsOfTheService(t *testing.T) {
	answer := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				io.WriteString(conn, text)
			}
		}
	}
	silent := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for _, c := range []struct {
		name, upstream string
		timeout        time.Duration
		status         int
		code           string
	}{
		{"down", "http://" + testservers.UnusedAddr(t), patience, 502, "upstream_unreachable"},
		{"down, h2c", "h2c://" + testservers.UnusedAddr(t), patience, 502, "upstream_unreachable"},
		{"closes", fakeService(t, answer("")), patience, 502, "upstream_unreachable"},
		{"says nothing", fakeService(t, silent), briefly, 504, "upstream_timeout"},
		{"stops in the header", fakeService(t, func(conn net.Conn) {
			answer("HTTP/1.1 200 OK\r\nX: ")(conn)
			silent(conn)
		}), briefly, 504, "upstream_timeout"},
		{"is no HTTP", fakeService(t, answer("SSH-2.0-OpenSSH\r\n")), patience, 502, "upstream_unreachable"},
		{"answers with a huge header", fakeService(t, answer("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("y", 2<<20)+"\r\n\r\n")), patience, 502, "upstream_unreachable"},
		{"answers with two lengths", fakeService(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")), patience, 502, "upstream_unreachable"},
		{"informs for ever", fakeService(t, answer(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100))), patience, 502, "upstream_unreachable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := new(lockedBuffer)
			addr := served(t, Config{Upstream: c.upstream, ResponseTimeout: c.timeout, Logger: jsonLog(log)}, ServerConfig{})
			res, err := client(t).Get("http://" + addr + "/x")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var problem struct {
				Status   int
				Code, ID string
			}
			err = json.NewDecoder(res.Body).Decode(&problem)
			if err != nil || res.StatusCode != c.status || problem.Status != c.status || problem.Code != c.code || problem.ID != "id-allow" {
				t.Errorf("answer %d %+v %v, want %d %s", res.StatusCode, problem, err, c.status, c.code)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type %q", got)
			}
			if !strings.Contains(log.String(), `"path":"/x"`) {
				t.Errorf("nothing in the log: %s", log)
			}
		})
	}
}

// The service closes an idle connection just before the next request comes.
func TestRequestIsRepeatedOnlyWhereThatIsSafe(t *testing.T) {
	var requests atomic.Int32
	service := fakeService(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for first := true; ; first = false {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			requests.Add(1)
			if !first { // the second request on a connection is dropped
				io.WriteString(conn, req.Header.Get("X-Begin"))
				return
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	addr := served(t, Config{Upstream: service}, ServerConfig{})
	c := client(t)
	for _, step := range []struct {
		method, body, begin string // begin is what the service says before it drops the request
		key                 string // says that a repetition does no harm
		status              int
		reached             int32 // requests that the service has seen in all
	}{
		{"GET", "", "", "", 200, 1},
		{"GET", "", "", "", 200, 3}, // dropped, and repeated on a new connection
		{"POST", "x", "", "", 502, 4},
		{"GET", "", "", "", 200, 5},
		{"POST", "", "", "", 502, 6},
		{"GET", "", "", "", 200, 7},
		{"DELETE", "", "", "", 502, 8},
		{"GET", "", "", "", 200, 9},
		{"GET", "x", "", "", 502, 10},
		{"GET", "", "", "", 200, 11},
		{"GET", "", "HTTP/1.1 2", "", 502, 12},
		{"GET", "", "", "", 200, 13},
		{"POST", "", "", "key", 200, 15}, // dropped, and repeated
		{"POST", "x", "", "key", 502, 16},
	} {
		req, err := http.NewRequestWithContext(t.Context(), step.method, "http://"+addr, strings.NewReader(step.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Begin", step.begin)
		if step.key != "" {
			req.Header.Set("Idempotency-Key", step.key)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != step.status || requests.Load() != step.reached {
			t.Errorf("%s: %d after %d requests, want %d after %d", step.method, res.StatusCode, requests.Load(), step.status, step.reached)
		}
	}
}

func TestRequestOnANewConnectionIsNotRepeated(t *testing.T) {
	var requests atomic.Int32
	service := fakeService(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			requests.Add(1)
		}
	})
	res, err := client(t).Get("http://" + served(t, Config{Upstream: service}, ServerConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if n := requests.Load(); res.StatusCode != http.StatusBadGateway || n != 1 {
		t.Errorf("answer %d after %d requests, want 502 after 1", res.StatusCode, n)
	}
}

// A byte that nobody asked for must not become the beginning of the next answer, whether it comes with the last one or
// while the connection is idle.
func TestAnswersAreNotMixedUp(t *testing.T) {
	const poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			answered, closed := make(chan struct{}), make(chan struct{})
			var connections atomic.Int32
			service := fakeService(t, func(conn net.Conn) {
				n := connections.Add(1)
				in := bufio.NewReader(conn)
				for {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
					switch {
					case n > 1:
						io.WriteString(conn, answer)
						continue
					case late:
						io.WriteString(conn, answer)
						<-answered
						io.WriteString(conn, poison)
					default:
						io.WriteString(conn, answer+poison)
					}
					conn.SetReadDeadline(time.Now().Add(patience))
					if _, err := in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the connection is kept: %v", err)
					}
					close(closed)
					return
				}
			})
			addr := served(t, Config{Upstream: service}, ServerConfig{})
			c := client(t)
			for i, want := range []string{"1", "2", "2"} {
				res, err := c.Get("http://" + addr)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if string(body) != want {
					t.Errorf("answer %q, want %q", body, want)
				}
				if i == 0 {
					close(answered)
					<-closed
				}
			}
		})
	}
}

func TestTooManyAtATime(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	service := upstreamServer(t, func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-release
	})
	addr := served(t, Config{Upstream: service, MaxConcurrent: 1}, ServerConfig{})
	first := make(chan int)
	c := client(t)
	go func() {
		res, err := c.Get("http://" + addr)
		if err != nil {
			t.Error(err)
			first <- 0
			return
		}
		res.Body.Close()
		first <- res.StatusCode
	}()
	<-reached
	res, err := c.Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("answer %d %v, want 503 with Retry-After", res.StatusCode, res.Header)
	}
	close(release)
	if got := <-first; got != 200 {
		t.Errorf("the first got %d", got)
	}
}

func TestNewRefuses(t *testing.T) {
	ok := decider(allowAll)
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no decider", Config{Upstream: "http://x"}, "gateway: the decider is nil"},
		{"no upstream", Config{Decider: ok}, "gateway: the upstream is missing"},
		{"no scheme", Config{Upstream: "127.0.0.1:9000", Decider: ok}, "is not a URL"},
		{"no scheme but a name", Config{Upstream: "localhost:9000", Decider: ok}, "is not a URL"},
		{"other scheme", Config{Upstream: "ftp://x", Decider: ok}, "has no scheme out of http, https and h2c"},
		{"no host", Config{Upstream: "http://:80", Decider: ok}, "has no host"},
		{"port zero", Config{Upstream: "http://x:0", Decider: ok}, "has a port outside 1 to 65535"},
		{"large port", Config{Upstream: "http://x:65536", Decider: ok}, "has a port outside 1 to 65535"},
		{"query", Config{Upstream: "http://x/?a=1", Decider: ok}, "has more than scheme, host, port and path"},
		{"password", Config{Upstream: "http://u:secret@x/", Decider: ok}, `upstream "http://…@x/" has more than`},
		{"bad path", Config{Upstream: "http://x/%00", Decider: ok}, "has a malformed path"},
		{"both", Config{Upstream: "http://x", Upstreams: []string{"http://y"}, Decider: ok}, "has both Upstream and Upstreams"},
		{"one is wrong", Config{Upstreams: []string{"http://u:secret@x", "http://y"}, Decider: ok}, "has more than scheme"},
		{"one is empty", Config{Upstreams: []string{"http://x", ""}, Decider: ok}, "the upstream is missing"},
		{"the same twice", Config{Upstreams: []string{"http://x", "http://x:80/"}, Decider: ok}, `"http://x:80/" is there twice`},
		{"very many", Config{Upstreams: make([]string, MaxUpstreams+1), Decider: ok}, "257 upstreams are more than the 256"},
		{"share", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{FailedShare: 1.5}}, "Ejection.FailedShare is 1.5"},
		{"negative window", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{Window: -1}}, "Ejection has a bound that is out of range"},
		{"least over most", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{For: 2, Most: 1}}, "Ejection.Most, 1ns, is less than Ejection.For, 2ns"},
		{"more than a day", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{Most: 25 * time.Hour}}, "at most 24h0m0s"},
		{"for ever", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{For: math.MaxInt64}}, "at most 24h0m0s"},
		{"no health path", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{HealthPath: "healthz"}}, `Ejection.HealthPath is "healthz"`},
		{"a health path in two lines", Config{Upstream: "http://x", Decider: ok, Ejection: Ejection{HealthPath: "/a\r\nX: y"}}, "Ejection.HealthPath is"},
		{"negative", Config{Upstream: "http://x", Decider: ok, MaxConcurrent: -1}, "Config.MaxConcurrent is negative"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := NewServer(ServerConfig{}); err == nil || !strings.Contains(err.Error(), "Handler is nil") {
		t.Errorf("no handler: %v", err)
	}
	if _, err := NewServer(ServerConfig{Handler: http.NotFoundHandler(), MaxConns: -1}); err == nil || !strings.Contains(err.Error(), "MaxConns") {
		t.Errorf("negative MaxConns: %v", err)
	}
}

func TestUpstreamForms(t *testing.T) {
	for text, want := range map[string]endpoint{
		"http://x":              {scheme: "http", host: "x:80"},
		"https://x":             {scheme: "https", host: "x:443"},
		"h2c://x:1/":            {scheme: "http", host: "x:1", h2c: true},
		"http://[::1]:9000/a/b": {scheme: "http", host: "[::1]:9000", base: "/a/b"},
		"http://[::1]/a/../b/":  {scheme: "http", host: "[::1]:80", base: "/b"},
	} {
		if got, err := parseEndpoint(text); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
}
