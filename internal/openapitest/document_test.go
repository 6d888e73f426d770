package openapitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const text = `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{
"/things/new":{"post":{"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}},
 "responses":{"201":{"description":"made"}}}},
"/things/{id}":{"get":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string","maxLength":3}}],
 "responses":{"200":{"description":"it","content":{"application/json":{"schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}}},
 "404":{"description":"none"}}}}}}`

// told is a test that only remembers what it was told.
type told struct {
	testing.TB
	errors []string
}

// Helper implements testing.TB.
func (*told) Helper() {}

// Errorf implements testing.TB.
func (d *told) Errorf(format string, args ...any) {
	d.errors = append(d.errors, fmt.Sprintf(format, args...))
}

func TestConforms(t *testing.T) {
	t.Parallel()
	doc := New([]byte(text), "/v1")
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		answer             string
		known              bool
		says               string // "": it conforms
	}{
		"as it is told":                {"GET", "/v1/things/a", "", 200, `{"id":"a"}`, true, ""},
		"HEAD is GET":                  {"HEAD", "/v1/things/a", "", 404, "", true, ""},
		"a member is missing":          {"GET", "/v1/things/a", "", 200, `{}`, true, "not what the document says"},
		"a status it does not have":    {"GET", "/v1/things/a", "", 418, "", true, "not what the document says"},
		"a parameter it does not have": {"GET", "/v1/things/abcd", "", 200, `{"id":"abcd"}`, true, "does not allow it"},
		"refused, as it must be":       {"GET", "/v1/things/abcd", "", 404, "", true, ""},
		"what is constant comes first": {"POST", "/v1/things/new", `{"name":"x"}`, 201, "", true, ""},
		"a body it does not have":      {"POST", "/v1/things/new", `{}`, 201, "", true, "does not allow it"},
		"no body":                      {"POST", "/v1/things/new", "", 201, "", true, "does not allow it"},
		"another method":               {"DELETE", "/v1/things/a", "", 405, "", false, ""},
		"another path":                 {"GET", "/v1/things/a/b", "", 404, "", false, ""},
		"an empty id":                  {"GET", "/v1/things/", "", 404, "", false, ""},
		"another prefix":               {"GET", "/v2/things/a", "", 404, "", false, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.status)
		_, _ = w.WriteString(c.answer)
		d := &told{}
		known := doc.Conforms(d, r, c.body, w)
		if got := strings.Join(d.errors, "; "); known != c.known || (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: known %v, %q; want %v, %q", name, known, got, c.known, c.says)
		}
	}
}
