package app

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStatusDocumentation: the example in docs/operations.md has every field that /status can have, and no other.
func TestStatusDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := bytes.Cut(text, []byte("/status\n{"))
	example, _, ended := bytes.Cut(example, []byte("\n```"))
	if !found || !ended {
		t.Fatal("there is no example of /status")
	}
	example = append([]byte("{"), example...)
	strict := json.NewDecoder(bytes.NewReader(example))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(Status)); err != nil {
		t.Fatal(err)
	}
	var shown any
	if err := json.Unmarshal(example, &shown); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	fieldsOf(reflect.TypeFor[Status](), "", &want)
	shownFields(shown, "", &got)
	want = slices.DeleteFunc(want, func(f string) bool { return f == ".process.admin.proxy_protocol" }) // only the gateway's has it
	slices.Sort(want)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(slices.Compact(want), got) {
		t.Errorf("the example has the fields\n%s\nand should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// fieldsOf lists the fields of a type in JSON, with those of its parts.
func fieldsOf(of reflect.Type, at string, all *[]string) {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return
	case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice:
		fieldsOf(of.Elem(), at, all)
		return
	case of.Kind() != reflect.Struct:
		return
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		*all = append(*all, at+"."+name)
		fieldsOf(of.Field(i).Type, at+"."+name, all)
	}
}

// shownFields lists the fields of a value.
func shownFields(value any, at string, all *[]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			*all = append(*all, at+"."+name)
			shownFields(v, at+"."+name, all)
		}
	case []any:
		for _, v := range value {
			shownFields(v, at, all)
		}
	}
}
