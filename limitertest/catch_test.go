package limitertest_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
)

const mutantVariable = "HEADGATE_TEST_MUTANT"

// TestMutant runs the suite on the mutant that the environment names: TestCatches runs it in a process of its own, since
// it is to fail.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantVariable)
	if name == "" {
		t.Skip(mutantVariable + " names no mutant: this test is a part of TestCatches")
	}
	for _, m := range append(mutants(), mutant{name: "none"}) {
		if m.name == name {
			limitertest.Run(t, limitertest.Config{New: func(testing.TB) headgate.Limiter { return newBent(m.bend) }})
			return
		}
	}
	t.Fatalf("no mutant is named %q", name)
}

// TestCatches: each part of the suite that is meant to see a fault sees it, and sees none where none is.
func TestCatches(t *testing.T) {
	for _, m := range append(mutants(), mutant{name: "none"}) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out := runMutant(t, m)
			for _, part := range m.parts {
				if !strings.Contains(out, "--- FAIL: TestMutant/"+part+" ") {
					t.Errorf("the part %q of the suite does not see that %s:\n%s", part, m.name, out)
				}
			}
			if failed := strings.Contains(out, "--- FAIL"); failed != (len(m.parts) > 0) {
				t.Errorf("failed=%t:\n%s", failed, out)
			}
		})
	}
}

// runMutant runs the parts of a mutant, or all if there are none. The seed is fixed so that this test cannot be flaky; a
// panic would show as a part that does not fail.
func runMutant(t *testing.T, m mutant) string {
	t.Helper()
	run := "^TestMutant$"
	if len(m.parts) > 0 {
		run += "/^(" + strings.Join(m.parts, "|") + ")$"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+run, "-test.timeout=10m",
		"-rapid.seed=20260101", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	cmd.Env = append(os.Environ(), mutantVariable+"="+m.name, limitertest.TracesVariable+"=40")
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out)
}
