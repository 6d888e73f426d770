// Package openapitest holds what a handler answers to the OpenAPI document that tells of it.
package openapitest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Document is an OpenAPI document. It is safe for concurrent use.
type Document struct {
	load   func() (*openapi3.T, error)
	prefix string
}

// New takes the text of a document, and what stands before its paths in those of requests.
func New(text []byte, prefix string) *Document {
	return &Document{prefix: prefix, load: sync.OnceValues(func() (*openapi3.T, error) {
		doc, err := openapi3.NewLoader().LoadFromData(text)
		if err == nil {
			err = doc.Validate(context.Background())
		}
		return doc, err
	})}
}

// Load reads the document, once, and ends the test if it is none.
func (d *Document) Load(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := d.load()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Operation returns what the document has of a method at one of its paths, nil if it has nothing. HEAD is what GET is.
func (d *Document) Operation(t testing.TB, path, method string) *openapi3.Operation {
	t.Helper()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	item := d.Load(t).Paths.Value(path)
	if item == nil {
		return nil
	}
	return item.GetOperation(method)
}

// Conforms fails the test if an answer is not what the document says, or if a request with this body was not refused, and the document
// does not allow it. It returns whether the document knows of such a request at all. t.Fatal is not called but for a document that is
// none: a server's goroutine may call it.
func (d *Document) Conforms(t testing.TB, r *http.Request, body string, got *httptest.ResponseRecorder) (known bool) {
	t.Helper()
	route, params := d.find(t, r)
	if route == nil {
		return false
	}
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body, r.ContentLength = nil, int64(len(body))
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if got.Code < 300 && r.Method != http.MethodHead {
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			t.Errorf("%s %s is answered %d, and the document does not allow it: %v", r.Method, r.URL.Path, got.Code, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.Code, Header: got.Header(), Options: in.Options}
	out.SetBodyBytes(got.Body.Bytes())
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		t.Errorf("the answer %d %s to %s %s is not what the document says: %v", got.Code, got.Body.Bytes(), r.Method, r.URL.Path, err)
	}
	return true
}

// find returns the operation that a request is for, with what is variable in its path.
func (d *Document) find(t testing.TB, r *http.Request) (*routers.Route, map[string]string) {
	t.Helper()
	doc := d.Load(t)
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), d.prefix)
	if !ok {
		return nil, nil
	}
	for _, pattern := range append([]string{path}, doc.Paths.InMatchingOrder()...) {
		params, ok := match(pattern, path)
		if operation := d.Operation(t, pattern, r.Method); ok && operation != nil {
			return &routers.Route{Spec: doc, Path: pattern, PathItem: doc.Paths.Value(pattern), Method: r.Method, Operation: operation}, params
		}
	}
	return nil, nil
}

// match compares a path with one of the document, as it is encoded: an id has nothing to encode.
func match(pattern, path string) (params map[string]string, ok bool) {
	want, parts := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(parts) {
		return nil, false
	}
	params = map[string]string{}
	for i, name := range want {
		switch inner, variable := strings.CutPrefix(name, "{"); {
		case variable && parts[i] != "":
			params[strings.TrimSuffix(inner, "}")] = parts[i]
		case name != parts[i]:
			return nil, false
		}
	}
	return params, true
}
