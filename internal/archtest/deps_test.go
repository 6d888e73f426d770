package archtest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDependencySets checks what a user who imports a few packages compiles along, to the last package.
func TestDependencySets(t *testing.T) {
	t.Parallel()
	hashing := []string{"github.com/klauspost/cpuid/v2", "golang.org/x/sys/cpu"}
	for name, tc := range map[string]struct {
		packages []string
		libs     []string
	}{
		"the words":                 {[]string{root}, nil},
		"pure algorithms":           {[]string{"algo"}, nil},
		"library, in process":       {[]string{root, "memstore", "middleware/nethttpmw"}, libs(maps, hashing)},
		"library, on Redis":         {[]string{root, "redisstore", "middleware/nethttpmw"}, libs(redis, []string{"golang.org/x/sys"})},
		"policy in process":         {[]string{"policy", "memstore", "middleware/nethttpmw"}, libs(yaml, cel, celBelow, tokens, lru, unicode, []string{"golang.org/x/sync"}, maps, hashing)},
		"gateway, whatever decides": {[]string{"gateway"}, libs(network, []string{"golang.org/x/text"})},
		"tests of limits":           {[]string{"testlang", "memstore"}, libs(maps, hashing)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range dependencies(t, tc.packages) {
				if isLibrary(p) && !allowed(tc.libs, p, true) {
					t.Errorf("%s compiles %s along; `go mod why -m` says by which way", strings.Join(tc.packages, " + "), p)
				}
			}
		})
	}
}

// TestCommandHasNoTestCode keeps what only tests need out of the binary.
func TestCommandHasNoTestCode(t *testing.T) {
	t.Parallel()
	for _, p := range dependencies(t, []string{"cmd/headgate"}) {
		r, known := find(strings.TrimPrefix(p, modulePath+"/"))
		if p == "testing" || known && r.onlyTests || strings.HasPrefix(p, "go.uber.org/goleak") {
			t.Errorf("the binary has %s in it, which is for tests", p)
		}
	}
}

func isLibrary(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return strings.Contains(first, ".") && p != modulePath && !strings.HasPrefix(p, modulePath+"/")
}

// dependencies returns the packages that a program which imports these has in it.
func dependencies(t *testing.T, packages []string) []string {
	t.Helper()
	args := []string{"list", "-deps"}
	for _, p := range packages {
		if files, _ := filepath.Glob(filepath.Join(repoRoot(t), p, "*.go")); len(files) == 0 {
			t.Skipf("SKIPPED: %s is not there", p)
		}
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = repoRoot(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	all := strings.Fields(string(out))
	if !slices.Contains(all, "errors") {
		t.Fatalf("go list found only %v", all)
	}
	return all
}
