package expr

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentation: the reference has everything that can be read and done, and nothing else.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Expressions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want, got []string
	for _, f := range fields() {
		want = append(want, f.name)
	}
	for name := range usages() {
		want = append(want, name)
	}
	want = append(want, macros()...)
	// A name stands in code, with what it is called on before it.
	code := regexp.MustCompile("`(?:text\\.|list\\.)?((?:request\\.|response\\.)?[A-Za-z_]+)[^`]*`")
	for line := range strings.Lines(section) {
		cells := strings.SplitN(line, " | ", 3)
		if len(cells) < 2 {
			continue
		}
		switch names := strings.TrimPrefix(cells[0], "| "); {
		case strings.HasPrefix(names, "of "), names == "conversions":
			names = cells[1]
			fallthrough
		case len(cells) == 3:
			for _, m := range code.FindAllStringSubmatch(names, -1) {
				got = append(got, m[1])
			}
		}
	}
	for _, name := range want {
		if name != "has" && !slices.Contains(got, name) || !strings.Contains(section, name) {
			t.Errorf("docs/policy.md does not say what %s is", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("docs/policy.md has %s, which is not there", name)
		}
	}
	for _, bound := range []int{MaxText, MaxValue, maxDepth, maxParts, MaxCost} {
		plain := strconv.Itoa(bound)
		if !strings.Contains(strings.ReplaceAll(section, ",", ""), plain) {
			t.Errorf("docs/policy.md does not have the bound %s", plain)
		}
	}
}
