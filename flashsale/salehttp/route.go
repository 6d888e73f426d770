package salehttp

import (
	"net/http"
	"slices"
	"strings"
)

// route is one path and its methods.
type route struct {
	// path has {sale}, {sku} and {rid} in place of what is variable, as in the OpenAPI document.
	path  string
	parts []string
	// methods have HEAD where they have GET.
	methods map[string]func(*answer)
	allow   string
	// identity tells that it is for those who are signed in.
	identity bool
}

const reservations = "/{sale}/skus/{sku}/reservations"

// table is all there is. "~" cannot be in an id, so that nothing clashes.
func (h *Handler) table() []route {
	const get, post = http.MethodGet, http.MethodPost
	all := []route{
		{path: "", methods: on{get: (*answer).list}},
		{path: "/~/openapi.json", methods: on{get: (*answer).document}},
		{path: "/~/page.js", methods: on{get: (*answer).script}},
		{path: "/~/webhook", methods: on{post: (*answer).webhook}},
		{path: "/{sale}", methods: on{get: (*answer).show}},
		{path: "/{sale}/orders", methods: on{get: (*answer).orders}, identity: true},
		{path: "/{sale}/skus/{sku}/token", methods: on{post: (*answer).token}, identity: true},
		{path: reservations, methods: on{post: (*answer).reserve}, identity: true},
		{path: reservations + "/{rid}", methods: on{get: (*answer).result}, identity: true},
		{path: reservations + "/{rid}/events", methods: on{get: (*answer).events}}, // a ticket will do
		{path: reservations + "/{rid}/ticket", methods: on{post: (*answer).ticket}, identity: true},
		{path: reservations + "/{rid}/pay", methods: on{post: (*answer).pay}, identity: true},
		{path: reservations + "/{rid}/cancel", methods: on{post: (*answer).cancel}, identity: true},
	}
	for i := range all {
		all[i].finish()
	}
	return all
}

type on = map[string]func(*answer)

func (r *route) finish() {
	r.path = Prefix + r.path
	r.parts = strings.Split(r.path, "/")
	if run, ok := r.methods[http.MethodGet]; ok {
		r.methods[http.MethodHead] = run
	}
	names := []string{http.MethodOptions}
	for name := range r.methods {
		names = append(names, name)
	}
	slices.Sort(names)
	r.allow = strings.Join(names, ", ")
}

// find returns the route of a path and puts what is variable into a; nil if there is none. The path is matched as it is encoded: an id has
// nothing to encode, and what limits have judged as one segment is not two here.
func (h *Handler) find(path string, a *answer) *route {
	parts := strings.Split(path, "/")
	for i := range h.routes {
		if r := &h.routes[i]; r.match(parts, a) {
			return r
		}
	}
	return nil
}

func (r *route) match(parts []string, a *answer) bool {
	if len(parts) != len(r.parts) {
		return false
	}
	for i, want := range r.parts {
		if want != parts[i] && (want == "" || want[0] != '{' || parts[i] == "" || parts[i] == "~") {
			return false
		}
	}
	for i, want := range r.parts {
		switch want {
		case "{sale}":
			a.key.Sale = parts[i]
		case "{sku}":
			a.key.SKU = parts[i]
		case "{rid}":
			a.rid = parts[i]
		}
	}
	return true
}
