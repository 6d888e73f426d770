package mwtest

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func testOver(t *testing.T, b *bench) {
	var header http.Header
	var mark string
	b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "id-over", Over: mark, Binding: -1}
	}, func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Clone() })
	conn := b.dial(t)
	in := bufio.NewReader(conn)
	for _, c := range []struct{ name, sent, mark string }{
		{"nothing", "", ""},
		{"a forged one", "Headgate-Over: v1;forged\r\n", ""},
		{"in small letters", "headgate-over: v1;forged\r\n", ""},
		{"in capitals, twice", "HEADGATE-OVER: v1;forged\r\nHeadgate-Over: v1;again\r\n", ""},
		{"with an underscore", "Headgate_Over: v1;forged\r\n", ""},
		{"a mark", "", "v1;real"},
		{"a mark over a forged one", "Headgate-Over: v1;forged\r\nheadgate_over: v1;forged\r\n", "v1;real"},
	} {
		mark = c.mark
		io.WriteString(conn, "GET /pay HTTP/1.1\r\nHost: x\r\nX-Kept: yes\r\n"+c.sent+"\r\n")
		answerOn(t, in)
		var got []string
		for name, values := range header {
			if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), httpverdict.HeaderOver) {
				got = append(got, values...)
			}
		}
		if strings.Join(got, "|") != c.mark || header.Get("X-Kept") != "yes" {
			t.Errorf("%s: the application saw %q, want %q; header %v", c.name, got, c.mark, header)
		}
	}
}

func testResult(t *testing.T, b *bench) {
	b.start(t, allow, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("X-App", "one")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "made")
	})
	for _, body := range []string{"", "hello", strings.Repeat("x", 100_000)} {
		b.do(t, http.MethodPost, "/", body)
		got := b.awaitDone(t)
		if got.Status != 201 || got.Bytes != 4 || got.RequestBytes != int64(len(body)) || got.Header.Get("X-App") != "one" {
			t.Errorf("a body of %d bytes: Done got %+v", len(body), got)
		}
	}
}

func testDeniedResult(t *testing.T, b *bench) {
	b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{Kind: httpverdict.Limited, ID: "id-denied", Binding: -1}
	}, unreached(t))
	b.do(t, http.MethodGet, "/", "")
	if got := b.awaitDone(t); got.Status != 429 || got.RequestBytes != 0 || got.Header.Get("Headgate-Id") != "id-denied" {
		t.Errorf("Done got %+v", got)
	}
}
