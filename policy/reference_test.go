package policy

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// allMappings are the tables of the document, by name, found by walking from its top.
func allMappings() map[string]mapping {
	found := make(map[string]mapping)
	var walk func(f form)
	visit := func(m mapping) {
		found[m.name] = m
		for _, f := range m.fields {
			walk(f.form)
		}
	}
	walk = func(f form) {
		if f.kind == formMapping {
			visit(f.mapping)
		}
		if f.of != nil {
			walk(*f.of)
		}
	}
	visit(documentMapping)
	return found
}

// table is the part of the reference for one mapping.
func table(m mapping) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| field | value | default | |\n|---|---|---|---|\n", m.doc)
	for _, f := range m.fields {
		def := f.def
		if f.required {
			def = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, cell(f.form.describe()), cell(def), cell(f.doc))
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// describe says in a few words what a value looks like.
func (f form) describe() string {
	switch f.kind {
	case formName:
		return "name"
	case formInteger:
		return fmt.Sprintf("%d to %d", f.least, f.most)
	case formBoolean:
		return "`true`, `false`"
	case formDuration:
		return "duration"
	case formPercent:
		return "percentage"
	case formWord:
		return "`" + strings.Join(f.words, "`, `") + "`"
	case formList:
		return fmt.Sprintf("list of up to %d: %s", f.most, f.of.describe())
	case formMapping:
		return f.mapping.name
	case formEntries:
		return fmt.Sprintf("up to %d, by %s: %s", f.most, f.key, f.of.describe())
	case formLimit:
		return "limit"
	case formCEL:
		return "CEL"
	case formTime:
		return "time"
	case formFile:
		return "file"
	}
	return "text"
}

// TestReference keeps the tables of docs/policy.md equal to the decoder's: each mapping stands between its own two marks,
// <!-- fields: NAME --> and <!-- end -->. With -update it writes them.
func TestReference(t *testing.T) {
	const file = "../docs/policy.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	mappings := allMappings()
	for _, name := range slices.Sorted(maps.Keys(mappings)) {
		open := "<!-- fields: " + name + " -->\n"
		before, rest, found := strings.Cut(text, open)
		old, after, closed := strings.Cut(rest, "<!-- end -->")
		if !found || !closed || strings.Contains(after, open) {
			t.Errorf("%s: the mapping %q needs one place %q … <!-- end -->", file, name, strings.TrimSpace(open))
			continue
		}
		want := table(mappings[name])
		if old != want && !*update {
			t.Errorf("%s: the table of %q is not that of the decoder; run go test ./policy -run TestReference -update", file, name)
		}
		text = before + open + want + "<!-- end -->" + after
	}
	for _, part := range strings.Split(text, "<!-- fields: ")[1:] {
		if name, _, _ := strings.Cut(part, " -->"); mappings[name].name == "" {
			t.Errorf("%s has a place for a mapping %q, which is not there", file, name)
		}
	}
	if *update && text != string(data) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
