package policies_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/testlang"
)

// exercised is what the tests of one policy have seen of its rules.
type exercised struct {
	// denied has when a rule last denied a key, or marked or watched in place of it.
	denied           map[key]time.Time
	denies, recovers map[string]bool
}

// key is a bucket of a rule in one case of one file.
type key struct {
	of        *testlang.Case
	rule, key string
}

func (e *exercised) tracer(file *testlang.File) func(testlang.Trace) {
	cases := map[*testlang.Step]*testlang.Case{}
	for _, c := range file.Cases {
		for _, s := range c.Steps {
			cases[s] = c
		}
	}
	return func(tr testlang.Trace) {
		if tr.Verdict != nil {
			e.see(cases[tr.Step], tr.Step.Start.Add(tr.At), tr.Verdict)
		}
	}
}

func (e *exercised) see(c *testlang.Case, now time.Time, v *httpverdict.Verdict) {
	if v.Code == "dimension_missing" || v.Kind == httpverdict.BadRequest {
		e.denies[v.Rule] = true
	}
	over := v.OverRules()
	for i := range v.Matches {
		m := &v.Matches[i]
		at := key{c, m.Rule, m.Key}
		switch {
		case m.Skipped != "":
		case !v.Allowed() && v.Rule == m.Rule, slices.Contains(over, m.Rule), slices.Contains(v.Shadow, m.Rule):
			e.denied[at], e.denies[m.Rule] = now, true
		case v.Allowed() && !e.denied[at].IsZero() && now.After(e.denied[at]):
			e.recovers[m.Rule] = true
		}
	}
}

// report complains about rules that no test has seen deny a key and let it pass again. One that is shut for good, by limits of
// count 0, has to deny.
func (e *exercised) report(t *testing.T, name string) {
	t.Helper()
	p, err := policy.Load(name)
	if err != nil {
		t.Error(err)
		return
	}
	for _, r := range p.Rules() {
		switch {
		case r.Mode == policy.Off:
		case !e.denies[r.Name]:
			t.Errorf("%s: no test is denied by the rule %s", name, r.Name)
		case !e.recovers[r.Name] && !shut(&r):
			t.Errorf("%s: no test sees the rule %s let a key pass again", name, r.Name)
		}
	}
}

func shut(r *policy.Rule) bool {
	for _, l := range r.Limits {
		if !strings.Contains(l.String(), " 0/") {
			return false
		}
	}
	return len(r.Schedule) == 0
}
