package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// find returns the row of a package.
func find(pkg string) (row, bool) {
	for _, r := range table() {
		if ok, err := path.Match(r.pkg, pkg); err == nil && ok {
			return r, true
		}
	}
	return row{}, false
}

// violation returns what is wrong with one import, "" if nothing is. Imports of this module are folders.
func violation(from, imported string, own, inTest bool) string {
	r, known := find(from)
	switch target, _ := find(imported); {
	case !known:
		return fmt.Sprintf("package %s has no row in the table of internal/archtest; add one with its layer and reason", from)
	case own && target.onlyTests && !inTest && !r.onlyTests:
		return fmt.Sprintf("%s is for tests (%s): only _test.go files may import it", imported, target.why)
	case inTest:
		return ""
	case own && !allowed(r.own, imported, false), !own && !allowed(r.libs, imported, true):
		return fmt.Sprintf("row %q (layer %d: %s) allows %s and not %s", r.pkg, r.layer, r.why, list(r), imported)
	}
	return ""
}

func allowed(names []string, imported string, below bool) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == anything || name == imported || below && strings.HasPrefix(imported, name+"/")
	})
}

func list(r row) string {
	names := slices.Concat(r.own, r.libs)
	if len(names) == 0 {
		return "the standard library only"
	}
	return strings.Join(names, ", ")
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, s := range goFiles(t) {
		own, libs := s.imports()
		for _, p := range own {
			if p == s.pkg && s.test {
				continue // an external test package imports its own package
			}
			if v := violation(s.pkg, p, true, s.test); v != "" {
				t.Errorf("%s imports %s: %s", s.file, p, v)
			}
		}
		for _, p := range libs {
			if v := violation(s.pkg, p, false, s.test); v != "" {
				t.Errorf("%s imports %s: %s", s.file, p, v)
			}
		}
		if _, known := find(s.pkg); !known {
			t.Errorf("%s: %s", s.file, violation(s.pkg, "", true, s.test))
		}
	}
}

// TestTable keeps the table itself to the rules that are above it.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range table() {
		if r.why == "" || seen[r.pkg] {
			t.Errorf("row %q: reason %q, there twice: %v", r.pkg, r.why, seen[r.pkg])
		}
		seen[r.pkg] = true
		if r.layer >= 4 {
			continue // they compose
		}
		for _, name := range r.own {
			if v := layering(r, name); v != "" {
				t.Errorf("row %q: %s", r.pkg, v)
			}
		}
	}
}

func layering(r row, name string) string {
	target, known := find(name)
	edge := r.pkg + " → " + name
	_, same := sameLayer()[edge]
	_, two := downTwo()[edge]
	switch {
	case !known:
		return name + " has no row"
	case r.pkg == root:
		return "the root imports nothing"
	case target.onlyTests && !r.onlyTests:
		return name + " is for tests"
	case target.layer >= r.layer && !same:
		return fmt.Sprintf("%s is on layer %d: siblings never import siblings, and nothing imports upwards", name, target.layer)
	case r.layer == 3 && target.layer == 2 && !two:
		return name + " is on layer 2: layer 3 takes it through an interface"
	}
	return ""
}

// TestViolationsAreSeen proves that the check can fail, and that it says why.
func TestViolationsAreSeen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, imported string
		own, inTest    bool
		want           string // part of the message, "" for none
	}{
		{root, "golang.org/x/sync/errgroup", false, false, "the standard library only"},
		{root, "algo", true, false, `row "." (layer 0`},
		{"memstore", "algo", true, false, ""},
		{"memstore", "redisstore", true, false, "allows ., algo, github.com/puzpuzpuz/xsync/v4"},
		{"memstore", "github.com/puzpuzpuz/xsync/v4", false, false, ""},
		{"memstore", "github.com/puzpuzpuz/xsync/v40", false, false, "not github.com/puzpuzpuz/xsync/v40"},
		{"gateway", "memstore", true, false, "applies any Decider"},
		{"gateway", "memstore", true, true, ""},
		{"middleware/ginmw", "middleware/nethttpmw", true, false, "never a store"},
		{"policy", "github.com/goccy/go-yaml/ast", false, false, ""},
		{"policy", "github.com/redis/rueidis", false, false, "look-ups come through an interface"},
		{"memstore", "limitertest", true, false, "only _test.go files"},
		{"memstore", "limitertest", true, true, ""},
		{"app", "internal/testservers", true, false, "only _test.go files"},
		{"app", "redisstore", true, false, ""},
		{"nowhere", root, true, false, "has no row"},
		{"middleware/newmw", root, true, true, "has no row"},
	} {
		got := violation(tc.from, tc.imported, tc.own, tc.inTest)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s imports %s (test: %v): got %q, want %q", tc.from, tc.imported, tc.inTest, got, tc.want)
		}
	}
	sibling := row{pkg: "redisstore", layer: 2, own: []string{"memstore"}}
	if got := layering(sibling, "memstore"); !strings.Contains(got, "siblings never import siblings") {
		t.Errorf("a row with a sibling: %q", got)
	}
	front := row{pkg: "gateway", layer: 3, own: []string{"memstore"}}
	if got := layering(front, "memstore"); !strings.Contains(got, "layer 3 takes it through an interface") {
		t.Errorf("a front with a store: %q", got)
	}
}
