package salehttp

import (
	"net/http"
	"slices"
)

const (
	// allowedHeaders are what pages of other origins may send, exposedHeaders what they may read.
	allowedHeaders = "Authorization, Content-Type, Last-Event-ID"
	exposedHeaders = "Headgate-Id, Location, RateLimit, RateLimit-Policy, Retry-After"
)

// allowOrigin lets a page of a configured origin read the answer. No other origin is named, and never "*".
func (a *answer) allowOrigin() {
	if len(a.h.cfg.Origins) == 0 {
		return
	}
	header := a.w.Header()
	header.Add("Vary", "Origin")
	origin := a.r.Header["Origin"]
	if len(origin) != 1 || !slices.Contains(a.h.cfg.Origins, origin[0]) {
		return
	}
	header.Set("Access-Control-Allow-Origin", origin[0])
	header.Set("Access-Control-Allow-Credentials", "true")
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
}

// options answers which methods there are, and a preflight of a configured origin what its pages may send.
func (a *answer) options(found *route) {
	header := a.w.Header()
	header.Set("Allow", found.allow)
	if header.Get("Access-Control-Allow-Origin") != "" && a.r.Header.Get("Access-Control-Request-Method") != "" {
		header.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
		header.Set("Access-Control-Allow-Methods", found.allow)
		header.Set("Access-Control-Allow-Headers", allowedHeaders)
		header.Set("Access-Control-Max-Age", "600")
	}
	a.status(http.StatusNoContent)
}
