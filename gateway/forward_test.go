package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// headersOf sends raw header lines through a gateway and returns what the service got.
func headersOf(t *testing.T, cfg Config, lines string) map[string][]string {
	t.Helper()
	service := newRecorder(t)
	cfg.Upstream = service.url
	addr := served(t, cfg, ServerConfig{})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: Shop.Example:8080\r\n%sConnection: close\r\n\r\n", lines)
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	got, err := service.requests()
	if err != nil || len(got) != 1 {
		t.Fatalf("the service got %d requests, %v", len(got), err)
	}
	return got[0].header
}

func TestForwardedHeaders(t *testing.T) {
	claims := "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\n" +
		"X-Forwarded-Port: 1\r\nForwarded: for=203.0.113.9\r\nX-Real-Ip: 203.0.113.9\r\nX-Original-Url: /x\r\nHeadgate-Id: mine\r\n"
	believe := func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "id-1", Binding: -1, ClientIP: netip.MustParseAddr("198.51.100.7")}
	}
	direct := func(r *httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "id-1", Binding: -1, ClientIP: r.Peer}
	}
	for _, c := range []struct {
		name  string
		judge decider
		lines string
		want  map[string]string // "" for none
	}{
		{"from a client", direct, claims, map[string]string{
			"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-forwarded-host": "Shop.Example:8080", "x-forwarded-port": "",
			"forwarded": "", "x-real-ip": "127.0.0.1", "x-original-url": "", "headgate-id": "id-1",
		}},
		{"from a proxy that the policy believes", believe, claims, map[string]string{
			"x-forwarded-for": "203.0.113.9, 198.51.100.7, 127.0.0.1", "x-forwarded-proto": "https", "x-forwarded-host": "a.example",
			"x-forwarded-port": "1", "forwarded": "for=203.0.113.9, for=127.0.0.1", "x-real-ip": "198.51.100.7", "x-original-url": "/x",
			"headgate-id": "id-1",
		}},
		{"nothing claimed", direct, "", map[string]string{
			"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-forwarded-host": "Shop.Example:8080", "host": "Shop.Example:8080",
			"user-agent": "", "accept-encoding": "",
		}},
		{"hop by hop", direct, "Keep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: y\r\nTe: gzip, trailers\r\nHttp2-Settings: z\r\nAccept: */*\r\n",
			map[string]string{"keep-alive": "", "proxy-connection": "", "proxy-authorization": "", "te": "trailers", "http2-settings": "", "connection": "", "accept": "*/*"}},
		{"underscores", direct, "X_User_Id: u1\r\nX_Forwarded_For: 1.2.3.4\r\n", map[string]string{"x_user_id": "", "x_forwarded_for": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := headersOf(t, Config{Decider: c.judge}, c.lines)
			for name, want := range c.want {
				if have := strings.Join(got[name], "|"); have != want {
					t.Errorf("%s: %q, want %q", name, have, want)
				}
			}
		})
	}
	if got := headersOf(t, Config{KeepUnderscores: true}, "X_User_Id: u1\r\n"); !slices.Equal(got["x_user_id"], []string{"u1"}) {
		t.Errorf("KeepUnderscores: %q", got["x_user_id"])
	}
}

func TestAnswersPassAsTheyAre(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Set-Cookie"] = []string{"a=1", "b=2"}
		h.Set("Headgate-Id", "theirs")
		h.Set("X-Hop", "1")
		h.Set("Keep-Alive", "timeout=5")
		h.Add("Connection", "X-Hop")
		h.Set("Content-Encoding", "gzip")
		h["Content-Type"] = nil
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "<html>not really gzip")
	})
	res, err := client(t).Get("http://" + served(t, Config{Upstream: service}, ServerConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusTeapot || string(body) != "<html>not really gzip" {
		t.Errorf("answer %d %q %v", res.StatusCode, body, err)
	}
	for name, want := range map[string]string{
		"Set-Cookie": "a=1|b=2", "Headgate-Id": "id-allow", "X-Hop": "", "Keep-Alive": "", "Content-Encoding": "gzip", "Content-Type": "",
	} {
		if got := strings.Join(res.Header[name], "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestReservedPathsAreNeverForwarded(t *testing.T) {
	service := newRecorder(t)
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isReserved(r.URL.Path) || strings.Contains(r.URL.EscapedPath(), "%") {
			t.Errorf("the handler of reserved paths got %s", r.URL)
		}
	})
	for _, c := range []struct {
		handler http.Handler
		status  int
	}{{nil, 404}, {own, 200}} {
		addr := served(t, Config{Upstream: service.url, Reserved: c.handler}, ServerConfig{})
		for _, path := range []string{"/_headgate", "/_headgate/", "/_headgate/x", "/%5Fheadgate/x", "/a/../_headgate/x", "//_headgate//x"} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			if res.StatusCode != c.status {
				t.Errorf("%s: %d, want %d", path, res.StatusCode, c.status)
			}
		}
	}
	if got, _ := service.requests(); len(got) != 0 {
		t.Errorf("the service got %+v", got)
	}
}

func TestUpstreamPathIsPutInFront(t *testing.T) {
	service := newRecorder(t)
	addr := served(t, Config{Upstream: service.url + "/base/v1/"}, ServerConfig{})
	for _, path := range []string{"/", "/a%2Fb?q=1", "/../../x?"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
		io.ReadAll(conn)
		conn.Close()
	}
	got, err := service.requests()
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, r := range got {
		targets = append(targets, r.target)
	}
	if want := []string{"/base/v1/", "/base/v1/a%2Fb?q=1", "/base/v1/x?"}; !slices.Equal(targets, want) {
		t.Errorf("the service got %q, want %q", targets, want)
	}
}

func TestEarlyHintsPass(t *testing.T) {
	for _, protocol := range []string{"http", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			service := protocolServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "</a.css>")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Set("Link", "</b.css>")
				io.WriteString(w, "page")
			})
			addr := served(t, Config{Upstream: protocol + "://" + service}, ServerConfig{})
			var hints []string
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints = append(hints, fmt.Sprint(code, h.Get("Link")))
				return nil
			}})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if !slices.Equal(hints, []string{"103</a.css>"}) || !slices.Equal(res.Header["Link"], []string{"</b.css>"}) {
				t.Errorf("hints %q, then %q", hints, res.Header["Link"])
			}
		})
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	for _, protocol := range []string{"http", "h2c"} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprint(protocol, announced), func(t *testing.T) {
				service := protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					name := "X-Sum"
					if announced {
						w.Header().Set("Trailer", name)
					} else {
						name = http.TrailerPrefix + name
					}
					fmt.Fprintf(w, "%s %s %s", body, r.Trailer.Get("X-Digest"), r.Trailer.Get("Authorization"))
					if !announced {
						w.(http.Flusher).Flush() // else net/http counts the body, and has no place for a trailer
					}
					w.Header().Set(name, "42")
				})
				addr := served(t, Config{Upstream: protocol + "://" + service}, ServerConfig{})
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, io.MultiReader(strings.NewReader("body")))
				if err != nil {
					t.Fatal(err)
				}
				req.Trailer = http.Header{"X-Digest": {"abc"}, "Authorization": {"Bearer x"}}
				res, err := client(t).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, err := io.ReadAll(res.Body)
				if err != nil || string(text) != "body abc " {
					t.Errorf("the service got %q, %v; want the body, its digest and no credentials", text, err)
				}
				if got := res.Trailer.Get("X-Sum"); got != "42" {
					t.Errorf("trailer %q, want 42", got)
				}
			})
		}
	}
}

func TestAccessLogAndEvents(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "12345") })
	log := new(lockedBuffer)
	events := make(chan Event, 4)
	deny := false
	judge := decider(func(r *httpverdict.Request) *httpverdict.Verdict {
		v := &httpverdict.Verdict{ID: "id-1", Rule: "site", ClientIP: r.Peer, Binding: -1}
		if deny {
			v.Kind = httpverdict.Limited
		}
		return v
	})
	addr := served(t, Config{Upstream: service, Decider: judge, AccessLog: jsonLog(log), Observe: func(e *Event) { events <- *e }}, ServerConfig{})
	get := func() {
		res, err := client(t).Get("http://" + addr + "/a//b?secret=1")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	get()
	e := <-events
	if e.Status != 200 || e.Bytes != 5 || e.Verdict.Rule != "site" || e.Upstream <= 0 || e.Duration < e.Upstream {
		t.Errorf("event %+v", e)
	}
	deny = true
	get()
	if e := <-events; e.Status != 429 || e.Upstream != 0 {
		t.Errorf("event of a denial %+v", e)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(strings.SplitN(log.String(), "\n", 2)[0]), &line); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"msg": "request", "method": "GET", "path": "/a/b", "peer": "127.0.0.1", "client": "127.0.0.1", "proto": "HTTP/1.1",
		"status": 200.0, "bytes": 5.0, "verdict": "allow", "rule": "site", "id": "id-1",
	} {
		if line[name] != want {
			t.Errorf("%s: %v, want %v", name, line[name], want)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log has the query")
	}
}
