package app

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/resilience"
)

// Health is what the admin listener says of the process.
type Health struct{ ready atomic.Bool }

// SetReady tells whether new requests are welcome.
func (h *Health) SetReady(ready bool) { h.ready.Store(ready) }

// adminConfig says what an admin listener shows, and to whom.
type adminConfig struct {
	health *Health
	status func() Status
	levels *resilience.Levels
	// metrics answers /metrics.
	metrics http.Handler
	// token is asked for by everything but probes; "" shows them nothing else.
	token string
	// loopback tells that the listener cannot be reached from other machines.
	loopback bool
	log      *slog.Logger
}

// admin answers /healthz, /readyz, /status, /levels and /metrics.
type admin struct {
	health   *Health
	loopback bool
	// sum is the SHA-256 of the token, nil if there is none.
	sum []byte
}

// listenAdmin binds the admin listener. Beyond loopback it wants a token.
func listenAdmin(ctx context.Context, address, token string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, usagef("admin: %q is no address to listen on; write one such as 127.0.0.1:9090", address)
	}
	if !resolved.IP.IsLoopback() && token == "" {
		return nil, usagef("admin: %s can be reached from other machines, and there is no token; "+
			"listen on 127.0.0.1:%d, or set HEADGATE_ADMIN_TOKEN", address, resolved.Port)
	}
	return Listen(ctx, "admin", resolved.String()) // what was judged, not what the name may mean by now
}

func newAdminServer(cfg adminConfig) *http.Server {
	a := &admin{health: cfg.health, loopback: cfg.loopback}
	if cfg.token != "" {
		sum := sha256.Sum256([]byte(cfg.token))
		a.sum = sum[:]
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.probe(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") }))
	mux.HandleFunc("GET /readyz", a.probe(a.ready))
	mux.HandleFunc("GET /status", a.secret(func(w http.ResponseWriter, _ *http.Request) { show(w, cfg.status()) }))
	mux.HandleFunc("GET /levels", a.secret(func(w http.ResponseWriter, _ *http.Request) { show(w, levelStatus(cfg.levels)) }))
	mux.HandleFunc("PUT /levels/{level}", a.secret(turnLevel(cfg.levels)))
	mux.HandleFunc("GET /metrics", a.secret(cfg.metrics.ServeHTTP))
	return &http.Server{
		Handler: a.guarded(mux), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(cfg.log.Handler(), slog.LevelWarn),
	}
}

func (a *admin) ready(w http.ResponseWriter, _ *http.Request) {
	if !a.health.ready.Load() {
		answer(w, http.StatusServiceUnavailable, "draining")
		return
	}
	answer(w, http.StatusOK, "ready")
}

// guarded turns away a browser that asks for a page of another origin, which says so in Origin.
func (a *admin) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			answer(w, http.StatusForbidden, "forbidden origin")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// probe answers whoever asks: probes have no place to keep a token, and what they are told is no secret. On loopback a page
// of another site that has its name point here is turned away by its Host all the same.
func (a *admin) probe(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.loopback && !isLoopbackHost(r.Host) && !a.knows(r) {
			answer(w, http.StatusForbidden, "forbidden host")
			return
		}
		next(w, r)
	}
}

// secret asks for the token. Without one there is nothing that opens it.
func (a *admin) secret(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.knows(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "unauthorized")
			return
		}
		next(w, r)
	}
}

// sameOrigin tells whether no browser asks, or one with a page of this listener itself.
func sameOrigin(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "none" || site == "same-origin"
}

func (a *admin) knows(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && a.sum != nil && subtle.ConstantTimeCompare(sum[:], a.sum) == 1
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func isLoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}

func answer(w http.ResponseWriter, status int, word string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
	}{word}) // a client that has gone away needs no answer
}
