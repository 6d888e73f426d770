package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
	"github.com/headgate-io/headgate/resilience"
)

// Health is what the admin listener says of the process.
type Health struct{ state atomic.Int32 }

// The states of Health; it begins with draining, which nothing follows once the process drains.
const (
	draining int32 = iota
	starting
	ready
)

// SetReady tells whether new requests are welcome.
func (h *Health) SetReady(welcome bool) {
	if welcome {
		h.state.Store(ready)
		return
	}
	h.state.Store(draining)
}

// SetStarting tells that new requests will be welcome, unless SetReady says that they are not: see started.
func (h *Health) SetStarting() { h.state.Store(starting) }

// started tells that new requests are welcome now, if they were to be.
func (h *Health) started() { h.state.CompareAndSwap(starting, ready) }

// Ready tells whether they are.
func (h *Health) Ready() bool { return h.state.Load() == ready }

// adminConfig says what an admin listener shows, and to whom.
type adminConfig struct {
	health *Health
	status func() Status
	levels *resilience.Levels
	// metrics answers /metrics.
	metrics http.Handler
	// sales answers what is under /sales, to whom AdminActor names; nil if nothing is sold here.
	sales http.Handler
	// token, of role admin, or one of the file tokens is asked for by everything but probes; with neither they are shown nothing else.
	token, tokens string
	// loopback tells that the listener cannot be reached from other machines.
	loopback bool
	log      *slog.Logger
}

// admin answers /healthz, /readyz, /status, /levels, /metrics and /sales.
type admin struct {
	health   *Health
	loopback bool
	tokens   *adminTokens
}

// listenAdmin binds the admin listener. Beyond loopback it wants a token, or a file of them.
func listenAdmin(ctx context.Context, address, token, tokens string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, usagef("admin: %q is no address to listen on; write one such as 127.0.0.1:9090", address)
	}
	if !resolved.IP.IsLoopback() && token == "" && tokens == "" {
		return nil, usagef("admin: %s can be reached from other machines, and there is no token; "+
			"listen on 127.0.0.1:%d, or set HEADGATE_ADMIN_TOKEN or HEADGATE_ADMIN_TOKENS", address, resolved.Port)
	}
	return Listen(ctx, "admin", resolved.String()) // what was judged, not what the name may mean by now
}

func newAdminServer(cfg adminConfig) *http.Server {
	a := &admin{health: cfg.health, loopback: cfg.loopback, tokens: newAdminTokens(cfg.token, cfg.tokens, cfg.log)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.probe(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") }))
	mux.HandleFunc("GET /readyz", a.probe(a.ready))
	mux.HandleFunc("GET /status", a.secret(saleadmin.Viewer, func(w http.ResponseWriter, _ *http.Request) { show(w, cfg.status()) }))
	mux.HandleFunc("GET /levels", a.secret(saleadmin.Viewer, func(w http.ResponseWriter, _ *http.Request) { show(w, levelStatus(cfg.levels)) }))
	mux.HandleFunc("PUT /levels/{level}", a.secret(saleadmin.Operator, turnLevel(cfg.levels)))
	mux.HandleFunc("GET /metrics", a.secret(saleadmin.Viewer, cfg.metrics.ServeHTTP))
	if cfg.sales != nil {
		sales := a.secret(saleadmin.Viewer, cfg.sales.ServeHTTP) // what needs a higher role looks at that itself
		mux.HandleFunc("/sales", sales)
		mux.HandleFunc("/sales/", sales)
	}
	return &http.Server{
		Handler: a.guarded(mux), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(cfg.log.Handler(), slog.LevelWarn),
	}
}

func (a *admin) ready(w http.ResponseWriter, _ *http.Request) {
	switch a.health.state.Load() {
	case ready:
		answer(w, http.StatusOK, "ready")
	case starting:
		answer(w, http.StatusServiceUnavailable, "starting")
	default:
		answer(w, http.StatusServiceUnavailable, "draining")
	}
}

// guarded turns away a browser that asks for a page of another origin, which says so in Origin.
func (a *admin) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			refuse(w, r, "forbidden origin", &saleadmin.Problem{
				Status: http.StatusForbidden, Code: "cross_origin", Detail: "the request comes from a page of another origin",
			})
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

// secret asks for a token of at least this role. Without one there is nothing that opens it.
func (a *admin) secret(role saleadmin.Role, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch actor, ok := a.tokens.who(r); {
		case !ok:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, "unauthorized", &saleadmin.Problem{
				Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "a bearer token that is known here is needed",
			})
		case actor.Role < role:
			answer(w, http.StatusForbidden, "this needs the role "+role.String()+", and this token has the role "+actor.Role.String())
		default:
			next(w, r.WithContext(withActor(r.Context(), actor)))
		}
	}
}

// refuse answers who may not come in: with a word, and under /sales with a document like all others there.
func refuse(w http.ResponseWriter, r *http.Request, word string, p *saleadmin.Problem) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // else the answer waits for the rest of a body that nobody reads
	}
	if r.URL.Path == saleadmin.Prefix || strings.HasPrefix(r.URL.Path, saleadmin.Prefix+"/") {
		p.Write(w)
		return
	}
	answer(w, p.Status, word)
}

// sameOrigin tells whether no browser asks, or one with a page of this listener itself.
func sameOrigin(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "" && site != "none" && site != "same-origin" {
			return false
		}
	}
	return true
}

func (a *admin) knows(r *http.Request) bool {
	_, ok := a.tokens.who(r)
	return ok
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
