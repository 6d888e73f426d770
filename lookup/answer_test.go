package lookup

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzJSONValue compares with a walk through the whole decoded document.
func FuzzJSONValue(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"tier":"vip"}`, "tier"}, {`{"a":{"b":[1,2,{"c":true}]}}`, "a.b.2.c"}, {`{"a":1,"a":{"b":2}}`, "a.b"}, {`{"":{"":0}}`, "."},
		{`[[],"\ud800",1e999]`, "2"}, {` null `, "x"}, {`{"a":`, "a"}, {`"x"`, ""}, {"[\"\xff\"]", "0"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, doc, path string) {
		value, found, err := jsonValue([]byte(doc), path)
		if err != nil && (found || value != "") || !found && value != "" {
			t.Fatalf("%q, %v, %v", value, found, err)
		}
		if utf8.ValidString(doc) && !utf8.ValidString(value) {
			t.Fatalf("%q is no UTF-8", value)
		}
		want, wantFound, wantOK := walk(doc, path)
		if value != want || found != wantFound || (err == nil) != wantOK {
			t.Fatalf("%q in %q: got %q, %v, %v, want %q, %v, %v", path, doc, value, found, err, want, wantFound, wantOK)
		}
	})
}

// walk is the reference: it decodes everything and goes down by type.
func walk(doc, path string) (value string, found, ok bool) {
	if !json.Valid([]byte(doc)) {
		return "", false, false
	}
	d := json.NewDecoder(bytes.NewReader([]byte(doc)))
	d.UseNumber()
	var at any
	if d.Decode(&at) != nil {
		return "", false, false
	}
	for _, part := range strings.Split(path, ".") {
		switch v := at.(type) {
		case nil:
			return "", false, true
		case map[string]any:
			at = v[part]
		case []any:
			i, err := strconv.ParseUint(part, 10, 31)
			switch {
			case err != nil && strings.Trim(part, "0123456789") == "" && part != "" && part[0] != '0':
				return "", false, len(part) < 19 // a number beyond every list, or beyond every number
			case err != nil || strconv.FormatUint(i, 10) != part:
				return "", false, false
			case int(i) >= len(v):
				return "", false, true
			}
			at = v[i]
		default:
			return "", false, false
		}
	}
	switch v := at.(type) {
	case nil:
		return "", false, true
	case string:
		return v, true, true
	case json.Number:
		return string(v), true, true
	case bool:
		return strconv.FormatBool(v), true, true
	}
	return "", false, false
}
