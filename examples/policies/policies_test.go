// Package policies_test runs the tests of all examples, and holds the policies to what their comments say.
package policies_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/policy/lint"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/testlang"
)

// runsOnRedis is how many runs a file may have to be run on Redis as well: what is larger shows what a limit adds up to over
// very many requests, and that the stores agree is limitertest's business.
const runsOnRedis = 30_000

// showcase is the policy that shows every field. It is no policy to take over, and not judged as one.
const showcase = "complete"

// testFiles are the tests of all examples, by name.
func testFiles(t *testing.T) map[string]*testlang.File {
	t.Helper()
	files := map[string]*testlang.File{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".test" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files[strings.TrimPrefix(filepath.ToSlash(name), "../")], err = testlang.Parse(name, text)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// policyFiles are the policies that are judged.
func policyFiles(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*/policy.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d policies, %v", len(names), err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return filepath.Dir(name) == showcase })
}

func runFile(t *testing.T, file *testlang.File, cfg testlang.Config) {
	t.Helper()
	cfg.Compile = app.CompilePolicy
	report, err := testlang.Run(t.Context(), file, cfg)
	if err != nil || report.Lines == 0 {
		t.Fatalf("%d lines, %v", report.Lines, err)
	}
	for _, f := range report.Failures {
		t.Error(f)
	}
}

// TestInMemory runs every test. Those of a policy have to see each of its rules deny, and later let the same key pass.
func TestInMemory(t *testing.T) {
	t.Parallel()
	files := testFiles(t)
	met := map[string]*exercised{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		folder := filepath.Base(filepath.Dir(name))
		if met[folder] == nil {
			met[folder] = &exercised{denied: map[key]time.Time{}, denies: map[string]bool{}, recovers: map[string]bool{}}
		}
		t.Run(name, func(t *testing.T) {
			skipLong(t, files[name], runsInMemory)
			store := memstore.New(memstore.Config{})
			defer store.Close()
			runFile(t, files[name], testlang.Config{Limiter: store, Trace: met[folder].tracer(files[name])})
		})
	}
	for _, name := range policyFiles(t) {
		if m := met[filepath.Dir(name)]; m != nil {
			m.report(t, name)
		} else {
			t.Errorf("%s has no test beside it", name)
		}
	}
}

// TestOnRedis runs the same on a real Redis.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	// A busy machine is no reason to fail: nothing here is about time-outs.
	store, err := redisstore.New(t.Context(), redisstore.Config{Addrs: []string{testservers.Redis(t).Addr()}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, file := range testFiles(t) {
		t.Run(name, func(t *testing.T) {
			skipLong(t, file, runsOnRedis)
			runFile(t, file, testlang.Config{Limiter: store})
		})
	}
}

func skipLong(t *testing.T, f *testlang.File, most int64) {
	t.Helper()
	var runs int64
	for _, c := range f.Cases {
		for _, s := range c.Steps {
			runs += s.Runs()
		}
	}
	if testing.Short() {
		most = min(most, 200_000)
	}
	if runs > most {
		t.Skipf("%d runs are more than %d", runs, most)
	}
}

// TestFindings: headgate check finds nothing but what a policy says it accepts, and nothing is accepted that it does not find.
func TestFindings(t *testing.T) {
	t.Parallel()
	// "# check: ID: reason"
	accepted := regexp.MustCompile(`(?m)^\s*# check: ([a-z0-9-]+): \S`)
	for _, name := range policyFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		open := map[string]bool{}
		for _, m := range accepted.FindAllStringSubmatch(string(text), -1) {
			open[m[1]] = true
		}
		p, err := policy.Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		seen := map[string]bool{}
		for _, f := range lint.Check(lint.Of(p, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) {
			seen[f.ID] = true
			if !open[f.ID] {
				t.Errorf("%s:%s", name, f)
			}
		}
		for id := range open {
			if !seen[id] {
				t.Errorf("%s accepts %s, which is not found", name, id)
			}
		}
	}
}

// TestIndex: the index has a line for each folder, and no other.
func TestIndex(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, name := range append(policyFiles(t), showcase+"/policy.yaml") {
		want = append(want, filepath.Dir(name))
	}
	for _, m := range regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(([a-z-]+)\) \|`).FindAllStringSubmatch(string(text), -1) {
		if m[1] != m[2] {
			t.Errorf("the link of %s leads to %s", m[1], m[2])
		}
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("want the folders %s, got %s", strings.Join(want, ", "), strings.Join(got, ", "))
	}
}
