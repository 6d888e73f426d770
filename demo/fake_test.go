package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

type fakeDecider struct {
	mu sync.Mutex
	n  map[string]int
}

func (f *fakeDecider) Decide(_ context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	did := ""
	if _, v, ok := strings.Cut(r.Header.Get("Cookie"), "did="); ok {
		did = v
	}
	if r.Method == "GET" {
		return &httpverdict.Verdict{Binding: -1}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n[did+r.Path]++
	if f.n[did+r.Path] > 10 {
		return &httpverdict.Verdict{Kind: httpverdict.Limited, Rule: "device" + r.Path}
	}
	return &httpverdict.Verdict{Binding: -1}
}

func fakeGateway(d httpverdict.Decider, u *url.URL) (http.Handler, error) {
	rp := httputil.NewSingleHostReverseProxy(u)
	rp.Transport = &http.Transport{MaxIdleConnsPerHost: 512}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := d.Decide(r.Context(), &httpverdict.Request{Method: r.Method, Path: r.URL.Path, Header: r.Header})
		if !v.Allowed() {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(429)
			return
		}
		rp.ServeHTTP(w, r)
	}), nil
}

func TestFake(t *testing.T) {
	d, _ := time.ParseDuration(os.Getenv("DUR"))
	sum, err := Run(t.Context(), Config{Decider: &fakeDecider{n: map[string]int{}}, NewGateway: fakeGateway, Duration: d})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(sum, "", " ")
	t.Log(string(b))
}
