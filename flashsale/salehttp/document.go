package salehttp

import _ "embed"

// openAPI is the document of all routes, in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPI []byte

// document is GET …/~/openapi.json.
func (a *answer) document() {
	a.cacheable("application/json", "public, max-age=300", a.h.documentTag, openAPI)
}
