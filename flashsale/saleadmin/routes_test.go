package saleadmin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestRoles asks for every endpoint in every role, and looks whether what was refused has changed anything.
func TestRoles(t *testing.T) {
	t.Parallel()
	r := opened(t)
	r.lax = true
	bodies := map[string]string{
		"/sales": sampleOrder, "/sales/{sale}/rate": `{"reason":"a test","rate":7}`, "/sales/~/match": why,
		"/sales/{sale}/skus/{sku}/top-up": `{"reason":"a test","units":7}`, "/sales/{sale}/skus/{sku}/withdraw": `{"reason":"a test","units":7}`,
		"/sales/{sale}/skus/{sku}/dead-letters/revive": `{"reason":"a test","ids":["1-0"]}`,
	}
	fill := strings.NewReplacer("{sale}", "eleven", "{sku}", "phone")
	for _, to := range (&api{}).routes() {
		path, body := fill.Replace(to.path), bodies[to.path]
		if to.method == http.MethodPost && body == "" {
			body = why
		}
		if strings.HasSuffix(path, "/story") {
			path += "?user=ann"
		}
		for role, want := range map[string]int{"": http.StatusUnauthorized, "nobody": http.StatusUnauthorized, "viewer": 0, "operator": 0, "admin": 0} {
			who, _ := ParseRole(role)
			if who > 0 && who < to.role {
				want = http.StatusForbidden
			}
			if want == 0 {
				continue // what may be done is done below, when nothing is compared any more
			}
			before := r.now()
			got := r.send(role, to.method, path, body, nil).is(want)
			if want == http.StatusUnauthorized && got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s says not how to authenticate", got.what)
			}
			if after := r.now(); after != before {
				t.Errorf("%s has changed something", got.what)
			}
		}
	}
	for _, to := range (&api{}).routes() {
		path, body := fill.Replace(to.path), bodies[to.path]
		if to.method == http.MethodPost && body == "" {
			body = why
		}
		if strings.HasSuffix(path, "/story") {
			path += "?user=ann"
		}
		for role := to.role; role <= Admin; role++ {
			got := r.send(role.String(), to.method, path, body, nil)
			if got.status == http.StatusUnauthorized || got.status == http.StatusForbidden || to.method == http.MethodGet && got.status != http.StatusOK {
				t.Errorf("%s: %d %s", got.what, got.status, got.body)
			}
		}
	}
}

// TestRoutesAreDocumented: the document has each endpoint, with its role, and no other.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	doc := document.Load(t)
	want := map[string]string{}
	for _, to := range (&api{}).routes() {
		want[to.method+" "+to.path] = to.role.String()
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if role, ok := want[method+" "+path]; !ok || op.Extensions["x-role"] != role {
				t.Errorf("%s %s is documented for %v; it is for %q", method, path, op.Extensions["x-role"], role)
			}
			delete(want, method+" "+path)
		}
	}
	if len(want) > 0 {
		t.Errorf("not documented: %v", want)
	}
}

// TestSchemasAreTheTypes: each document has the fields that the document of the API describes, and those are needed that are always there.
func TestSchemasAreTheTypes(t *testing.T) {
	t.Parallel()
	doc := document.Load(t)
	seen := map[reflect.Type]bool{}
	var check func(kind reflect.Type)
	check = func(kind reflect.Type) {
		switch kind.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(kind.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[kind] || kind == reflect.TypeFor[time.Time]() {
			return
		}
		seen[kind] = true
		schema := doc.Components.Schemas[kind.Name()]
		if schema == nil {
			t.Errorf("%s is not described", kind.Name())
			return
		}
		fields := map[string]bool{}
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields[name] = true
			if schema.Value.Properties[name] == nil {
				t.Errorf("%s.%s is not described", kind.Name(), name)
			}
			needed := false
			for _, one := range schema.Value.Required {
				needed = needed || one == name
			}
			if needed == strings.Contains(options, "omitempty") {
				t.Errorf("%s.%s: needed %v, with the tag %s", kind.Name(), name, needed, field.Tag)
			}
			check(field.Type)
		}
		for name := range schema.Value.Properties {
			if !fields[name] {
				t.Errorf("%s.%s is described and not there", kind.Name(), name)
			}
		}
	}
	for _, one := range []any{
		List{}, Created{}, Sale{}, Change{}, Preflight{}, Report{}, Story{}, DeadLetters{}, Revived{}, Dropped{}, Match{}, Plans{}, Problem{},
		CreateOrder{}, DropOrder{}, OpenOrder{}, StatusOrder{}, RateOrder{}, UnitsOrder{}, ReviveOrder{}, MatchOrder{},
	} {
		check(reflect.TypeOf(one))
	}
	if len(seen) != len(doc.Components.Schemas) {
		t.Errorf("%d types and %d descriptions", len(seen), len(doc.Components.Schemas))
	}
}

// TestDocumentIsServed: it is the same that the answers are held to.
func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	got := newRig(t).get("viewer", "/sales/~/openapi.json").is(http.StatusOK)
	if !bytes.Equal(got.body, openAPIDocument) || !json.Valid(got.body) {
		t.Error("another document is served")
	}
}
