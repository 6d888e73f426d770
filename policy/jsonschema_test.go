package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	headgate "github.com/headgate-io/headgate"
)

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("urn:headgate:policy:1", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:headgate:policy:1")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads a document as an editor does.
func asJSON(t testing.TB, text []byte) (any, error) {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
}

// TestSchemaAccepts: what loads is valid by the schema.
func TestSchemaAccepts(t *testing.T) {
	s := compiledSchema(t)
	var files []string
	for _, pattern := range []string{"testdata/*.good.yaml", "../examples/*/*.yaml", "../examples/*/*/*.yaml", "lint/testdata/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 30 {
		t.Fatalf("only %d policies", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := asJSON(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// beyondSchema are the fixtures whose faults are none of form: of YAML itself, of names that must exist, of fields that
// exclude each other.
func beyondSchema() []string {
	return []string{"anchors", "control-character", "default-passes", "dimension-cel", "empty-lines", "forgeable", "list-values", "lists-none", "not-utf8", "response-empty", "template", "together",
		"too-many-limits-everywhere", "trusted-without-proxies", "two-documents"}
}

// TestSchemaRefuses: a fixture with a fault of form is refused by the schema as well.
func TestSchemaRefuses(t *testing.T) {
	s := compiledSchema(t)
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".bad.yaml")
		doc, err := asJSON(t, text)
		if err == nil {
			err = s.Validate(doc)
		}
		if beyond := slices.Contains(beyondSchema(), name); (err == nil) != beyond {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// site is a mapping of the document, and a document that holds it.
type site struct {
	mapping mapping
	// wrap puts the mapping's fields into a document.
	wrap func(fields object) object
}

// sites are all mappings that the document can hold.
func sites() []site {
	var all []site
	seen := map[string]bool{}
	var visit func(m mapping, wrap func(object) object)
	visit = func(m mapping, wrap func(object) object) {
		if seen[m.name] {
			return
		}
		seen[m.name] = true
		all = append(all, site{m, wrap})
		for _, f := range m.fields {
			inner, nest := f.form, func(v any) any { return v }
			for inner.kind == formList || inner.kind == formEntries {
				outer, before := inner, nest
				nest = func(v any) any {
					if outer.kind == formList {
						return before([]any{v})
					}
					return before(object{sampleKey(outer.key): v})
				}
				inner = *inner.of
			}
			if inner.kind == formMapping {
				visit(inner.mapping, func(fields object) object { return wrap(holding(m, fieldName(f.name), nest(fields))) })
			}
		}
	}
	visit(documentMapping, func(fields object) object { return fields })
	return all
}

func fieldName(name string) string {
	if name == anyField {
		return "method"
	}
	return name
}

// beside are the fields without which the decoder does not look at a field.
func beside(mapping, field string) object {
	switch mapping + "." + field {
	case "dimension.trusted":
		return object{"header": "X-A"}
	case "dimension.signed":
		return object{"cookie": "a"}
	case "dimension.cache", "dimension.timeout", "dimension.default":
		return object{"redis": object{"hash": "a", "field": "b"}}
	case "list.dimension":
		return object{"values": []any{"GET"}}
	case "list.values":
		return object{"dimension": "method"}
	case "schedule entry.zone":
		return object{"daily": "19:00-20:00"}
	case "schedule entry.from":
		return object{"to": "2026-11-11T00:00:00+08:00"}
	case "schedule entry.to":
		return object{"from": "2026-11-11T00:00:00+08:00"}
	case "response.template":
		return object{"style": "template"}
	case "on_deny.max_wait":
		return object{"action": "wait"}
	case "on_deny.max_age", "on_deny.public":
		return object{"action": "stale"}
	case "on_deny.status", "on_deny.content_type", "on_deny.body", "on_deny.file":
		return object{"action": "fallback"}
	}
	return object{}
}

// holding returns the fields of a mapping with one of this value.
func holding(m mapping, field string, value any) object {
	fields := beside(m.name, strings.TrimSuffix(field, misspelt))
	fields[field] = value
	return fields
}

// misspelt is what is added to the name of a field to misspell it.
const misspelt = "x"

func sampleKey(key string) string {
	if key == "path" {
		return "/x"
	}
	return "a"
}

// sample is a value of a form.
func sample(f form) any {
	switch f.kind {
	case formInteger:
		return f.most
	case formBoolean:
		return true
	case formDuration:
		return "1h30m"
	case formPercent:
		return "12.5%"
	case formWord:
		return f.words[len(f.words)-1]
	case formList:
		return []any{sample(*f.of)}
	case formEntries:
		return object{sampleKey(f.key): sample(*f.of)}
	case formMapping:
		first := f.mapping.fields[0]
		return object{fieldName(first.name): sample(first.form)}
	case formLimit:
		return "token_bucket 10/s"
	case formTime:
		return "2026-11-11T00:00:00+08:00"
	}
	return "x"
}

// verdictOf returns what the schema and the decoder say of a document.
func verdictOf(t *testing.T, s *jsonschema.Schema, doc object) (schema, decoder string) {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(value); err != nil {
		schema = err.Error()
	}
	_, err = Parse("p", text, ParseConfig{Files: os.DirFS("testdata")})
	var bad *Error
	if errors.As(err, &bad) {
		decoder = err.Error()
	}
	return schema, decoder
}

// TestSchemaKnowsTheFields puts every field of every table into a document, well and misspelt, and of every wrong kind.
func TestSchemaKnowsTheFields(t *testing.T) {
	s := compiledSchema(t)
	fields := 0
	for _, p := range sites() {
		for _, f := range p.mapping.fields {
			fields++
			t.Run(p.mapping.name+"."+f.name, func(t *testing.T) { p.try(t, s, f) })
		}
	}
	if fields < 80 {
		t.Errorf("only %d fields", fields)
	}
}

// try puts a field into a document: well, misspelt, and of every wrong kind.
func (p site) try(t *testing.T, s *jsonschema.Schema, f fieldSpec) {
	name := fieldName(f.name)
	schema, decoder := verdictOf(t, s, p.wrap(holding(p.mapping, name, sample(f.form))))
	if strings.Contains(schema, "additional properties") || strings.Contains(decoder, "is unknown; nearest") {
		t.Errorf("it is not known:\n%s\n%s", schema, decoder)
	}
	if strings.Contains(schema, "want ") || strings.Contains(schema, "does not match") || wrongKind.MatchString(decoder) {
		t.Errorf("with %v:\n%s\n%s", sample(f.form), schema, decoder)
	}
	if !p.mapping.has(anyField) {
		schema, decoder = verdictOf(t, s, p.wrap(holding(p.mapping, name+misspelt, sample(f.form))))
		if !strings.Contains(schema, "'"+name+misspelt+"' not allowed") || !strings.Contains(decoder, fmt.Sprintf("field %q is unknown", name+misspelt)) {
			t.Errorf("misspelt:\n%s\n%s", schema, decoder)
		}
	}
	for _, wrong := range wrongKinds(f.form) {
		schema, decoder = verdictOf(t, s, p.wrap(holding(p.mapping, name, wrong)))
		if schema == "" || !strings.Contains(decoder, "must be") {
			t.Errorf("it is %v:\n%s\n%s", wrong, schema, decoder)
		}
	}
}

// wrongKind is what the decoder says of a value of another kind.
var wrongKind = regexp.MustCompile("must be (a list|a mapping|a single value|a duration|a percentage|a whole number|true or false)")

// wrongKinds are values that a form cannot be.
func wrongKinds(f form) []any {
	switch f.kind {
	case formMapping, formEntries:
		return []any{"x", []any{"x"}}
	case formList:
		return []any{object{"x": "y"}}
	case formBoolean, formInteger, formDuration, formPercent:
		return []any{"x", object{"x": "y"}, []any{"x"}}
	}
	return []any{object{"x": "y"}, []any{"x"}}
}

// TestSchemaKnowsTheLimits: what ParseLimit reads matches the pattern, and what is plainly none does not.
func TestSchemaKnowsTheLimits(t *testing.T) {
	s := compiledSchema(t)
	for text, want := range map[string]bool{
		"token_bucket 100/s burst=200": true, "gcra 0.2/s": true, "token_bucket  10/1h30m": true, " token_bucket 1/7d ": true, "token_bucket 10/ms": true,
		"fixed_window 1000/1m": true, "fixed_window 20000/day zone=Asia/Shanghai": true, "fixed_window 0/month": true,
		"sliding_log 5/5m": true, "sliding_window 600/1m cells=6": true, "leaky_bucket 10/s max_wait=2s capacity=20": true,
		"leaky_bucket 10/s max_wait=0s": true, "concurrency 50 ttl=60s": true, "sliding_log 5/1.5s": true,
		"sliding_log 5": false, "token_bukket 5/s": false, "token_bucket 5/s bursts=3": false, "concurrency 50": false, "leaky_bucket 10/s": false,
		"fixed_window 10/year": false, "sliding_log 5/5m burst=3": false, "": false, "token_bucket 1/s, token_bucket 2/s": false,
	} {
		if _, err := headgate.ParseLimit(text); (err == nil) != want {
			t.Errorf("%q: ParseLimit says %v", text, err)
		}
		schema, _ := verdictOf(t, s, object{"version": 1, "rules": []any{object{"name": "a", "limits": []any{text}}}})
		if (schema == "") != want {
			t.Errorf("%q: the schema says %s", text, schema)
		}
	}
}
