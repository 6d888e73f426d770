package lint

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocumentation: docs/check.md has a line and a section for each check, in their order, and for nothing else.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, lines, sections []string
	for _, c := range checks() {
		want = append(want, c.id+" "+string(c.severity))
	}
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(line, "### "); ok {
			sections = append(sections, strings.TrimSpace(id))
		}
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| [`") && len(cells) == 3 {
			id, anchor, _ := strings.Cut(strings.TrimPrefix(cells[0], "| [`"), "`](#")
			if anchor != id+")" {
				t.Errorf("%s leads to %s", id, anchor)
			}
			lines = append(lines, id+" "+cells[1])
		}
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the table has\n%q\nwant\n%q", lines, want)
	}
	for i := range want {
		want[i], _, _ = strings.Cut(want[i], " ")
	}
	if !slices.Equal(sections, want) {
		t.Errorf("the sections are\n%q\nwant\n%q", sections, want)
	}
}
