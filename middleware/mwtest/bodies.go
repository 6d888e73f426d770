package mwtest

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

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// looked is what a policy saw of a body.
type looked struct {
	text string
	err  error
}

// look is a policy that looks at bodies of up to most bytes for at most wait, and tells what it saw.
func look(most int, wait time.Duration, saw chan<- looked, answer func(*httpverdict.Request) *httpverdict.Verdict) func(*httpverdict.Request) *httpverdict.Verdict {
	return func(r *httpverdict.Request) *httpverdict.Verdict {
		if r.Body == nil {
			saw <- looked{err: errNoBody}
			return answer(r)
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		text, err := r.Body.Peek(ctx, most)
		saw <- looked{string(text), err}
		return answer(r)
	}
}

var errNoBody = errors.New("there is no body to look at")

// arrived is what an application got of a request.
type arrived struct {
	body   string
	err    error
	length int64
	sum    string // of the trailer X-Sum
}

func taker(got chan<- arrived) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		length := r.ContentLength
		text, err := io.ReadAll(r.Body)
		got <- arrived{string(text), err, length, r.Trailer.Get("X-Sum")}
		io.WriteString(w, "taken")
	}
}

func testPeek(t *testing.T, b *bench) {
	const chunked = "Transfer-Encoding: chunked\r\n"
	long := strings.Repeat("0123456789", 1000)
	for _, c := range []struct {
		name, request string
		want          looked
		app           arrived
	}{
		{"none", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", looked{"", errNoBody}, arrived{length: 0}},
		{"short", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", looked{"hello", nil}, arrived{body: "hello", length: 5}},
		{"chunks", "POST / HTTP/1.1\r\nHost: x\r\n" + chunked + "\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
			looked{"hello", nil}, arrived{body: "hello", length: -1}},
		{"trailers", "POST / HTTP/1.1\r\nHost: x\r\nTrailer: X-Sum\r\n" + chunked + "\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n",
			looked{"hello", nil}, arrived{body: "hello", length: -1, sum: "5"}},
		{"long", fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(long), long),
			looked{"", httpverdict.ErrBodyTooLarge}, arrived{body: long, length: int64(len(long))}},
		{"long chunks", fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", chunked, len(long), long),
			looked{"", httpverdict.ErrBodyTooLarge}, arrived{body: long, length: -1}},
		{"just fits", fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 64\r\n\r\n%s", long[:64]),
			looked{long[:64], nil}, arrived{body: long[:64], length: 64}},
	} {
		t.Run(c.name, func(t *testing.T) {
			saw, got := make(chan looked, 1), make(chan arrived, 1)
			b.start(t, look(64, patience, saw, allow), taker(got))
			conn := b.dial(t)
			in := bufio.NewReader(conn)
			for range 2 { // the connection stays in step
				io.WriteString(conn, c.request)
				if l := <-saw; l != c.want {
					t.Errorf("the policy saw %.20q %v, want %.20q %v", l.text, l.err, c.want.text, c.want.err)
				}
				res := answerOn(t, in)
				if a := <-got; a != c.app {
					t.Errorf("the application got %+v, want %+v", a, c.app)
				}
				if res.StatusCode != http.StatusOK {
					t.Errorf("answer %d", res.StatusCode)
				}
				if res := b.awaitDone(t); res.RequestBytes != int64(len(c.app.body)) {
					t.Errorf("Done got %d bytes of the request, want %d", res.RequestBytes, len(c.app.body))
				}
			}
		})
	}
}

// answerOn reads an answer and its body.
func answerOn(t *testing.T, in *bufio.Reader) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("answer: %v", err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatalf("answer: %v", err)
	}
	return res
}

func testPeekAgain(t *testing.T, b *bench) {
	var bodies []httpverdict.Peeker
	saw, got := make(chan looked, 1), make(chan arrived, 1)
	b.start(t, look(64, patience, saw, func(r *httpverdict.Request) *httpverdict.Verdict {
		bodies = append(bodies, r.Body)
		return allow(r)
	}), taker(got))
	b.do(t, http.MethodPost, "/", "hello")
	<-saw
	<-got
	b.awaitDone(t)
	if text, err := bodies[0].Peek(t.Context(), 64); string(text) != "hello" || err != nil {
		t.Errorf("when the request is over: %q %v, want hello", text, err)
	}
}

func testPeekTooLate(t *testing.T, b *bench) {
	late := make(chan httpverdict.Peeker, 1)
	got := make(chan arrived, 1)
	b.start(t, func(r *httpverdict.Request) *httpverdict.Verdict {
		late <- r.Body
		return allow(r)
	}, taker(got))
	b.do(t, http.MethodPost, "/", "hello")
	<-got
	b.awaitDone(t)
	if text, err := (<-late).Peek(t.Context(), 64); text != nil || !errors.Is(err, httpverdict.ErrBodyPassed) {
		t.Errorf("a first look when all is over: %q %v, want ErrBodyPassed", text, err)
	}
}

func testPeekContinue(t *testing.T, b *bench) {
	saw, got := make(chan looked, 1), make(chan arrived, 1)
	b.start(t, look(64, patience, saw, allow), taker(got))
	conn := b.dial(t)
	in := bufio.NewReader(conn)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusContinue {
		t.Fatalf("%v %v, want 100", res, err)
	}
	io.WriteString(conn, "hello")
	if l := <-saw; l.text != "hello" || l.err != nil {
		t.Errorf("the policy saw %q %v", l.text, l.err)
	}
	if a := <-got; a.body != "hello" || a.length != 5 {
		t.Errorf("the application got %+v", a)
	}
	if res := answerOn(t, in); res.StatusCode != http.StatusOK {
		t.Errorf("answer %d", res.StatusCode)
	}
}

// briefly is how long policies of these tests look at a body that does not come.
const briefly = 30 * time.Millisecond

// sendHalf sends a request with half of its body and returns how the rest goes.
func sendHalf(t *testing.T, b *bench) (conn net.Conn, rest string) {
	t.Helper()
	conn = b.dial(t)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello")
	return conn, "world"
}

func testPeekSlow(t *testing.T, b *bench) {
	saw, got := make(chan looked, 1), make(chan arrived, 1)
	b.start(t, look(64, briefly, saw, allow), taker(got))
	conn, rest := sendHalf(t, b)
	if l := <-saw; l.text != "" || !errors.Is(l.err, context.DeadlineExceeded) {
		t.Errorf("the policy saw %q %v, want the end of its time", l.text, l.err)
	}
	io.WriteString(conn, rest)
	if a := <-got; a.body != "helloworld" || a.err != nil || a.length != 10 {
		t.Errorf("the application got %+v", a)
	}
	if res := answerOn(t, bufio.NewReader(conn)); res.StatusCode != http.StatusOK {
		t.Errorf("answer %d", res.StatusCode)
	}
	if res := b.awaitDone(t); res.RequestBytes != 10 {
		t.Errorf("Done got %d bytes of the request, want 10", res.RequestBytes)
	}
}

func testPeekSlowDenied(t *testing.T, b *bench) {
	saw := make(chan looked, 1)
	b.start(t, look(64, briefly, saw, func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{Kind: httpverdict.Forbidden, ID: "id-slow", Code: "dimension_missing", Binding: -1}
	}), unreached(t))
	conn, _ := sendHalf(t, b)
	<-saw
	if res := answerOn(t, bufio.NewReader(conn)); res.StatusCode != http.StatusForbidden || !res.Close {
		t.Errorf("answer %d, close %t; want 403 and the end of the connection", res.StatusCode, res.Close)
	}
	if res := b.awaitDone(t); res.Status != http.StatusForbidden {
		t.Errorf("Done got %+v", res)
	}
}

func testPeekBroken(t *testing.T, b *bench) {
	saw := make(chan looked, 1)
	b.start(t, look(64, patience, saw, allow), func(_ http.ResponseWriter, r *http.Request) {
		if text, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("the application takes %q for a whole body", text)
		}
	})
	conn, _ := sendHalf(t, b)
	if half, ok := conn.(*net.TCPConn); !ok || half.CloseWrite() != nil {
		t.Fatal("the connection cannot be closed for writing")
	}
	if l := <-saw; l.text != "" || l.err == nil || errors.Is(l.err, httpverdict.ErrBodyTooLarge) {
		t.Errorf("the policy saw %q %v, want what broke the body", l.text, l.err)
	}
	b.awaitDone(t)
}
