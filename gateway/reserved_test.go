package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestReservedPathsAreJudged: what Config.Reserved answers is judged like anything else, in the clean spelling, and what nobody
// answers is not.
func TestReservedPathsAreJudged(t *testing.T) {
	var judged []string
	judge := decider(func(r *httpverdict.Request) *httpverdict.Verdict {
		judged = append(judged, r.Method+" "+r.Path)
		v := &httpverdict.Verdict{ID: "the-id", Binding: -1}
		if r.Header.Get("X-Deny") != "" {
			v.Kind, v.Code, v.RetryAfter.After = httpverdict.Limited, "limited", 7*time.Second
		}
		return v
	})
	served200 := 0
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served200++
		j, ok := JudgedOf(r.Context())
		if !ok || j.Request.Path != r.URL.EscapedPath() || j.Verdict.ID != "the-id" {
			t.Errorf("judged %+v %t of %s", j, ok, r.URL)
		}
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s?%s %s %v over=%q id=%q from=%q", r.URL.EscapedPath(), r.URL.RawQuery, body, err,
			r.Header["Headgate-Over"], r.Header["Headgate-Id"], r.Header["X-Forwarded-Host"])
	})
	addr := served(t, Config{Reserved: own, Decider: judge}, ServerConfig{})
	for _, c := range []struct {
		path, deny string
		status     int
		want       string
	}{
		{"/a/..//_headgate/%73ales/a%2Fb?q=%20", "", 200, `/_headgate/sales/a%2Fb?q=%20 text <nil> over=[] id=["the-id"] from=["` + addr + `"]`},
		{"/_headgate/sales", "x", 429, `"limited"`},
		{"/elsewhere", "", 404, `"not_found"`},
		{"/elsewhere", "x", 429, `"limited"`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+c.path, strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Headgate-Over": {"forged"}, "Headgate-Id": {"forged"}, "X-Forwarded-Host": {"forged.example"}}
		if c.deny != "" {
			req.Header.Set("X-Deny", c.deny)
		}
		res, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.status || !strings.Contains(string(body), c.want) || res.Header.Get("Headgate-Id") != "the-id" {
			t.Errorf("%s: %d %v %s, want %d %s", c.path, res.StatusCode, res.Header, body, c.status, c.want)
		}
	}
	want := "POST /_headgate/sales/a%2Fb,POST /_headgate/sales,POST /elsewhere,POST /elsewhere"
	if got := strings.Join(judged, ","); got != want || served200 != 1 {
		t.Errorf("judged %s, %d served, want %s and 1", got, served200, want)
	}
	judged = nil
	none := served(t, Config{Upstream: "http://127.0.0.1:9", Decider: judge}, ServerConfig{})
	if res := fetched(t, "http://"+none+"/_headgate/sales"); res.StatusCode != 404 || len(judged) != 0 {
		t.Errorf("without a handler: %d, judged %v", res.StatusCode, judged)
	}
}

func fetched(t *testing.T, url string) *http.Response {
	t.Helper()
	res, err := client(t).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// TestReservedBodyIsWhole: a body that the policy has looked at comes whole, and one that is too long not at all.
func TestReservedBodyIsWhole(t *testing.T) {
	judge := decider(func(r *httpverdict.Request) *httpverdict.Verdict {
		if r.Body != nil {
			_, _ = r.Body.Peek(context.Background(), 64)
		}
		return &httpverdict.Verdict{Binding: -1}
	})
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	addr := served(t, Config{Reserved: own, Decider: judge, MaxRequestBody: 1000}, ServerConfig{})
	for _, c := range []struct{ length, status int }{{1, 200}, {64, 200}, {65, 200}, {1000, 200}, {1001, 413}} {
		text := strings.Repeat("x", c.length)
		res, err := client(t).Post("http://"+addr+"/_headgate/x", "text/plain", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.status || c.status == 200 && string(got) != text {
			t.Errorf("%d bytes: %d with %d bytes", c.length, res.StatusCode, len(got))
		}
	}
}

// TestReservedWaits: a request is held for its wait before it is handed over, and one that finds no place to wait is not.
func TestReservedWaits(t *testing.T) {
	const wait = 50 * time.Millisecond
	judge := decider(func(*httpverdict.Request) *httpverdict.Verdict { return &httpverdict.Verdict{Binding: -1, Wait: wait} })
	reached := make(chan time.Time, 1)
	own := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- time.Now() })
	addr := served(t, Config{Reserved: own, Decider: judge}, ServerConfig{})
	start := time.Now()
	if res := fetched(t, "http://"+addr+"/_headgate/x"); res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
	if held := (<-reached).Sub(start); held < wait {
		t.Errorf("handed over after %s, want %s at least", held, wait)
	}
}

// TestReservedIsNotKept: what stale keeps is for the answers of the service.
func TestReservedIsNotKept(t *testing.T) {
	var deny atomic.Bool
	judge := decider(func(*httpverdict.Request) *httpverdict.Verdict {
		v := &httpverdict.Verdict{Binding: -1, Stale: &httpverdict.Stale{MaxAge: time.Hour}}
		if deny.Load() {
			v.Kind, v.Code = httpverdict.Limited, "limited"
		}
		return v
	})
	own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "mine") })
	addr := served(t, Config{Reserved: own, Decider: judge}, ServerConfig{})
	for _, want := range []int{200, 429} {
		if res := fetched(t, "http://"+addr+"/_headgate/x"); res.StatusCode != want {
			t.Errorf("status %d, want %d", res.StatusCode, want)
		}
		deny.Store(true)
	}
}

// TestReservedStreams: events come as they are written, a stream that is silent for longer than a client may stall lives on, and
// what the request holds is given back when the stream ends and not before.
func TestReservedStreams(t *testing.T) {
	for name, protocols := range map[string][]func(*http.Protocols){"h1": nil, "h2c": {h2c}} {
		t.Run(name, func(t *testing.T) {
			done := make(chan httpverdict.Result, 1)
			judge := decider(func(*httpverdict.Request) *httpverdict.Verdict {
				return &httpverdict.Verdict{Binding: -1, Done: func(_ context.Context, res httpverdict.Result) { done <- res }}
			})
			next := make(chan struct{})
			own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				for range next {
					fmt.Fprint(w, "data: x\n\n")
					w.(http.Flusher).Flush()
				}
			})
			addr := served(t, Config{Reserved: own, Decider: judge, Stall: briefly}, ServerConfig{Stall: briefly})
			res, err := client(t, protocols...).Get("http://" + addr + "/_headgate/events")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			events := bufio.NewReader(res.Body)
			for range 3 {
				next <- struct{}{}
				if line, err := events.ReadString('\n'); err != nil || line != "data: x\n" {
					t.Fatalf("event %q, %v", line, err)
				}
				if _, err := events.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				select { // the silence is what is tested
				case res := <-done:
					t.Fatalf("over while it was silent: %+v", res)
				case <-time.After(3 * briefly):
				}
			}
			close(next)
			if _, err := io.ReadAll(events); err != nil {
				t.Error(err)
			}
			if got := <-done; got.Status != 200 || got.Bytes != 27 {
				t.Errorf("Done got %+v, want 200 and 27 bytes", got)
			}
		})
	}
}

// TestReservedStreamThatIsNotTaken: a stream whose client takes nothing ends.
func TestReservedStreamThatIsNotTaken(t *testing.T) {
	for name, protocols := range map[string][]func(*http.Protocols){"h1": nil, "h2c": {h2c}} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := strings.Repeat("x", 1<<14)
				for {
					if _, err := io.WriteString(w, text); err != nil {
						ended <- err
						return
					}
					if err := http.NewResponseController(w).Flush(); err != nil {
						ended <- err
						return
					}
				}
			})
			addr := served(t, Config{Reserved: own, Stall: briefly}, ServerConfig{Stall: briefly})
			res, err := client(t, protocols...).Get("http://" + addr + "/_headgate/events") // the body is not read
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("it goes on")
			}
		})
	}
}

// TestSilentStreamOverHTTP2: the same of a stream that is passed on.
func TestSilentStreamOverHTTP2(t *testing.T) {
	next := make(chan struct{})
	service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) {
		for range next {
			fmt.Fprintln(w, "x")
			w.(http.Flusher).Flush()
		}
	})
	addr := served(t, Config{Upstream: service, Stall: briefly}, ServerConfig{Stall: briefly})
	defer close(next)
	go func() { next <- struct{}{} }()
	res, err := client(t, h2c).Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	<-time.After(3 * briefly) // the silence is what is tested
	next <- struct{}{}
	if _, err := lines.ReadString('\n'); err != nil {
		t.Error(err)
	}
}

// TestReservedAnswersOfCachesTellNothing: what shared caches may give to others has nothing in its header about who has asked here.
func TestReservedAnswersOfCachesTellNothing(t *testing.T) {
	report := []httpverdict.LimitReport{{Name: "r", Limit: headgate.MustParseLimit("fixed_window 5/1m"), Outcome: headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 4}}}
	judge := decider(func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "the-id", Limits: report}
	})
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", r.URL.Query().Get("control"))
		if r.URL.Query().Has("unchanged") {
			w.WriteHeader(http.StatusNotModified)
		}
	})
	addr := served(t, Config{Reserved: own, Decider: judge}, ServerConfig{})
	for query, told := range map[string]bool{"control=public,max-age=1": false, "control=public&unchanged": false, "control=no-store": true, "": true} {
		res := fetched(t, "http://"+addr+"/_headgate/x?"+query)
		for _, name := range []string{"Headgate-Id", "RateLimit", "RateLimit-Policy"} {
			if got := res.Header.Get(name); (got != "") != told {
				t.Errorf("%s: %s is %q", query, name, got)
			}
		}
	}
}

// TestReservedBodiesThatFail: a handler of reserved paths can tell a body that stalls, or is too long, from one that breaks off.
func TestReservedBodiesThatFail(t *testing.T) {
	judge := decider(func(*httpverdict.Request) *httpverdict.Verdict { return &httpverdict.Verdict{Binding: -1} })
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		_, long := errors.AsType[*http.MaxBytesError](err)
		fmt.Fprintf(w, "slow %t, long %t, whole %t", errors.Is(err, os.ErrDeadlineExceeded), long, err == nil)
	})
	impatient := served(t, Config{Reserved: own, Decider: judge, Stall: 100 * time.Millisecond}, ServerConfig{})
	patient := served(t, Config{Reserved: own, Decider: judge, MaxRequestBody: 100}, ServerConfig{})
	for what, c := range map[string]struct {
		head, body, want string
		end              bool
	}{
		"it stalls":     {"Content-Length: 10", "abc", "slow true, long false, whole false", false},
		"it is long":    {"Transfer-Encoding: chunked", "65\r\n" + strings.Repeat("x", 101) + "\r\n0\r\n\r\n", "slow false, long true, whole false", false},
		"it breaks off": {"Content-Length: 10", "abc", "slow false, long false, whole false", true},
		"it is whole":   {"Content-Length: 3", "abc", "slow false, long false, whole true", false},
	} {
		addr := patient
		if what == "it stalls" {
			addr = impatient
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /_headgate/x HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n%s", c.head, c.body)
		if c.end {
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := io.ReadAll(res.Body); string(got) != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", what, got, err, c.want)
		}
		_ = res.Body.Close()
		_ = conn.Close()
	}
}
