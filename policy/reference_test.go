package policy

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
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

// sections are where the reference has a mapping, if not under its own name.
var sections = map[string]string{
	"dimension": "dimensions", "redis": "redis-and-http", "http": "redis-and-http", "list": "lists-allow-deny", "rule": "rules",
	"schedule entry": "schedule", "l2": "degradation", "l3": "degradation",
}

// describe says in a few words what a value looks like.
func (f form) describe() string {
	switch f.kind {
	case formInteger:
		return digits(f.least) + " to " + digits(f.most)
	case formWord:
		return "`" + strings.Join(f.words, "`, `") + "`"
	case formList:
		return "list (up to " + digits(f.most) + ") of " + f.of.describe()
	case formMapping:
		anchor := f.mapping.name
		if section := sections[anchor]; section != "" {
			anchor = section
		}
		return "[" + f.mapping.name + "](#" + anchor + ")"
	case formEntries:
		return "mapping (up to " + digits(f.most) + ") of " + f.key + " → " + f.of.describe()
	}
	if word := plainForms[f.kind]; word != "" {
		return word
	}
	return "text"
}

var plainForms = map[formKind]string{
	formName: "name", formBoolean: "`true`, `false`", formDuration: "duration", formPercent: "percentage", formLimit: "[limit](#limits)",
	formCEL: "[CEL](#expressions)", formTime: "time", formFile: "file",
}

// digits writes a number so that its zeros need not be counted.
func digits(n int64) string {
	text := strconv.FormatInt(n, 10)
	if zeros := len(text) - len(strings.TrimRight(text, "0")); zeros == len(text)-1 && zeros > 6 {
		return "10^" + strconv.Itoa(zeros)
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
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
