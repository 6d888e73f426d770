package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// better is a policy that has something better than an error: X-Has names what, and X-Over is a mark.
func better(r *httpverdict.Request) *httpverdict.Verdict {
	v := &httpverdict.Verdict{ID: "id", Binding: -1, Over: r.Header.Get("X-Over")}
	if strings.Contains(r.Header.Get("X-Has"), "stale") {
		v.Stale = &httpverdict.Stale{MaxAge: time.Minute}
	}
	if strings.Contains(r.Header.Get("X-Has"), "fallback") {
		v.Fallback = &httpverdict.Fallback{Status: 200, ContentType: "text/plain", Body: []byte("ready")}
	}
	return v
}

func getWith(path, fields string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n"
}

// moody is a service that answers as it is told to.
type moody struct{ mood atomic.Value }

func newMoody(t *testing.T) (*moody, string) {
	m := &moody{}
	m.mood.Store("well")
	return m, fakeService(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			switch mood := m.mood.Load().(string); mood {
			case "well":
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
			case "silent":
				io.Copy(io.Discard, conn)
				return
			case "broken":
				return
			default:
				fmt.Fprintf(conn, "HTTP/1.1 %s Oh\r\nContent-Length: 2\r\n\r\nno", mood)
			}
		}
	})
}

// What a request gets where the service fails it: what is kept, else what is ready, else what says so.
func TestWhatIsGivenWhenTheServiceFails(t *testing.T) {
	const both, stale, fallback = "X-Has: stale, fallback\r\n", "X-Has: stale\r\n", "X-Has: fallback\r\n"
	for _, c := range []struct{ mood, path, fields, want, body string }{
		{"broken", "/kept", both, "200", "/kept"},
		{"broken", "/kept", stale, "200", "/kept"},
		{"broken", "/kept", fallback, "200", "ready"},
		{"broken", "/new", both, "200", "ready"},
		{"broken", "/new", stale, "502", ""},
		{"broken", "/kept", "", "502", ""},
		{"broken", "/kept", both + "X-Over: mark\r\n", "200", "ready"}, // what others are told is not for it
		{"broken", "/kept", stale + "X-Over: mark\r\n", "502", ""},
		{"silent", "/kept", both, "200", "/kept"},
		{"silent", "/new", fallback, "200", "ready"},
		{"silent", "/new", "", "504", ""},
		{"502", "/kept", both, "200", "/kept"},
		{"503", "/kept", stale, "200", "/kept"},
		{"504", "/kept", stale, "200", "/kept"},
		{"503", "/new", both, "503", "no"}, // its own answer says more than one that is ready
		{"503", "/kept", "", "503", "no"},
		{"500", "/kept", both, "500", "no"}, // as often a matter of the request
		{"501", "/kept", both, "501", "no"},
		{"ejected", "/kept", both, "200", "/kept"},
		{"ejected", "/new", both, "200", "ready"},
		{"ejected", "/new", stale, "503", ""},
		{"ejected", "/kept", "", "503", ""},
	} {
		t.Run(strings.ReplaceAll(c.mood+c.path+" "+c.fields, "\r\n", " "), func(t *testing.T) {
			m, service := newMoody(t)
			g, addr := gatewayOf(t, Config{Upstream: service, Decider: decider(better), Ejection: Ejection{Consecutive: 2}})
			see(t, addr, "GET", getWith("/kept", stale))
			m.mood.Store(c.mood)
			if c.mood == "silent" {
				g.answersWithin(briefly)
			}
			if c.mood == "ejected" {
				m.mood.Store("broken")
				see(t, addr, "GET", getWith("/x", ""))
				see(t, addr, "GET", getWith("/x", ""))
				until(t, "it is ejected", func() bool { return g.Stats().Upstreams[0].Ejected })
			}
			got := see(t, addr, "GET", getWith(c.path, c.fields))
			if got.summary() != c.want || c.body != "" && got.body != c.body {
				t.Errorf("%s, want %s %q", got, c.want, c.body)
			}
			h := got.header
			if given := c.body == "/kept"; given != (h.Get("Age") != "") || given && h.Get("Cache-Status") != "headgate; hit; detail=failed" {
				t.Errorf("header %v", h)
			}
			if h.Get("Headgate-Id") != "id" || (h.Get("Retry-After") != "") != (c.mood == "ejected" && c.want == "503") {
				t.Errorf("header %v", h)
			}
		})
	}
}

// A request with a mark that cannot be held for its wait does not get what others are told either.
func TestNothingKeptForAMarkThatCannotBeHeld(t *testing.T) {
	_, service := newMoody(t)
	waits := decider(func(r *httpverdict.Request) *httpverdict.Verdict {
		v := better(r)
		if r.Path == "/hold" || v.Over != "" {
			v.Wait = time.Hour
		}
		return v
	})
	g, addr := gatewayOf(t, Config{Upstream: service, Decider: waits, MaxHeld: 1})
	see(t, addr, "GET", getWith("/kept", "X-Has: stale\r\n"))
	io.WriteString(dialGateway(t, addr), getWith("/hold", ""))
	until(t, "one is held", func() bool { return g.Stats().Held == 1 })
	if got := see(t, addr, "GET", getWith("/kept", "X-Has: stale\r\nX-Over: mark\r\n")); got.summary() != "503" || got.body == "/kept" {
		t.Errorf("%s %s", got.summary(), got.body)
	}
}

// Faults of the client are its own, whatever the verdict has.
func TestNothingBetterForTheClientsFaults(t *testing.T) {
	m, service := newMoody(t)
	m.mood.Store("silent")
	_, addr := gatewayOf(t, Config{Upstream: service, Decider: decider(better), Stall: briefly, MaxRequestBody: 5})
	for request, want := range map[string]string{
		"POST / HTTP/1.1\r\nHost: x\r\nX-Has: stale, fallback\r\nContent-Length: 3\r\n\r\nhe":                            "408",
		"POST / HTTP/1.1\r\nHost: x\r\nX-Has: stale, fallback\r\nContent-Length: 6\r\n\r\nhello!":                        "413",
		"POST / HTTP/1.1\r\nHost: x\r\nX-Has: stale, fallback\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello!\r\n0\r\n": "413",
		"POST / HTTP/1.1\r\nHost: x\r\nX-Has: stale, fallback\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n":               "400",
	} {
		if got := see(t, addr, "POST", request); got.summary() != want {
			t.Errorf("%q: %s, want %s", request, got, want)
		}
	}
}

// A request that finds no place gets what is ready.
func TestNoPlaceIsAnsweredWithTheFallback(t *testing.T) {
	m, service := newMoody(t)
	g, addr := gatewayOf(t, Config{Upstream: service, Decider: decider(better), MaxConcurrent: 1})
	m.mood.Store("silent")
	conn := dialGateway(t, addr)
	io.WriteString(conn, plainGet)
	until(t, "one is there", func() bool { return g.Stats().InFlight == 1 })
	if got := see(t, addr, "GET", getWith("/", "X-Has: fallback\r\n")); got.summary() != "200" || got.body != "ready" {
		t.Errorf("%s", got)
	}
	if got := see(t, addr, "GET", getWith("/", "")); got.summary() != "503" || !strings.Contains(got.body, `"overloaded"`) {
		t.Errorf("%s", got)
	}
	conn.Close()
}

// Those who wait for the answer of one that fails are all answered, one failure after the other costing nothing once the upstream
// is ejected.
func TestCrowdAtAnEjectedUpstream(t *testing.T) {
	m, service := newMoody(t)
	g, addr := gatewayOf(t, Config{Upstream: service, Decider: decider(better), Ejection: Ejection{Consecutive: 1}})
	m.mood.Store("broken")
	done := make(chan string, 100)
	for range cap(done) {
		go func() { done <- see(t, addr, "GET", getWith("/", "X-Has: stale, fallback\r\n")).body }()
	}
	for range cap(done) {
		if body := <-done; body != "ready" {
			t.Errorf("%q", body)
		}
	}
	if st := g.Stats(); !st.Upstreams[0].Ejected || st.InFlight != 0 {
		t.Errorf("%+v", st)
	}
}
