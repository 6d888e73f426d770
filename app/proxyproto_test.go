package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// say opens a connection, writes a text and a request, and returns the status of the answer and the body; 0 if the
// connection was closed without one.
func say(t *testing.T, url, before string) (int, string) {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: ample}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(ample)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "%sGET / HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 192.0.2.77\r\nConnection: close\r\n\r\n", before); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("after %q the connection stays open without an answer", before)
		}
		return 0, ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestProxyProtocol(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"))
	}))
	defer service.Close()
	from := func(ip string) string { return "PROXY TCP4 " + ip + " 198.51.100.1 40000 80\r\n" }
	const v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x05\xc6\x33\x64\x01\x9c\x40\x00\x50" // of 203.0.113.5
	type saying struct {
		before, body string
		status       int
	}
	for name, c := range map[string]struct {
		trusted string
		says    []saying
	}{
		"a trusted proxy's is the client's address": {"127.0.0.0/8", []saying{
			{from("203.0.113.5"), "203.0.113.5", 200},
			{v2, "203.0.113.5", 200},
			{from("203.0.113.5"), "", 429},
			{from("203.0.113.6"), "203.0.113.6", 200},
		}},
		"a trusted proxy must write it": {"127.0.0.0/8", []saying{{"", "", 0}, {"PROXY rubbish\r\n", "", 0}}},
		"anybody else's is not believed": {"10.0.0.0/8", []saying{
			{from("203.0.113.5"), "127.0.0.1", 200},
			{"", "127.0.0.1", 200},
			{from("203.0.113.6"), "", 429},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(twoAnHour, "10.0.0.0/8", c.trusted, 1)
			r := start(t, ServeConfig{Policy: writePolicy(t, text), Upstreams: []string{service.URL}, ProxyProtocol: true})
			for i, s := range c.says {
				status, body := say(t, r.url, s.before)
				if status != s.status || (status == http.StatusOK && body != s.body) {
					t.Errorf("connection %d: got %d %q, want %d %q", i, status, body, s.status, s.body)
				}
			}
			r.stop()
			if err := <-r.done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProxyProtocolNeedsTrust(t *testing.T) {
	err := Serve(t.Context(), ServeConfig{
		Policy: writePolicy(t, "version: 1\nrules:\n  - {name: all, limits: [token_bucket 1/s]}\n"), Upstreams: []string{"http://127.0.0.1:9"},
		Listen: "127.0.0.1:0", ProxyProtocol: true,
	})
	var usage *UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "clients.trusted_proxies") {
		t.Errorf("got %v", err)
	}
}
