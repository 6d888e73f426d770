package salehttp

import (
	_ "embed"

	"github.com/headgate-io/headgate/flashsale/salehttp/page"
)

// openAPI is the document of all routes, in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPI []byte

// document is GET …/~/openapi.json.
func (a *answer) document() {
	a.cacheable("application/json", "public, max-age=300", a.h.documentTag, openAPI)
}

// script is GET …/~/page.js.
func (a *answer) script() {
	a.cacheable("text/javascript; charset=utf-8", "public, max-age=300", a.h.scriptTag, []byte(page.Script()))
}
