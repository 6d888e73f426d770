package salehttp

import _ "embed"

// openAPI is the document of all routes, in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPI []byte

// openAPITag is made when the process starts, of what is part of it.
var openAPITag = entityTag(openAPI)

// document is GET …/~/openapi.json.
func (a *answer) document() {
	a.cacheable("application/json", "public, max-age=300", openAPITag, openAPI)
}
