package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

func probe(h http.Handler, method, path, host, auth string) int {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestAdminOnLoopback(t *testing.T) {
	t.Parallel()
	var health Health
	h := newAdminServer(&health, "", slog.New(slog.DiscardHandler)).Handler
	for _, c := range []struct {
		method, path, host string
		ready              bool
		want               int
	}{
		{"GET", "/healthz", "127.0.0.1:9090", false, http.StatusOK},
		{"GET", "/readyz", "127.0.0.1:9090", false, http.StatusServiceUnavailable},
		{"GET", "/readyz", "127.0.0.1:9090", true, http.StatusOK},
		{"GET", "/readyz", "[::1]:9090", true, http.StatusOK},
		{"GET", "/readyz", "LocalHost", true, http.StatusOK},
		{"POST", "/healthz", "localhost", true, http.StatusMethodNotAllowed},
		{"GET", "/other", "localhost", true, http.StatusNotFound},
		{"GET", "/healthz", "evil.example", true, http.StatusForbidden}, // a name of theirs that points to 127.0.0.1
		{"GET", "/healthz", "localhost.evil.example:9090", true, http.StatusForbidden},
		{"GET", "/healthz", "", true, http.StatusForbidden},
	} {
		health.SetReady(c.ready)
		if got := probe(h, c.method, c.path, c.host, ""); got != c.want {
			t.Errorf("%s %s of %q, ready %v: got %d, want %d", c.method, c.path, c.host, c.ready, got, c.want)
		}
	}
}

func TestAdminToken(t *testing.T) {
	t.Parallel()
	var health Health
	h := newAdminServer(&health, "s3cret", slog.New(slog.DiscardHandler)).Handler
	for auth, want := range map[string]int{
		"": http.StatusUnauthorized, "s3cret": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized,
		"Bearer s3cre": http.StatusUnauthorized, "Basic s3cret": http.StatusUnauthorized, "Bearer s3cret": http.StatusOK,
	} {
		if got := probe(h, "GET", "/healthz", "gate.example:9090", auth); got != want {
			t.Errorf("%q: got %d, want %d", auth, got, want)
		}
	}
}

// TestAdminOrigin: no page of another site reads the listener through a visitor's browser, with or without a token.
func TestAdminOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header, value string
		want          int
	}{
		{"Origin", "http://localhost:9090", http.StatusOK},
		{"Origin", "http://LocalHost:9090", http.StatusOK},
		{"Origin", "http://evil.example", http.StatusForbidden},
		{"Origin", "http://localhost:9090.evil.example", http.StatusForbidden},
		{"Origin", "http://localhost:9091", http.StatusForbidden},
		{"Origin", "null", http.StatusForbidden},
		{"Origin", "", http.StatusForbidden},
		{"Origin", "http://[bad", http.StatusForbidden},
		{"Sec-Fetch-Site", "none", http.StatusOK},
		{"Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
	} {
		for _, token := range []string{"", "s3cret"} {
			r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
			r.Host = "localhost:9090"
			r.Header.Set(c.header, c.value)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			newAdminServer(new(Health), token, slog.New(slog.DiscardHandler)).Handler.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s: %q, token %q: got %d, want %d", c.header, c.value, token, w.Code, c.want)
			}
		}
	}
}
