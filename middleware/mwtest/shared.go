package mwtest

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// testShared: an answer that shared caches give to others has no header about who has asked, whether it was new, unchanged or kept here.
// A denial has them, and so has an answer that is for its asker alone.
func testShared(t *testing.T, b *bench) {
	b.start(t, func(r *httpverdict.Request) *httpverdict.Verdict {
		v := &httpverdict.Verdict{ID: "id-1", Limits: report(true)}
		if r.Path == "/denied" {
			v.Kind, v.Code, v.Limits = httpverdict.Limited, "limited", report(false)
		}
		if r.Path == "/x" {
			v.Response.XRateLimit = true
		}
		if r.Path == "/kept" {
			v.Stale = &httpverdict.Stale{MaxAge: time.Hour}
		}
		return v
	}, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "public, max-age=60")
		h.Set("Etag", `"v"`)
		switch r.URL.Path {
		case "/private":
			h.Set("Cache-Control", "private, max-age=60")
		case "/unchanged":
			w.WriteHeader(http.StatusNotModified)
			return
		case "/empty":
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	for path, told := range map[string]bool{"/": false, "/x": false, "/empty": false, "/unchanged": false, "/kept": false, "/private": true, "/denied": true} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} {
			res, _ := b.ask(t, method, path)
			for _, name := range []string{"Headgate-Id", "RateLimit", "RateLimit-Policy", "X-RateLimit-Limit"} {
				if name == "X-RateLimit-Limit" && path != "/x" || path == "/x" && name[0] == 'R' {
					continue
				}
				if got := res.Header.Get(name); (got != "") != told {
					t.Errorf("%s %s: %s is %q, Cache-Control %q", method, path, name, got, res.Header.Get("Cache-Control"))
				}
			}
		}
	}
	if res, _ := b.ask(t, http.MethodPost, "/"); res.Header.Get("RateLimit") == "" {
		t.Error("a POST is kept by no cache, and its answer lacks the headers of its limits")
	}
}
