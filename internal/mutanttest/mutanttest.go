// Package mutanttest tests suites of tests: it runs one on things with a fault, each in a process of its own since it is to fail, and
// judges whether the parts that are meant to see the fault have seen it.
package mutanttest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Mutant is a thing with a fault.
type Mutant struct {
	// Name says what is wrong with it.
	Name string
	// Parts are the subtests that must fail, and nothing else is run. Without any everything is run, and nothing may fail.
	Parts []string
}

// Suite is the test that runs a suite on the mutant of [Suite.Chosen].
type Suite struct {
	// Test is its name, such as TestMutant.
	Test string
	// Args are flags for it, such as a seed: what is drawn must be the same in each run, so that no judgement is of chance.
	Args []string
	// Env is added to its environment.
	Env []string
}

const variable = "HEADGATE_TEST_MUTANT"

// Chosen returns the name of the mutant to run the suite on. Where there is none it skips the test, which is then a part of [Suite.Catch].
func (s Suite) Chosen(t *testing.T) string {
	t.Helper()
	test, name, ok := strings.Cut(os.Getenv(variable), "/")
	if !ok || test != s.Test {
		t.Skip(variable + " names no mutant: this test is a part of another, which has it run")
	}
	return name
}

// Catch runs the suite on each mutant, several at a time, and fails the subtest of its name if one of its parts does not see the fault. A
// panic shows as a part that does not fail.
func (s Suite) Catch(t *testing.T, mutants ...Mutant) {
	t.Helper()
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			out := s.run(t, &m)
			for _, part := range m.Parts {
				if !strings.Contains(out, "--- FAIL: "+s.Test+"/"+part+" ") {
					t.Errorf("the part %q of the suite does not see that %s:\n%s", part, m.Name, out)
				}
			}
			if failed := strings.Contains(out, "--- FAIL"); failed != (len(m.Parts) > 0) || !failed && !strings.Contains(out, "PASS") {
				t.Errorf("failed=%t:\n%s", failed, out)
			}
		})
	}
}

func (s Suite) run(t *testing.T, m *Mutant) string {
	t.Helper()
	run := "^" + s.Test + "$"
	if len(m.Parts) > 0 {
		run += "/^(" + strings.Join(m.Parts, "|") + ")$"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-test.run=" + run, "-test.timeout=10m"}, s.Args...)...)
	cmd.Env = append(append(os.Environ(), s.Env...), variable+"="+s.Test+"/"+m.Name)
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out)
}
