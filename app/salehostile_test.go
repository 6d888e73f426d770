package app

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
	"time"
)

// raw sends bytes as they are, and returns what is answered; 0 if the connection ends without.
func (s *shop) raw(text string) (int, http.Header, string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(saleWithin))
	if _, err := io.WriteString(conn, text); err != nil {
		return 0, nil, ""
	}
	method, _, _ := strings.Cut(text, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0, nil, ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.t.Errorf("%.80q: %v", text, err)
	}
	return res.StatusCode, res.Header, string(body)
}

// TestSaleAttacked: through the gateway, with the policy before it. Whatever is sent, the answer is a problem document of the right status that tells
// nothing of anybody else, and nothing has changed.
func TestSaleAttacked(t *testing.T) {
	t.Parallel()
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:", Origins: []string{"https://shop.example.com"}})
	defer s.close()
	s.sell(10)
	token := s.token("victim-7")
	path := s.reserve("victim-7", token)
	rid := path[strings.LastIndex(path, "/")+1:]
	before := s.operate("GET", "/spring", "").text
	const base = "/_headgate/sales"
	as := func(user string) string {
		if user == "" {
			return ""
		}
		return "X-User-Id: " + user + "\r\n"
	}
	post := func(user, to, headers, body string) string {
		return fmt.Sprintf("POST %s%s HTTP/1.1\r\nHost: shop.example.com\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s%s\r\n%s", base, to, len(body), as(user), headers, body)
	}
	ask := func(method, user, to, headers string) string {
		return fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: shop.example.com\r\n%s%s\r\n", method, base, to, as(user), headers)
	}
	reserve := fmt.Sprintf(`{"token":%q,"quantity":1}`, token)
	for _, c := range []struct {
		what, send string
		status     int
		code       string
	}{
		{"another's reservation", ask("GET", "eve", path, ""), 404, "not_found"},
		{"another's events", ask("GET", "eve", path+"/events", ""), 404, "not_found"},
		{"to pay another's", post("eve", path+"/pay", "", ""), 404, "not_found"},
		{"to cancel another's", post("eve", path+"/cancel", "", ""), 404, "not_found"},
		{"a ticket to another's", post("eve", path+"/ticket", "", ""), 404, "not_found"},
		{"nobody's", ask("GET", "", path, ""), 401, "unauthenticated"},
		{"two users", ask("GET", "eve", path, as("victim-7")), 401, "unauthenticated"},
		{"two users in a line", ask("GET", "victim-7, eve", path, ""), 404, "not_found"},
		{"a foreign token", post("eve", mug+"/reservations", "", reserve), 403, "invalid_token"},
		{"a replay with another quantity", post("victim-7", mug+"/reservations", "", strings.Replace(reserve, ":1}", ":2}", 1)), 422, "conflict"},
		{"a forged webhook", post("", "/~/webhook", "Webhook-Signature: t=1,v1="+strings.Repeat("0", 64)+"\r\n", `{"id":"e","data":{"intent":"`+rid+`:1","status":"captured"}}`), 401, "invalid_signature"},
		{"a webhook without a signature", post("", "/~/webhook", "", `{}`), 401, "invalid_signature"},
		{"a forged ticket", ask("GET", "", path+"/events?ticket=k1."+strings.Repeat("A", 80), ""), 403, "invalid_ticket"},
		{"a body of 10 MB", strings.Replace(post("victim-7", mug+"/reservations", "", ""), "Content-Length: 0", "Content-Length: 10485760", 1) + strings.Repeat("x", 1<<16), 413, "body_too_large"},
		{"a body of chunks without an end", strings.Replace(post("victim-7", mug+"/reservations", "", ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "2000\r\n" + strings.Repeat(" ", 0x2000) + "\r\n", 413, "body_too_large"},
		{"a body that is cut", strings.Replace(post("victim-7", mug+"/reservations", "", ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "zz\r\n", 400, "invalid_argument"},
		{"two origins", post("victim-7", mug+"/token", "Origin: https://shop.example.com\r\nOrigin: https://evil.example.net\r\n", ""), 403, "cross_origin"},
		{"another origin", post("victim-7", mug+"/token", "Origin: https://evil.example.net\r\n", ""), 403, "cross_origin"},
		{"a form", strings.Replace(post("eve", mug+"/token", "", "a=b"), "application/json", "text/plain", 1), 415, "unsupported_media_type"},
		{"two lengths", post("victim-7", mug+"/token", "Content-Length: 5\r\n", ""), 400, ""},
		{"a length and chunks", post("eve", mug+"/reservations", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400, ""},
		{"dots", ask("GET", "", "/spring/../../../status", ""), 404, "not_found"},
		{"dots that are escaped", ask("GET", "", "/%2e%2e/%2e%2e/status", ""), 404, "not_found"},
		{"slashes that are escaped", ask("GET", "", "/..%2f..%2fstatus", ""), 404, "unknown_sale"},
		{"more of them", ask("GET", "victim-7", mug+"/reservations/%2e%2e%2f"+rid, ""), 404, "not_found"},
		{"an id of 64", ask("GET", "", "/"+strings.Repeat("x", 64), ""), 404, "unknown_sale"},
		{"an id of 65", ask("GET", "", "/"+strings.Repeat("x", 65), ""), 404, "unknown_sale"},
		{"an id of 65 of a reservation", ask("GET", "victim-7", mug+"/reservations/"+strings.Repeat("x", 65), ""), 404, "not_found"},
		{"NUL", ask("GET", "", "/spring%00", ""), 400, ""},
		{"NUL in it", ask("GET", "", "/spr\x00ing", ""), 400, ""},
		{"no UTF-8", ask("GET", "", "/%ff%fe", ""), 404, "unknown_sale"},
		{"an id with a line feed", ask("GET", "", "/a%0ab", ""), 400, ""},
		{"TRACE", ask("TRACE", "victim-7", path, ""), 405, "method_not_allowed"},
		{"CONNECT", "CONNECT shop.example.com:443 HTTP/1.1\r\nHost: shop.example.com:443\r\n\r\n", 405, "method_not_allowed"},
		{"PATCH", ask("PATCH", "victim-7", path, ""), 405, "method_not_allowed"},
		{"a method that there is not", ask("BREW", "victim-7", path, ""), 405, "method_not_allowed"},
		{"a method in small letters", ask("get", "victim-7", path, ""), 400, ""},
		{"what is not there", ask("GET", "", "/~/admin", ""), 404, "no_such_path"},
		{"another's simulated payment", ask("PUT", "", "/~/pay/"+rid+":1", ""), 404, ""},
	} {
		status, header, body := s.raw(c.send)
		kind := header.Get("Content-Type")
		switch {
		case status != c.status || c.code != "" && !strings.Contains(body, `"`+c.code+`"`):
			t.Errorf("%s: %d %s, want %d %s", c.what, status, body, c.status, c.code)
		case c.code != "" && kind != "application/problem+json":
			t.Errorf("%s: a %s", c.what, kind)
		case header.Get("Access-Control-Allow-Origin") != "":
			t.Errorf("%s: it may be read by %s", c.what, header.Get("Access-Control-Allow-Origin"))
		}
		told := fmt.Sprint(header) + body
		for _, secret := range []string{token, rid, "victim-7", "sqlite", "goroutine", ".go:", saleToken} {
			if strings.Contains(told, secret) {
				t.Errorf("%s: the answer tells of %q: %s", c.what, secret, told)
			}
		}
	}
	if after := s.operate("GET", "/spring", "").text; after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
	status, header, _ := s.raw(ask("OPTIONS", "", mug+"/reservations", "Origin: https://evil.example.net\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n"))
	if status != 204 || header.Get("Access-Control-Allow-Origin")+header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("a preflight of another origin: %d %v", status, header)
	}
}

// TestSaleOverOneConnection: fifty streams of events over one connection of HTTP/2 are four, and the others are told so; the connection stays good.
func TestSaleOverOneConnection(t *testing.T) {
	t.Parallel()
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:"})
	t.Cleanup(s.close) // after the streams
	s.sell(10)
	path := s.reserve("victim-7", s.token("victim-7"))
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), saleWithin)
	defer cancel()
	get := func(user, to string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/_headgate/sales"+to, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-User-Id", user)
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	open := 0
	for range 50 {
		res := get("victim-7", path+"/events")
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.ProtoMajor != 2 {
			t.Fatalf("it is %s", res.Proto)
		}
		switch res.StatusCode {
		case 200:
			open++
		case 429:
			body, err := io.ReadAll(res.Body)
			if err != nil || !strings.Contains(string(body), `"too_many_streams"`) || res.Header.Get("Retry-After") == "" {
				t.Errorf("%v %s", err, body)
			}
		default:
			t.Errorf("%s", res.Status)
		}
	}
	if open != 4 {
		t.Errorf("%d streams are open", open)
	}
	for user, want := range map[string]int{"victim-7": 200, "eve": 404} {
		res := get(user, path)
		if _ = res.Body.Close(); res.StatusCode != want {
			t.Errorf("%s: %s", user, res.Status)
		}
	}
}
