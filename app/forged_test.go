package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestForgedTrailer: what the policy believes from trusted proxies only does not reach the service after the body either.
func TestForgedTrailer(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %s", r.Trailer.Get("X-User-Id"), r.Trailer.Get("X-Sum"))
	}))
	defer service.Close()
	for proxies, want := range map[string]string{"10.0.0.0/8": " 42", "127.0.0.0/8": "admin 42"} {
		r := start(t, ServeConfig{Policy: writePolicy(t, strings.Replace(twoAnHour, "10.0.0.0/8", proxies, 1)), Upstreams: []string{service.URL}})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, io.NopCloser(strings.NewReader("body")))
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Trailer = http.Header{"X-User-Id": {"admin"}, "X-Sum": {"42"}}
		res, err := (&http.Client{Timeout: ample}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("with %s trusted the service got %q, want %q; %v", proxies, body, want, err)
		}
		r.end(t)
	}
}
