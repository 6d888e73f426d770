package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence    = regexp.MustCompile("(?s)\n *```[^\n]*\n.*?\n *```\n")
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor = regexp.MustCompile(`[^\pL\pN _-]`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestLinks: a link in the documentation to a file of the repository, or to a heading, leads somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	texts := make(map[string]string)
	walk(t, func(file string) error {
		if path.Ext(file) != ".md" || strings.Contains(file, "testdata/") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(repoRoot(t), file))
		texts[file] = fence.ReplaceAllString(string(text), "\n\n")
		return err
	})
	links := 0
	for file, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if why := broken(repoRoot(t), file, m[1], texts); why != "" {
				t.Errorf("%s: the link to %s leads nowhere: %s", file, m[1], why)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// broken returns what is wrong with a link, "" if nothing is.
func broken(root, from, to string, texts map[string]string) string {
	name, anchor, _ := strings.Cut(to, "#")
	file := from
	if name != "" {
		file = path.Join(path.Dir(from), name)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return "there is no " + file
	}
	if anchor != "" && !anchors(texts[file])[anchor] {
		return file + " has no such heading"
	}
	return ""
}

// anchors are those of a text's headings.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchor := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return found
}

// TestBrokenLinksAreSeen proves that the check can fail.
func TestBrokenLinksAreSeen(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"docs/a.md": "# One `two`, three\n## on_deny\n"}
	root := repoRoot(t)
	for to, good := range map[string]bool{
		"#one-two-three": true, "#on_deny": true, "#on-deny": false, "#two": false, "../go.mod": true, "../none.md": false, "none.md#one": false,
	} {
		if why := broken(root, "docs/a.md", to, texts); (why == "") != good && !strings.HasPrefix(to, "#") {
			t.Errorf("%s: %q", to, why)
		}
		if strings.HasPrefix(to, "#") && anchors(texts["docs/a.md"])[to[1:]] != good {
			t.Errorf("%s: want %v", to, good)
		}
	}
}
