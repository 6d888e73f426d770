package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// witness is a policy that allows everything and remembers what it judged.
type witness struct {
	mu   sync.Mutex
	seen []httpverdict.Request
}

func (w *witness) decide(r *httpverdict.Request) *httpverdict.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, *r)
	return allowAll(r)
}

// smuggler is a raw client of a gateway in front of a recorder.
type smuggler struct {
	policy  *witness
	service *recorder
	addr    string
}

// shortly is how long a gateway waits for what is left of a request that never ends.
const shortly = 400 * time.Millisecond

func newSmuggler(t *testing.T, short time.Duration) *smuggler {
	s := &smuggler{policy: new(witness), service: newRecorder(t)}
	s.addr = served(t, Config{Upstream: s.service.url, Decider: decider(s.policy.decide), Stall: short},
		ServerConfig{HeaderTimeout: short, IdleTimeout: short / 4})
	return s
}

// say sends bytes and returns the answers, up to the end of the connection.
func (s *smuggler) say(t *testing.T, text string) []*http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, text)   // fails if the gateway closes early, which is as good
	all, err := io.ReadAll(conn) // a reset after the answer is an end too
	if len(all) == 0 && err != nil && strings.Contains(err.Error(), "timeout") {
		t.Fatalf("the connection stays open: %v", err)
	}
	var answers []*http.Response
	for in := bufio.NewReader(bytes.NewReader(all)); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers
		}
		io.Copy(io.Discard, res.Body)
		answers = append(answers, res)
	}
}

// statuses also returns what the answers are.
func (s *smuggler) statuses(t *testing.T, text string) (answers []*http.Response, status []int) {
	t.Helper()
	answers = s.say(t, text)
	for _, res := range answers {
		status = append(status, res.StatusCode)
	}
	return answers, status
}

// cutShort tells whether answers are missing, or time was up, as it may be for a whole request too where the machine stands still for as
// long as a gateway of these tests waits.
func cutShort(got, want []int) bool {
	n := len(got)
	return n < len(want) && slices.Equal(got, want[:n]) || n > 0 && got[n-1] == http.StatusRequestTimeout && !slices.Contains(want, http.StatusRequestTimeout)
}

// check compares what was judged with what the service got: the same requests, in the same words, and nothing beside.
func (s *smuggler) check(t *testing.T, want []string) []strictRequest {
	t.Helper()
	got, err := s.service.requests()
	if err != nil {
		t.Fatalf("the service got what can be read in two ways: %v", err)
	}
	s.policy.mu.Lock()
	defer s.policy.mu.Unlock()
	var judged, forwarded []string
	for _, r := range s.policy.seen {
		judged = append(judged, fmt.Sprintf("%s %s%s", r.Method, r.Host, target(r.Path, r.RawQuery)))
	}
	for _, r := range got {
		forwarded = append(forwarded, fmt.Sprintf("%s %s%s", r.method, httpverdict.CleanHost(r.host), r.target))
	}
	slices.Sort(judged) // two requests of one client may have come on two connections
	slices.Sort(forwarded)
	if len(want) == 0 && len(judged) == 1 {
		judged = nil // a head is judged before its body turns out to be malformed
	}
	if !slices.Equal(judged, forwarded) || !slices.Equal(forwarded, want) {
		t.Fatalf("judged %q, forwarded %q, want %q", judged, forwarded, want)
	}
	return got
}

func target(path, query string) string {
	if query != "" {
		return path + "?" + query
	}
	return path
}

const host = "Host: shop.example\r\n"

func TestSmuggling(t *testing.T) {
	get := "GET shop.example/"
	post := "POST shop.example/"
	for _, c := range []struct {
		name, say string
		status    []int
		forwarded []string
	}{
		// Framing.
		{"length and chunks", "POST / HTTP/1.1\r\n" + host + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", []int{200}, []string{post}},
		{"length over a hidden request", "POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1d\r\nGET /admin HTTP/1.1\r\nX: y\r\n\r\n\r\n0\r\n\r\n", []int{200}, []string{post}},
		{"two lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456", []int{400}, nil},
		{"one length twice", "POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n12345", []int{200}, []string{post}},
		{"a list of lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 5, 6\r\n\r\n12345", []int{400}, nil},
		{"length with a plus", "POST / HTTP/1.1\r\n" + host + "Content-Length: +5\r\n\r\n12345", []int{400}, nil},
		{"negative length", "POST / HTTP/1.1\r\n" + host + "Content-Length: -5\r\n\r\n12345", []int{400}, nil},
		{"length in hex", "POST / HTTP/1.1\r\n" + host + "Content-Length: 0x5\r\n\r\n12345", []int{400}, nil},
		{"length beyond 63 bits", "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n12345", []int{400}, nil},
		{"empty length", "POST / HTTP/1.1\r\n" + host + "Content-Length:\r\n\r\n", []int{400}, nil},
		{"coding in two words", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", []int{501}, nil},
		{"identity first", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", []int{501}, nil},
		{"coding in two lines", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", []int{501}, nil},
		{"chunked twice", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{501}, nil},
		{"identity", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\n123", []int{501}, nil},
		{"misspelt coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", []int{501}, nil},
		{"two spaces before the coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding:  chunked\r\n\r\n0\r\n\r\n", []int{200}, []string{post}},
		{"a tab before the coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", []int{200}, []string{post}},
		{"a vertical tab before the coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", []int{400}, nil},
		{"a space before the colon", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", []int{400}, nil},
		{"coding in HTTP/1.0", "POST / HTTP/1.0\r\n" + host + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n", []int{200}, []string{post}},
		{"coding alone in HTTP/1.0", "POST / HTTP/1.0\r\n" + host + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n", []int{200}, []string{post}},
		{"folded coding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", []int{200}, []string{post}},
		{"chunk extension", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0;c\r\n\r\n", []int{200}, []string{post}},
		{"chunk size over 64 bits", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n", []int{400}, nil},
		{"chunk size with a sign", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", []int{400}, nil},
		{"chunk size in 0x", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", []int{400}, nil},
		{"chunk longer than it says", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", []int{400}, nil},
		{"chunk line with a bare LF", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", []int{400}, nil},
		{"chunk extension with a bare LF", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5;\nxx\r\nhello\r\n0\r\n\r\n", []int{400}, nil},
		{"forbidden trailers", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", []int{400}, nil},

		// Lines.
		{"bare LF", "GET / HTTP/1.1\nHost: shop.example\nX: y\n\n", []int{200}, []string{get}},
		{"bare CR in a value", "GET / HTTP/1.1\r\n" + host + "X: a\rContent-Length: 5\r\n\r\n", []int{400}, nil},
		{"bare CR in the request line", "GET /\r HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"folded line", "GET / HTTP/1.1\r\n" + host + "X-A: b\r\n\tContent-Length: 5\r\n\r\n", []int{200}, []string{get}},
		{"folded first line", "GET / HTTP/1.1\r\n X: y\r\n" + host + "\r\n", []int{400}, nil},
		{"null byte in a value", "GET / HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n", []int{400}, nil},
		{"null byte in a name", "GET / HTTP/1.1\r\n" + host + "X\x00: a\r\n\r\n", []int{400}, nil},
		{"space in a name", "GET / HTTP/1.1\r\n" + host + "X User: a\r\n\r\n", []int{400}, nil},
		{"no name", "GET / HTTP/1.1\r\n" + host + ": a\r\n\r\n", []int{400}, nil},
		{"no colon", "GET / HTTP/1.1\r\n" + host + "X-User\r\n\r\n", []int{400}, nil},
		{"HTTP/0.9", "GET /\r\n", []int{400}, nil},
		{"HTTP/1.2", "GET / HTTP/1.2\r\n" + host + "\r\n", []int{200}, []string{get}},
		{"HTTP/3.0", "GET / HTTP/3.0\r\n" + host + "\r\n", []int{505}, nil},
		{"two spaces in the request line", "GET  / HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"a space in the target", "GET /a b HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"huge header", "GET / HTTP/1.1\r\n" + host + "X: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", []int{431}, nil},

		// Target and host.
		{"absolute form", "GET http://other.example/x HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET other.example/x"}},
		{"absolute form without a path", "GET http://other.example HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET other.example/"}},
		{"absolute form with a user", "GET http://a:b@other.example/x HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET other.example/x"}},
		{"absolute form without a host", "GET http:///x HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET shop.example/x"}},
		{"opaque target", "GET http:x HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"target without a slash", "GET x HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"target with two slashes", "GET //other.example/x HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET shop.example/other.example/x"}},
		{"asterisk", "GET * HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"number sign in the path", "GET /a#b HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET shop.example/a%23b"}},
		{"number sign in the query", "GET /a?b#c HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"encoded slash and braces", "GET /a%2Fb{c} HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET shop.example/a%2Fb%7Bc%7D"}},
		{"dot segments", "GET /a/%2e%2e/b/..;/c HTTP/1.1\r\n" + host + "\r\n", []int{200}, []string{"GET shop.example/c"}},
		{"two hosts", "GET / HTTP/1.1\r\n" + host + "Host: other.example\r\n\r\n", []int{400}, nil},
		{"no host", "GET / HTTP/1.1\r\n\r\n", []int{400}, nil},
		{"no host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", []int{400}, nil},
		{"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", []int{400}, nil},
		{"host with a path", "GET / HTTP/1.1\r\nHost: shop.example/x\r\n\r\n", []int{400}, nil},
		{"host with a user", "GET / HTTP/1.1\r\nHost: a@shop.example\r\n\r\n", []int{400}, nil},
		{"host with a comma", "GET / HTTP/1.1\r\nHost: shop.example,other.example\r\n\r\n", []int{400}, nil},
		{"host of other letters", "GET / HTTP/1.1\r\nHost: sh\xc3\xb6p.example\r\n\r\n", []int{400}, nil},
		{"CONNECT", "CONNECT other.example:443 HTTP/1.1\r\n" + host + "\r\n", []int{405}, nil},
		{"TRACE", "TRACE / HTTP/1.1\r\n" + host + "\r\n", []int{405}, nil},
		{"small letters", "post / HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},
		{"method with a bracket", "GET( / HTTP/1.1\r\n" + host + "\r\n", []int{400}, nil},

		// Connection and upgrades.
		{"Connection names a dimension", "GET / HTTP/1.1\r\n" + host + "X-User-Id: u1\r\nConnection: close, X-User-Id\r\n\r\n", []int{400}, nil},
		{"Connection names a dimension in small letters", "GET / HTTP/1.1\r\n" + host + "X-User-Id: u1\r\nConnection: close\r\nConnection: x-user-id\r\n\r\n", []int{400}, nil},
		{"Connection names Host", "GET / HTTP/1.1\r\n" + host + "Connection: Host\r\n\r\n", []int{400}, nil},
		{"Connection names the length", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nConnection: Content-Length\r\n\r\n1", []int{400}, nil},
		{"Connection names Cookie", "GET / HTTP/1.1\r\n" + host + "Cookie: a=b\r\nConnection: Cookie\r\n\r\n", []int{400}, nil},
		{"Connection names what is not there", "GET / HTTP/1.1\r\n" + host + "Connection: X-Gone\r\n\r\n", []int{200}, []string{get}},
		{"upgrade to h2c", "GET / HTTP/1.1\r\n" + host + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", []int{200}, []string{get}},
		{"upgrade to a list", "GET / HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", []int{200}, []string{get}},
		{"upgrade with a body", "GET / HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n1", []int{200}, []string{get}},
		{"upgrade of a POST", "POST / HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", []int{200}, []string{post}},

		// More than one.
		{"pipelined", "GET /1 HTTP/1.1\r\n" + host + "\r\nGET /2 HTTP/1.1\r\n" + host + "\r\n", []int{200, 200}, []string{get + "1", get + "2"}},
		{"pipelined after a body", "POST /1 HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n" + host + "\r\n", []int{200, 200}, []string{get + "2", post + "1"}},
		{"pipelined after a refusal", "TRACE / HTTP/1.1\r\n" + host + "\r\nGET /2 HTTP/1.1\r\n" + host + "\r\n", []int{405}, nil},
		{"a body on GET", "GET /1 HTTP/1.1\r\n" + host + "Content-Length: 20\r\n\r\nGET /2 HTTP/1.1\r\n\r\n\n", []int{200}, []string{get + "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSmuggler(t, shortly)
			answers, status := s.statuses(t, c.say)
			for _, longer := range []time.Duration{5 * shortly, 25 * shortly} {
				if cutShort(status, c.status) { // who has had too little time gets more
					s = newSmuggler(t, longer)
					answers, status = s.statuses(t, c.say)
				}
			}
			if !slices.Equal(status, c.status) {
				t.Errorf("answers %d, want %d", status, c.status)
			}
			if n := len(answers); n > 0 && answers[n-1].StatusCode >= 400 && !answers[n-1].Close {
				t.Errorf("the connection is not closed after %d", answers[n-1].StatusCode)
			}
			s.check(t, c.forwarded)
		})
	}
}

// The body of a denied request that comes too late must not be taken for a request.
func TestLateBodyIsNoRequest(t *testing.T) {
	asked := 0
	addr := served(t, Config{Upstream: "http://127.0.0.1:9", Decider: decider(func(*httpverdict.Request) *httpverdict.Verdict {
		asked++
		return &httpverdict.Verdict{Kind: httpverdict.Limited, Binding: -1}
	})}, ServerConfig{})
	conn := dialGateway(t, addr)
	hidden := "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(hidden))
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 429 {
		t.Fatalf("answer %v %v, want 429", res, err)
	}
	io.Copy(io.Discard, res.Body)
	io.WriteString(conn, hidden) // fails if the connection is closed
	if res, err := http.ReadResponse(in, nil); err == nil {
		t.Errorf("the body was answered with %d", res.StatusCode)
	}
	if asked != 1 {
		t.Errorf("the policy was asked %d times", asked)
	}
}
