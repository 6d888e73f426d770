package saleadmin

import (
	"net/http"
	"time"
)

// slowFor is how long a slow request may take, and within which its answer must have been taken.
const slowFor = 5 * time.Minute

// route is an endpoint. Everything that changes something is a POST.
type route struct {
	method, path string
	role         Role
	slow         bool
	serve        func(*request) error
}

func (a *api) routes() []route {
	const sale, sku = Prefix + "/{sale}", Prefix + "/{sale}/skus/{sku}"
	return []route{
		{"GET", Prefix, Viewer, false, a.list},
		{"GET", Prefix + "/~/openapi.json", Viewer, false, a.openAPI},
		{"GET", sale, Viewer, false, a.show},
		{"GET", sale + "/preflight", Viewer, true, a.preflight},
		{"GET", sale + "/report", Viewer, true, a.report},
		{"GET", sale + "/story", Viewer, true, a.story},
		{"GET", sale + "/rebuild", Viewer, true, a.planRebuild},
		{"GET", sku + "/dead-letters", Viewer, false, a.deadLetters},

		{"POST", sale + "/open", Operator, true, a.open},
		{"POST", sale + "/pause", Operator, false, a.pause},
		{"POST", sale + "/resume", Operator, false, a.resume},
		{"POST", sale + "/drain", Operator, false, a.drain},
		{"POST", sale + "/close", Operator, false, a.close},
		{"POST", sale + "/rate", Operator, false, a.rate},
		{"POST", sku + "/dead-letters/revive", Operator, false, a.revive},
		{"POST", Prefix + "/~/match", Operator, true, a.match},

		{"POST", Prefix, Admin, false, a.create},
		{"POST", sale + "/drop", Admin, false, a.drop},
		{"POST", sku + "/top-up", Admin, false, a.topUp},
		{"POST", sku + "/withdraw", Admin, false, a.withdraw},
		{"POST", sale + "/rebuild", Admin, true, a.rebuild},
	}
}

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	for _, one := range a.routes() {
		mux.HandleFunc(one.method+" "+one.path, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, &one) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			a.nowhere(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// nowhere answers what no route is for, with what the mux would say in a document like all others.
func (a *api) nowhere(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	if _, ok := a.cfg.Actor(r); !ok {
		unauthorized(w)
		return
	}
	said := &headerOnly{header: http.Header{}}
	mux.ServeHTTP(said, r)
	if said.status != http.StatusMethodNotAllowed {
		(&Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is nothing at this path; see " + Prefix + "/~/openapi.json"}).Write(w)
		return
	}
	w.Header().Set("Allow", said.header.Get("Allow"))
	(&Problem{Status: said.status, Code: "method_not_allowed", Detail: "this path takes " + said.header.Get("Allow")}).Write(w)
}

// headerOnly keeps what would be answered.
type headerOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (h *headerOnly) Header() http.Header { return h.header }

// Write implements http.ResponseWriter.
func (h *headerOnly) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (h *headerOnly) WriteHeader(status int) { h.status = status }

// serve lets in who may, and writes the error if there is one.
func (a *api) serve(w http.ResponseWriter, r *http.Request, to *route) {
	actor, ok := a.cfg.Actor(r)
	if !ok {
		unauthorized(w)
		return
	}
	q := &request{api: a, w: w, r: r, actor: actor}
	if actor.Role < to.role {
		q.fail(&Problem{
			Status: http.StatusForbidden, Code: "forbidden",
			Detail: "this needs the role " + to.role.String() + ", and " + actor.Name + " has the role " + actor.Role.String(),
		})
		return
	}
	if to.slow && !q.enterSlow() {
		q.fail(&Problem{
			Status: http.StatusServiceUnavailable, Code: "busy", RetryAfter: 5,
			Detail: "as many reports, checks and rebuilds are under way as may be at a time; ask again",
		})
		return
	}
	if to.slow {
		defer func() { <-a.slow }()
	}
	if err := to.serve(q); err != nil {
		q.fail(problemOf(err))
	}
}

// enterSlow takes one of the places for slow requests, and gives the answer the time that it may need.
func (q *request) enterSlow() bool {
	select {
	case q.slow <- struct{}{}:
	default:
		return false
	}
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(slowFor)) // one that cannot set it has none that matters
	return true
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	(&Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "a bearer token that is known here is needed"}).Write(w)
}
