package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/policy/lint"
)

// TestPaper: on a terminal lines are broken between words and severities have a colour; elsewhere nothing is added.
func TestPaper(t *testing.T) {
	t.Parallel()
	c := checked{File: "p.yaml", Valid: true, Rules: 2, Findings: []finding{{
		ID: "large-log", Severity: lint.Warning, Rule: "a", Line: 3, Column: 4, Message: "one two three four five six seven",
		Reason: "because", Suggestion: "do",
	}}}
	const plain = "p.yaml:3:4: warning: rule \"a\": one two three four five six seven [large-log]\n" +
		"    why: because\n    fix: do\np.yaml: valid, 2 rules, 1 warning\n"
	const broken = "p.yaml:3:4: \x1b[33mwarning\x1b[0m: rule \"a\": one two\n         three four five six seven\n         [large-log]\n" +
		"    why: because\n    fix: do\np.yaml: valid, 2 rules, 1 warning\n"
	for want, p := range map[string]paper{plain: {}, broken: {width: 42, colours: true}} {
		var out bytes.Buffer
		p.out = &out
		p.checked(&c)
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(out.String(), "\x1b", "ESC"), want)
		}
	}
}
