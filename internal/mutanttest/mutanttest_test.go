package mutanttest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	suite  = Suite{Test: "TestMutant", Env: []string{"MUTANTTEST_ENV=there"}}
	judged = Suite{Test: "TestJudged"}
)

// TestMutant is a suite of the parts a, b and c; a mutant's name has those that fail.
func TestMutant(t *testing.T) {
	name := suite.Chosen(t)
	if os.Getenv("MUTANTTEST_ENV") != "there" {
		t.Error("the suite's environment is not that of the Suite")
	}
	for _, part := range []string{"a", "b", "c"} {
		t.Run(part, func(t *testing.T) {
			if slices.Contains(strings.Fields(name), part) {
				t.Error("it sees the fault")
			}
		})
	}
}

func TestCatch(t *testing.T) {
	t.Parallel()
	suite.Catch(t, Mutant{Name: "none"}, Mutant{"a", []string{"a"}}, Mutant{"a c", []string{"a", "c"}}, Mutant{"a b", []string{"b"}})
}

// TestJudged is wrong about its mutants, in each part in another way.
func TestJudged(t *testing.T) {
	judged.Chosen(t)
	for name, m := range map[string]Mutant{
		"blind":           {"none", []string{"a"}},
		"half blind":      {"a", []string{"a", "b"}},
		"sees too much":   {"b", nil},
		"no such subtest": {"a", []string{"d"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) { suite.Catch(t, m) })
	}
	t.Run("no-such-test", func(t *testing.T) { Suite{Test: "TestNone"}.Catch(t, Mutant{Name: "a", Parts: []string{"a"}}) })
}

func TestCatchSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	judged.Catch(t, Mutant{Name: "wrong", Parts: []string{"blind", "half-blind", "sees-too-much", "no-such-subtest", "no-such-test"}})
}
