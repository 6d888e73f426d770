package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Schema returns a JSON Schema (draft 2020-12) of the document, for editors: fields, what their values look like, defaults
// and descriptions. Every policy that loads is valid by it; not every document that is valid by it loads, since names that
// must exist and fields that exclude each other are the decoder's business.
func Schema() ([]byte, error) {
	w := schemaWriter{defs: map[string]any{}}
	root := w.mapping(documentMapping)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "urn:headgate:policy:1"
	root["title"] = "Headgate policy"
	root["$defs"] = w.defs
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// object is a part of a schema.
type object = map[string]any

// schemaWriter turns the tables of fields into a schema. Each mapping is a definition, so that it stands there once.
type schemaWriter struct{ defs map[string]any }

// anyField stands in a table for fields with the author's names.
const anyField = "*"

func (w *schemaWriter) mapping(m mapping) object {
	properties := object{}
	required := []string{}
	out := object{"type": "object", "description": m.doc, "properties": properties, "additionalProperties": false}
	for i := range m.fields {
		f := &m.fields[i]
		if f.name == anyField {
			out["additionalProperties"] = w.field(f)
			continue
		}
		properties[f.name] = w.field(f)
		if f.required {
			required = append(required, f.name)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (w *schemaWriter) field(f *fieldSpec) object {
	out := w.form(f.form)
	out["description"] = f.doc
	if value, ok := f.form.literal(f.def); ok {
		out["default"] = value
	} else if f.def != "" {
		out["description"] = f.doc + " Default: " + f.def + "."
	}
	return out
}

// define adds the definition of a mapping and returns its name.
func (w *schemaWriter) define(m mapping) string {
	name := strings.ReplaceAll(m.name, " ", "-")
	if _, ok := w.defs[name]; !ok {
		w.defs[name] = nil // it is on its way: a mapping may hold itself
		w.defs[name] = w.mapping(m)
	}
	return name
}

func (w *schemaWriter) form(f form) object {
	switch f.kind {
	case formMapping:
		return object{"$ref": "#/$defs/" + w.define(f.mapping)}
	case formList:
		return w.list(f)
	case formEntries:
		return object{"type": "object", "maxProperties": f.most, "propertyNames": keyForm(f.key), "additionalProperties": w.form(*f.of)}
	case formInteger:
		return object{"type": "integer", "minimum": f.least, "maximum": f.most}
	case formBoolean:
		return object{"type": "boolean"}
	case formWord:
		return object{"enum": wordValues(f.words)}
	case formDuration:
		return object{"type": "string", "pattern": "^(?:" + durationPattern + ")$"}
	case formPercent:
		return object{"type": "string", "pattern": percentPattern}
	case formLimit:
		return object{"type": "string", "pattern": limitPattern(), "maxLength": 256}
	case formTime:
		return object{"type": "string", "pattern": timePattern}
	case formName:
		return object{"type": scalars(), "pattern": namePattern}
	}
	return object{"type": scalars(), "minLength": 1, "maxLength": maxText}
}

// scalars are what YAML makes of a single value without quotes.
func scalars() []string { return []string{"string", "number", "boolean"} }

func (w *schemaWriter) list(f form) object {
	items := w.form(*f.of)
	list := object{"type": "array", "items": items}
	if f.most > 0 {
		list["maxItems"] = f.most
	}
	if f.least > 0 {
		list["minItems"] = f.least
	}
	if f.single {
		return object{"anyOf": []any{list, items}}
	}
	return list
}

// keyForm is what the names of entries look like.
func keyForm(key string) object {
	switch key {
	case "path":
		return object{"pattern": "^/"}
	case "value":
		return object{"minLength": 1}
	}
	return object{"pattern": namePattern}
}

// wordValues are the words, and the numbers among them also as numbers: 1 and "1".
func wordValues(words []string) []any {
	var values []any
	for _, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			values = append(values, n)
		}
		values = append(values, word)
	}
	return values
}

// literal returns a default as a value, if it is one and not a description.
func (f form) literal(text string) (any, bool) {
	switch f.kind {
	case formInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case formBoolean:
		b, err := strconv.ParseBool(text)
		return b, err == nil
	case formWord:
		return text, slices.Contains(f.words, text)
	case formDuration:
		_, ok := parseDuration(text)
		return text, ok
	case formPercent:
		return text, strings.HasSuffix(text, "%")
	}
	return nil, false
}

// Patterns are written so that Go's and JavaScript's regular expressions read them alike. They accept everything that the
// decoder does, and a few values that it refuses for their size.
const (
	namePattern     = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`
	numberPattern   = `(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)`
	durationPattern = `[smhd]|[0-9]+d|[+]?(?:` + numberPattern + `(?:ns|us|µs|μs|ms|s|m|h))+`
	percentPattern  = `^[+]?` + numberPattern + `(?:[eE][+-]?[0-9]+)?%$`
	timePattern     = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$`
)

// limitPattern is what limit expressions look like.
func limitPattern() string {
	const (
		period = `(?:` + durationPattern + `|[mu]s|µs|0)`
		count  = `[0-9]+(?:\.[0-9]+)?`
		rate   = count + `/` + period
	)
	kinds := []string{
		`(?:token_bucket|gcra)\s+` + rate + `(?:\s+burst=[0-9]+)?`,
		`fixed_window\s+` + count + `/(?:` + period + `|hour|day|week|month)(?:\s+zone=\S+)?`,
		`sliding_log\s+` + rate,
		`sliding_window\s+` + rate + `(?:\s+cells=[0-9]+)?`,
		`leaky_bucket\s+` + rate + `(?:\s+(?:capacity=[0-9]+|max_wait=` + period + `))+`,
		`concurrency\s+[0-9]+\s+ttl=` + period,
	}
	return `^\s*(?:` + strings.Join(kinds, "|") + `)\s*$`
}
