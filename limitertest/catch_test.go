package limitertest_test

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/mutanttest"
	"github.com/headgate-io/headgate/limitertest"
)

// suite has a fixed seed, so that this test cannot be flaky.
var suite = mutanttest.Suite{
	Test: "TestMutant", Args: []string{"-rapid.seed=20260101", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}, Env: []string{limitertest.TracesVariable + "=40"},
}

// TestMutant runs the suite on a mutant, for TestCatches.
func TestMutant(t *testing.T) {
	name := suite.Chosen(t)
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
	all := []mutanttest.Mutant{{Name: "none"}}
	for _, m := range mutants() {
		all = append(all, mutanttest.Mutant{Name: m.name, Parts: m.parts})
	}
	suite.Catch(t, all...)
}
