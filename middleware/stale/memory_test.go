package stale

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Clients that read slowly what they lead have a bound together, also when their answers are kept: each could ask for another
// page.
func TestSlowLeadersAreBounded(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 400_000, MaxAnswer: 10_000})
	page := strings.Repeat("x", 10_000)
	var bodies []io.ReadCloser
	var leaders []*Keeping
	for i := range 100 {
		_, k := cache.Join(t.Context(), ask(fmt.Sprint("/?", i), ""))
		if !k.Header(200, fields("Content-Length", "10000")) {
			t.Fatal("not taken down")
		}
		body := k.Body(io.NopCloser(strings.NewReader(page)))
		if n, err := body.Read(make([]byte, 1)); n != 1 || err != nil { // what is ahead of it has been read
			t.Fatal(n, err)
		}
		bodies, leaders = append(bodies, body), append(leaders, k)
	}
	if n := cache.taking.Load(); n != 100_000 {
		t.Errorf("%d bytes wait for slow clients, want the 100000 that may", n)
	}
	if n := cache.Stats().Answers; n != 10 {
		t.Errorf("%d answers are kept, want the 10 that had room", n)
	}
	for i, body := range bodies {
		if rest, err := io.ReadAll(body); len(rest) != 9_999 || err != nil {
			t.Fatalf("client %d reads %d bytes %v", i, len(rest), err)
		}
	}
	if n := cache.taking.Load(); n != 0 {
		t.Errorf("%d bytes are taken when all have been read", n)
	}
	for _, k := range leaders {
		k.Close()
		k.Close()
	}
	fill(t, cache, same(0), 200, page, fields())
	if n := cache.taking.Load(); n != 0 || kept(cache, same(0)) != page {
		t.Errorf("%d bytes are taken when all is over", n)
	}
}

// So have clients that read slowly what is not among the kept any more.
func TestAnswersThatAreReadCount(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 100_000, MaxAnswer: 20_000})
	page := strings.Repeat("x", 20_000)
	var slow []*Answer
	lead := func(path string) bool {
		_, k := cache.Join(t.Context(), ask(path, ""))
		defer k.Close()
		k.Header(200, fields("Content-Length", "20000"))
		taken := k.Write([]byte(page))
		k.End(true)
		return taken
	}
	for i := range 20 {
		path := fmt.Sprint("/?", i)
		if lead(path) {
			slow = append(slow, cache.Kept(ask(path, "")), cache.Kept(ask(path, "")))
		}
	}
	if len(slow) == 40 || len(slow) < 8 {
		t.Errorf("%d answers are being read", len(slow))
	}
	if all := cache.taking.Load() + cache.Stats().Bytes; all > 150_000 {
		t.Errorf("%d bytes in memory, much more than 125000", all)
	}
	for _, a := range slow {
		a.Write(nowhere{http.Header{}}, &http.Request{Method: http.MethodGet})
	}
	if n := cache.taking.Load(); n != 0 {
		t.Errorf("%d bytes are taken when all have been read", n)
	}
	if !lead("/after") || kept(cache, ask("/after", "")) != page {
		t.Error("nothing is kept afterwards")
	}
}

// A header counts as well.
func TestHugeHeaders(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 400_000})
	fill(t, cache, ask("/kept", ""), 200, "hello", fields())
	fill(t, cache, ask("/huge", ""), 200, "hello", fields("X-Huge", strings.Repeat("x", maxHeader)))
	many := http.Header{}
	for i := range 2000 {
		many.Add("X-Many", fmt.Sprint(i))
		many.Add(fmt.Sprint("X-", i), "")
	}
	fill(t, cache, ask("/many", ""), 200, "hello", many)
	if kept(cache, ask("/huge", "")) != "" || kept(cache, ask("/many", "")) != "" || kept(cache, ask("/kept", "")) != "hello" {
		t.Error("a huge header is kept, or has pushed out what was")
	}
	small := mustNew(t, Config{MaxBytes: 10_000})
	fill(t, small, ask("/kept", ""), 200, "hello", fields())
	fill(t, small, ask("/large", ""), 200, "hello", fields("X-Large", strings.Repeat("x", 20_000)))
	if kept(small, ask("/large", "")) != "" || kept(small, ask("/kept", "")) != "hello" {
		t.Error("an answer larger than the cache has pushed out what was kept")
	}
}
