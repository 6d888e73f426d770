package stocktest_test

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/stocktest"
	"github.com/headgate-io/headgate/internal/mutanttest"
)

// suite has a fixed seed, so that this test cannot be flaky.
var suite = mutanttest.Suite{Test: "TestMutant", Args: []string{"-rapid.seed=20260101", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}}

// none is no mutant: nothing is to fail.
func none() mutant {
	return mutant{name: "none", bend: func(b *bent) stocktest.Stock { return b }}
}

// TestMutant runs the suite on a mutant, for TestCatches.
func TestMutant(t *testing.T) {
	name := suite.Chosen(t)
	for _, m := range append(mutants(), none()) {
		if m.name == name {
			stocktest.Exercise(t, func(_ *testing.T, now func() time.Time) stocktest.Stock { return m.bend(newBent(now)) })
			return
		}
	}
	t.Fatalf("no mutant is named %q", name)
}

// TestCatches: each part of the suite that is meant to see a fault sees it, and sees none where none is.
func TestCatches(t *testing.T) {
	var all []mutanttest.Mutant
	for _, m := range append(mutants(), none()) {
		all = append(all, mutanttest.Mutant{Name: m.name, Parts: m.parts})
	}
	suite.Catch(t, all...)
}
