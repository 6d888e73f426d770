package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/testlang"
)

// maxExplained is how many runs of one line are explained.
const maxExplained = 3

// explainer prints what came of each line, and why.
type explainer struct {
	out io.Writer
	err error
}

// trace is what testlang.Config.Trace asks for.
func (x *explainer) trace(t testlang.Trace) {
	if t.Run > maxExplained {
		if t.Run == t.Step.Runs() {
			x.printf("  … %d runs in all, the last: %s\n", t.Run, t.Got)
		}
		return
	}
	if t.Run == 1 {
		x.printf("%s:%d: %s\n", t.File, t.Step.Line, t.Step.Text)
	}
	if t.Step.Runs() > 1 {
		x.printf("  run %d, at %s: %s\n", t.Run, t.At, t.Got)
	} else {
		x.printf("  %s\n", t.Got)
	}
	if t.Verdict != nil {
		x.explain(t.Verdict)
	}
}

func (x *explainer) explain(v *httpverdict.Verdict) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for i := range v.Matches {
		explainMatch(table, &v.Matches[i])
	}
	_ = table.Flush() // a builder takes everything
	for line := range strings.Lines(text.String()) {
		x.printf("    %s\n", strings.TrimRight(line, " \n"))
	}
}

func explainMatch(w io.Writer, m *httpverdict.Match) {
	name := m.Rule
	if m.Shadow {
		name += " (shadow)"
	}
	if m.Over {
		name += " (over it, marked)"
	}
	if m.Skipped != "" {
		fmt.Fprintf(w, "%s\tdoes not apply: %s\n", name, m.Skipped)
		return
	}
	key := "one bucket for all"
	if m.Key != "" {
		key = fmt.Sprintf("%+q", m.Key)
		key = key[1 : len(key)-1]
	}
	for i := range m.Limits {
		l := &m.Limits[i]
		fmt.Fprintf(w, "%s\t%s\t%s\tcost %d\t%s\n", name, key, l.Limit, m.Cost, outcomeText(l))
		name, key = "", ""
	}
}

// outcomeText says what became of a limit, and what was left.
func outcomeText(l *httpverdict.LimitReport) string {
	o := &l.Outcome
	if !o.Allowed && o.Reason.String() == "" {
		return "not asked: another rule had denied"
	}
	text := "passes"
	if !o.Allowed {
		text = "denies (" + o.Reason.String() + "), again in " + o.RetryAfter.String()
	}
	if o.HasRemaining {
		text += fmt.Sprintf(", %d left", o.Remaining)
	}
	if o.Wait > 0 {
		text += ", after a wait of " + o.Wait.String()
	}
	return text
}

func (x *explainer) printf(format string, args ...any) {
	if x.err == nil {
		_, x.err = fmt.Fprintf(x.out, format, args...)
	}
}
