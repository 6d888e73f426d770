package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate-io/headgate/resilience"
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
	h := adminOf(t, &health, "", true)
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
		{"GET", "/status", "localhost", true, http.StatusUnauthorized}, // there is no token that would open it
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

func adminOf(t *testing.T, health *Health, token string, loopback bool) http.Handler {
	t.Helper()
	levels := resilience.NewLevels(resilience.LevelsConfig{})
	t.Cleanup(func() { _ = levels.Close() })
	return newAdminServer(adminConfig{
		health: health, token: token, loopback: loopback, log: slog.New(slog.DiscardHandler), levels: levels,
		status:  func() Status { return Status{Policy: PolicyStatus{Name: "shop <&>"}} },
		metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") }),
	}).Handler
}

// TestAdminToken: probes need no token, whoever can reach them; everything else does, wherever it is.
func TestAdminToken(t *testing.T) {
	t.Parallel()
	const yes, no, host = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden
	var health Health
	health.SetReady(true)
	for _, c := range []struct {
		host, auth              string
		loopback                bool
		healthz, readyz, status int
	}{
		{"gate.example:9090", "", false, yes, yes, no},
		{"gate.example:9090", "Bearer s3cret", false, yes, yes, yes},
		{"gate.example:9090", "", true, host, host, no},
		{"gate.example:9090", "Bearer s3cret", true, yes, yes, yes},
		{"localhost:9090", "", true, yes, yes, no},
		{"localhost:9090", "s3cret", true, yes, yes, no},
		{"localhost:9090", "Bearer ", true, yes, yes, no},
		{"localhost:9090", "Bearer s3cre", true, yes, yes, no},
		{"localhost:9090", "Bearer s3cret2", true, yes, yes, no},
		{"localhost:9090", "Basic s3cret", true, yes, yes, no},
		{"localhost:9090", "Bearer", true, yes, yes, no},
		{"localhost:9090", "Bearer  s3cret", true, yes, yes, no},
		{"localhost:9090", "bearer s3cret", true, yes, yes, yes}, // a scheme has no case
		{"localhost:9090", "Bearer s3cret", true, yes, yes, yes},
	} {
		h := adminOf(t, &health, "s3cret", c.loopback)
		for path, want := range map[string]int{
			"/healthz": c.healthz, "/readyz": c.readyz, "/status": c.status, "/levels": c.status, "/metrics": c.status,
		} {
			if got := probe(h, "GET", path, c.host, c.auth); got != want {
				t.Errorf("%s of %s with %q, loopback %v: got %d, want %d", path, c.host, c.auth, c.loopback, got, want)
			}
		}
	}
	none := adminOf(t, &health, "", true)
	for _, auth := range []string{"", "Bearer ", "Bearer x"} {
		if got := probe(none, "GET", "/status", "localhost", auth); got != no {
			t.Errorf("without a token %q opens the status: %d", auth, got)
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
			adminOf(t, new(Health), token, true).ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s: %q, token %q: got %d, want %d", c.header, c.value, token, w.Code, c.want)
			}
		}
	}
}
