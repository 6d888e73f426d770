package stale

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{{MaxBytes: -1}, {MaxAnswer: -1}, {MaxWaiting: -1}, {Wait: -1}, {MaxBytes: 100, MaxAnswer: 26}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      *Query
		status int
		h      http.Header
		want   bool
	}{
		{"plain", ask("/", ""), 200, fields(), true},
		{"no body", ask("/", ""), 200, fields("Content-Length", "0"), true},
		{"203", ask("/", ""), 203, fields(), true},
		{"204", ask("/", ""), 204, fields(), false},
		{"206", ask("/", ""), 206, fields("Content-Range", "bytes 0-3/9"), false},
		{"a range that is called 200", ask("/", ""), 200, fields("Content-Range", "bytes 0-3/9"), false},
		{"301", ask("/", ""), 301, fields(), false},
		{"404", ask("/", ""), 404, fields(), false},
		{"503", ask("/", ""), 503, fields(), false},
		{"304 that nobody asked for", ask("/", ""), 304, fields(), false},
		{"a cookie", ask("/", "u1"), 200, fields("Set-Cookie", "a=b"), false},
		{"no-store", ask("/", "u1"), 200, fields("Cache-Control", "max-age=3, No-Store"), false},
		{"no-cache", ask("/", ""), 200, fields("Cache-Control", "no-cache"), true},
		{"private, for everybody", ask("/", ""), 200, fields("Cache-Control", "private"), false},
		{"private fields, for everybody", ask("/", ""), 200, fields("Cache-Control", `private="x-user"`), false},
		{"private, for one", ask("/", "u1"), 200, fields("Cache-Control", "private"), true},
		{"authorized, for everybody", ask("/", "", "Authorization", "Bearer a"), 200, fields(), false},
		{"authorized and public", ask("/", "", "Authorization", "Bearer a"), 200, fields("Cache-Control", "public"), true},
		{"authorized, public and private", ask("/", "", "Authorization", "Bearer a"), 200, fields("Cache-Control", "public, private"), false},
		{"authorized, for one", ask("/", "u1", "Authorization", "Bearer a"), 200, fields(), true},
		{"varies with all", ask("/", ""), 200, fields("Vary", "Accept, *"), false},
		{"varies with the address", ask("/", ""), 200, fields("Vary", "x-forwarded-for"), false},
		{"varies with the mark", ask("/", ""), 200, fields("Vary", "Headgate-Over"), false},
		{"varies with much", ask("/", ""), 200, fields("Vary", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"), false},
		{"varies with a cookie", ask("/", ""), 200, fields("Vary", "Cookie"), true},
		{"events", ask("/", ""), 200, fields("Content-Type", "text/event-stream; charset=utf-8"), false},
		{"trailers", ask("/", ""), 200, fields("Trailer", "X-Sum"), false},
		{"length", ask("/", ""), 200, fields("Content-Length", "5"), true},
		{"short", ask("/", ""), 200, fields("Content-Length", "6"), false},
		{"long", ask("/", ""), 200, fields("Content-Length", "4"), false},
		{"a strange length", ask("/", ""), 200, fields("Content-Length", "+5"), false},
		{"too long, as it says", ask("/", ""), 200, fields("Content-Length", "1048577"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := mustNew(t, Config{})
			fill(t, cache, c.q, c.status, "hello", c.h)
			if a := cache.Kept(c.q); (a != nil) != c.want {
				t.Errorf("kept %v, want %t", a, c.want)
			}
			s := cache.Stats()
			if s.Leading != 0 || (s.Answers == 1) != c.want || (s.Bytes > 0) != c.want || cache.taking.Load() != 0 {
				t.Errorf("stats %+v, taking %d", s, cache.taking.Load())
			}
		})
	}
}

func TestBodyThatGrowsTooLong(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 64 << 10, MaxAnswer: 100})
	for size, want := range map[int]bool{99: true, 100: true, 101: false} {
		q := ask(fmt.Sprint("/", size), "")
		_, k := cache.Join(t.Context(), q)
		k.Header(200, fields())
		all := true
		for range size {
			all = k.Write([]byte("x")) && all
		}
		hand := len(k.Bytes())
		k.End(true)
		k.Close()
		if all != want || (cache.Kept(q) != nil) != want || hand != min(size, 100) {
			t.Errorf("%d bytes: taken %t, kept %t, %d in hand", size, all, cache.Kept(q) != nil, hand)
		}
	}
}

// Answers that are on their way have a bound together.
func TestTakingIsBounded(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 400, MaxAnswer: 100})
	_, first := cache.Join(t.Context(), ask("/1", ""))
	_, second := cache.Join(t.Context(), ask("/2", ""))
	first.Header(200, fields())
	second.Header(200, fields())
	if !first.Write(make([]byte, 60)) || second.Write(make([]byte, 60)) {
		t.Error("60 and 60 bytes fit into 100, or 60 do not")
	}
	if second.End(true); cache.taking.Load() != 60 {
		t.Errorf("%d bytes are being taken", cache.taking.Load())
	}
	first.Close()
	second.Close()
	if n := cache.taking.Load(); n != 0 {
		t.Errorf("%d bytes are still being taken", n)
	}
}

func TestAnswerAsItIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := mustNew(t, Config{})
		q := ask("/", "")
		born := time.Now().UTC().Format(http.TimeFormat)
		fill(t, cache, q, 203, "hello", fields("Content-Type", "text/plain", "Age", "30", "Etag", `"v1"`, "X-A", "1", "X-A", "2",
			"Connection", "X-Hop", "X-Hop", "h", "Keep-Alive", "9", "Headgate-Id", "old", "Ratelimit", "r", "Ratelimit-Policy", "p",
			"X-Ratelimit-Limit", "5", "Retry-After", "3", "Content-Length", "5", "Cache-Status", "cdn; hit", "Vary", "Accept"))
		time.Sleep(12*time.Second + 900*time.Millisecond)
		w := got(cache.Kept(q), q)
		want := http.Header{
			"Content-Type": {"text/plain"}, "Age": {"42"}, "Etag": {`"v1"`}, "X-A": {"1", "2"}, "Content-Length": {"5"}, "Date": {born},
			"Cache-Status": {"cdn; hit", "headgate; hit; detail=denied"}, "Vary": {"Accept"},
		}
		if w.Code != 203 || w.Body.String() != "hello" || !reflect.DeepEqual(w.Header(), want) {
			t.Errorf("got %d %q %v\nwant %v", w.Code, w.Body, w.Header(), want)
		}
		q.Method = http.MethodHead
		if w := got(cache.Kept(q), q); w.Code != 203 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "5" {
			t.Errorf("HEAD: %d %q %v", w.Code, w.Body, w.Header())
		}
		w.Header()["X-A"][0] = "changed"
		if w := got(cache.Kept(q), q); w.Header().Get("X-A") != "1" {
			t.Error("who changes an answer that he got changes that of others")
		}
	})
}

func TestTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := mustNew(t, Config{})
		q := ask("/", "")
		q.Stale.MaxAge = time.Minute
		fill(t, cache, q, 200, "hello", fields("Age", "30"))
		time.Sleep(30 * time.Second)
		if kept(cache, q) != "hello" {
			t.Error("an answer of just that age is not given")
		}
		time.Sleep(time.Microsecond)
		if kept(cache, q) != "" {
			t.Error("an answer is given that is too old")
		}
		q.Stale.MaxAge = time.Hour
		if kept(cache, q) != "hello" {
			t.Error("a rule with more patience does not get it")
		}
	})
}

func TestConditions(t *testing.T) {
	cache := mustNew(t, Config{})
	fill(t, cache, ask("/", ""), 200, "hello", fields("Etag", `W/"a,b"`, "Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Type", "text/plain"))
	for _, c := range []struct {
		name   string
		fields []string
		want   int
	}{
		{"none", nil, 200},
		{"the tag", []string{"If-None-Match", `"a,b"`}, 304},
		{"the weak tag", []string{"If-None-Match", `W/"a,b"`}, 304},
		{"among others", []string{"If-None-Match", `"x", W/"y,z" ,"a,b"`}, 304},
		{"on another line", []string{"If-None-Match", `"x"`, "If-None-Match", `"a,b"`}, 304},
		{"any", []string{"If-None-Match", " * "}, 304},
		{"another tag", []string{"If-None-Match", `"a"`}, 200},
		{"half a tag", []string{"If-None-Match", `"a,b`}, 200},
		{"no tag", []string{"If-None-Match", `a,b`}, 200},
		{"another tag, though not modified", []string{"If-None-Match", `"a"`, "If-Modified-Since", "Fri, 02 Jan 2026 00:00:00 GMT"}, 200},
		{"not modified", []string{"If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"}, 304},
		{"modified", []string{"If-Modified-Since", "Wed, 31 Dec 2025 23:59:59 GMT"}, 200},
		{"no date", []string{"If-Modified-Since", "yesterday"}, 200},
		{"a range", []string{"Range", "bytes=0-1"}, 200},
	} {
		q := ask("/", "", c.fields...)
		w := got(cache.Kept(q), q)
		if w.Code != c.want || (w.Body.Len() == 0) != (c.want == 304) || w.Header().Get("Etag") != `W/"a,b"` {
			t.Errorf("%s: %d %q %v, want %d", c.name, w.Code, w.Body, w.Header(), c.want)
		}
		if _, given := w.Header()["Content-Length"]; given == (c.want == 304) {
			t.Errorf("%s: %v", c.name, w.Header())
		}
	}
}

// A 304 of the service makes what is kept young again.
func TestNotModifiedFreshens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := mustNew(t, Config{})
		q := ask("/", "")
		fill(t, cache, q, 200, "hello", fields("Etag", `"1"`, "Cache-Control", "max-age=1", "X-Kept", "yes"))
		time.Sleep(50 * time.Minute)
		fill(t, cache, ask("/", "", "If-None-Match", `"1"`), 304, "", fields("Etag", `"1"`, "Cache-Control", "max-age=2"))
		fill(t, cache, ask("/", "", "If-None-Match", `"2"`), 304, "", fields("Etag", `"2"`)) // of another answer
		time.Sleep(50 * time.Minute)
		w := got(cache.Kept(q), q)
		if w.Body.String() != "hello" || w.Header().Get("Age") != "3000" || w.Header().Get("Cache-Control") != "max-age=2" || w.Header().Get("X-Kept") != "yes" {
			t.Errorf("%q %v", w.Body, w.Header())
		}
		if s := cache.Stats(); s.Answers != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestVariants(t *testing.T) {
	cache := mustNew(t, Config{})
	for _, lang := range []string{"en", "zh", ""} {
		q := ask("/", "")
		if lang != "" {
			q.Header.Set("Accept-Language", lang)
		}
		fill(t, cache, q, 200, "in "+lang, fields("Vary", "accept-language"))
	}
	fill(t, cache, ask("/", "", "Accept-Language", "zh"), 200, "in new zh", fields("Vary", "accept-language"))
	for _, c := range []struct {
		q    *Query
		want string
	}{
		{ask("/", "", "Accept-Language", "en"), "in en"},
		{ask("/", "", "Accept-Language", "zh"), "in new zh"},
		{ask("/", ""), "in "},
		{ask("/", "", "Accept-Language", ""), ""},
		{ask("/", "", "Accept-Language", "fr"), ""},
	} {
		if got := kept(cache, c.q); got != c.want {
			t.Errorf("%v: %q, want %q", c.q.Header, got, c.want)
		}
	}
	if s := cache.Stats(); s.Answers != 3 {
		t.Errorf("stats %+v, want 3 answers", s)
	}
}

// Encodings and origins count whether the service names them or not.
func TestImpliedVariants(t *testing.T) {
	cache := mustNew(t, Config{})
	fill(t, cache, ask("/z", "", "Accept-Encoding", "gzip"), 200, "zipped", fields("Content-Encoding", "gzip"))
	fill(t, cache, ask("/o", "", "Origin", "https://a.example"), 200, "shared", fields("Access-Control-Allow-Origin", "https://a.example"))
	for _, c := range []struct {
		q    *Query
		want string
	}{
		{ask("/z", "", "Accept-Encoding", "gzip"), "zipped"}, {ask("/z", ""), ""},
		{ask("/o", "", "Origin", "https://a.example"), "shared"}, {ask("/o", "", "Origin", "https://b.example"), ""},
	} {
		if got := kept(cache, c.q); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.q.Path, c.q.Header, got, c.want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	cache := mustNew(t, Config{MaxBytes: 64 << 10})
	body := strings.Repeat("x", 4<<10)
	for i := range 100 {
		fill(t, cache, ask(fmt.Sprint("/", i), ""), 200, body, fields())
		if i >= 1 && kept(cache, ask("/0", "")) != body { // in use, so it stays
			t.Fatalf("what is used goes first, after %d", i)
		}
		if s := cache.Stats(); s.Bytes > 64<<10 {
			t.Fatalf("%d bytes are kept", s.Bytes)
		}
	}
	if s := cache.Stats(); s.Answers < 8 || kept(cache, ask("/99", "")) != body || kept(cache, ask("/50", "")) != "" {
		t.Errorf("stats %+v", s)
	}
	for i := range 100 {
		fill(t, cache, ask("/v", "", "X-V", fmt.Sprint(i)), 200, "", fields("Vary", "X-V", "Content-Length", "0"))
	}
	if n := len(cache.kept[ask("/v", "").key()]); n != maxVariants {
		t.Errorf("%d variants are kept, want %d", n, maxVariants)
	}
	var held int64
	for e := cache.recent.Front(); e != nil; e = e.Next() {
		held += e.Value.(*variant).size
	}
	if held != cache.bytes {
		t.Errorf("%d bytes are counted, %d are there", cache.bytes, held)
	}
}

// Whatever a client and a service write into their headers, it ends, and a tag is found if it is one of a plain list.
func FuzzHeaders(f *testing.F) {
	f.Add(`W/"a,b", "c"`, "Accept, *", "no-store, private=\"x\"", `"c"`)
	f.Fuzz(func(t *testing.T, line, vary, control, tag string) {
		names(line, tag)
		if strings.Count(tag, `"`) == 2 && len(tag) >= 2 && strings.HasPrefix(tag, `"`) && strings.HasSuffix(tag, `"`) {
			if !names(`"other", W/`+tag+`, "x"`, "W/"+tag) && tag != `"other"` {
				t.Errorf("%q is not found", tag)
			}
		}
		cache := mustNew(t, Config{})
		q := ask("/", "", "If-None-Match", line)
		_, k := cache.Join(t.Context(), q)
		k.Header(200, fields("Vary", vary, "Cache-Control", control))
		k.End(true)
		if a := cache.Kept(q); a != nil && (strings.TrimSpace(vary) == "*" || strings.EqualFold(strings.TrimSpace(control), "no-store")) {
			t.Errorf("kept with Vary %q and Cache-Control %q", vary, control)
		}
	})
}
