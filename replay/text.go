package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	t := &textWriter{}
	t.head(r)
	t.rules(r)
	t.keys(r)
	t.suggestions(r)
	t.difference(r)
	t.malformed(r)
	t.list("Notes", r.Notes)
	_, err := io.WriteString(w, t.b.String())
	return err
}

type textWriter struct{ b strings.Builder }

func (t *textWriter) say(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

func (t *textWriter) head(r *Report) {
	against := ""
	if r.Against != "" {
		against = " against " + r.Against
	}
	t.say("Replay of %s%s", r.Policy, against)
	if r.Interrupted {
		t.say("INTERRUPTED at line %s: what follows is of the log up to there.", grouped(r.Log.Lines))
	}
	t.say("")
	t.say("  Log        %s", r.Log.summary())
	for _, f := range r.Log.Files[:min(len(r.Log.Files), 10)] {
		t.say("             %s: %s, %s", f.File, counted(f.Lines, "line"), f.formatText())
	}
	if more := len(r.Log.Files) - 10; more > 0 {
		t.say("             and %d more files", more)
	}
	t.say("  Time       %s", r.Log.span())
	t.say("  Clients    %s", r.Log.Clients)
	t.say("")
	t.say("  Requests   %s", grouped(r.Total.Requests))
	for _, line := range r.Total.lines(r.Before) {
		t.say("  %-10s %s", line[0], line[1])
	}
	if rules := r.Untold(); rules != "" {
		t.say("  Beware     these figures have a part of rules whose keys the log cannot tell: %s", rules)
	}
}

// Untold names the rules that matched and whose keys the log cannot tell, "" if there is none.
func (r *Report) Untold() string {
	var names []string
	for i := range r.Rules {
		if x := &r.Rules[i]; x.untold() {
			names = append(names, x.Rule)
		}
	}
	if more := len(names) - 10; more > 0 {
		names = append(names[:10], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func (x *RuleReport) untold() bool { return len(x.Lacks) > 0 && x.Requests > 0 }

// lines are the figures of a total by name, beside those of the policy before.
func (t *Total) lines(before *Total) [][2]string {
	was := func(f func(*Total) string) string {
		if before == nil {
			return ""
		}
		return "; before: " + f(before)
	}
	let := func(t *Total) string {
		return fmt.Sprintf("%s (%s)", grouped(t.Allowed), percent(t.Allowed, t.Requests))
	}
	denied := func(t *Total) string {
		return fmt.Sprintf("%s (%s)%s", grouped(t.Denied), percent(t.Denied, t.Requests), kindsText(t.Kinds))
	}
	hit := func(t *Total) string {
		return fmt.Sprintf("%s of the clients (%s) had a request denied", t.ClientsHit, percentOf(t.ClientsShare))
	}
	peak := func(t *Total) string { return grouped(t.PeakAfter) + "/s" }
	lines := [][2]string{
		{"Through", let(t) + was(let)},
		{"Denied", denied(t) + was(denied)},
		{"Hit", hit(t) + was(hit)},
		{"Peak", fmt.Sprintf("%s/s came, %s let through", grouped(t.PeakBefore), peak(t)) + was(peak)},
	}
	if t.Waited > 0 {
		lines = append(lines, [2]string{"Waited", fmt.Sprintf("%s, %s at most", grouped(t.Waited), time.Duration(t.LongestWaitMS*1e6).Round(time.Millisecond))})
	}
	if t.Marked > 0 {
		lines = append(lines, [2]string{"Marked", grouped(t.Marked) + " let through over a limit"})
	}
	for _, m := range t.Money {
		lines = append(lines, [2]string{"Cost", fmt.Sprintf("%s spent, %s saved by denials", m.amount(m.Spent), m.amount(m.Saved))})
	}
	return lines
}

func kindsText(kinds map[string]int64) string {
	if len(kinds) == 0 || len(kinds) == 1 && kinds["limited"] > 0 {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, grouped(kinds[k])+" "+strings.ReplaceAll(k, "_", " "))
	}
	return ": " + strings.Join(parts, ", ")
}

func (m Money) amount(x float64) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", strconv.FormatFloat(x, 'f', -1, 64), m.Currency))
}

func (l *LogReport) summary() string {
	parts := []string{counted(l.Lines, "line"), grouped(l.Malformed) + " malformed"}
	for _, n := range [...]struct {
		n    int64
		name string
	}{{l.NotHTTP, "not HTTP"}, {l.OutOfOrder, "out of order"}, {l.Late, "too late"}, {l.Stray, "with a stray time"}} {
		if n.n > 0 {
			parts = append(parts, grouped(n.n)+" "+n.name)
		}
	}
	return strings.Join(parts, ", ")
}

func (l *LogReport) span() string {
	if l.Requests == 0 {
		return "no request"
	}
	const layout = "2006-01-02 15:04:05"
	return fmt.Sprintf("%s to %s UTC, %s", l.From.Format(layout), l.To.Format(layout), l.To.Sub(l.From).Round(time.Second))
}

func (f *FileReport) formatText() string {
	if f.Format == "" {
		return "empty"
	}
	return f.Format
}

func (t *textWriter) table(rows func(w io.Writer)) {
	var all strings.Builder
	w := tabwriter.NewWriter(&all, 0, 4, 2, ' ', 0)
	rows(w)
	_ = w.Flush() // a strings.Builder does not fail
	for line := range strings.Lines(all.String()) {
		t.say("%s", strings.TrimRight(line, " \n"))
	}
}

func (t *textWriter) rules(r *Report) {
	t.say("\nRules")
	t.table(func(w io.Writer) {
		spent := ""
		if len(r.Total.Money) > 0 {
			spent = "\tspent\tsaved"
		}
		fmt.Fprintln(w, "  rule\trequests\tdenied\trate\tclients hit\tpeak/s"+spent)
		for i := range r.Rules {
			x := &r.Rules[i]
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s of %s\t%s → %s%s\n", x.label(), grouped(x.Requests), x.deniedText(), percent(x.Hits(), x.Requests),
				x.ClientsHit, x.Clients, grouped(x.PeakBefore), grouped(x.PeakAfter), x.moneyText())
		}
		for _, l := range r.Lists {
			fmt.Fprintf(w, "  %s\t\t%s\n", l.Name, grouped(l.Denied))
		}
	})
	for i := range r.Rules {
		if x := &r.Rules[i]; x.untold() {
			t.say("  * %s: the log has no %s for its key: the figures say little", x.Rule, strings.Join(x.Lacks, " or "))
		}
	}
}

// deniedText is what the rule denied, for a shadow rule in brackets what it would have, and what it let through with a mark.
func (x *RuleReport) deniedText() string {
	switch {
	case x.Mode == "shadow":
		return "(" + grouped(x.ShadowDenied) + ")"
	case x.Marked > 0:
		return grouped(x.Denied) + ", " + grouped(x.Marked) + " marked"
	}
	return grouped(x.Denied)
}

func (x *RuleReport) moneyText() string {
	if x.Money == nil {
		return ""
	}
	return "\t" + x.Money.amount(x.Money.Spent) + "\t" + x.Money.amount(x.Money.Saved)
}

func (x *RuleReport) label() string {
	label := x.Rule
	if x.Mode != "enforce" {
		label += " [" + x.Mode + "]"
	}
	if x.untold() {
		label += " *"
	}
	return label
}

func (t *textWriter) keys(r *Report) {
	for i := range r.Rules {
		x := &r.Rules[i]
		if len(x.TopKeys) == 0 || len(x.TopKeys) == 1 && x.TopKeys[0].Key == "" {
			continue
		}
		t.say("\nMost denied keys of %s", x.Rule)
		t.table(func(w io.Writer) {
			for _, k := range x.TopKeys {
				fmt.Fprintf(w, "  %s\t%s of %s denied%s\n", k.name(), grouped(k.Denied), grouped(k.Requests), about(k.Estimated))
			}
		})
	}
}

func (k *KeyReport) name() string {
	if k.Key == "" {
		return "(none)"
	}
	return k.Key
}

func about(estimated bool) string {
	if estimated {
		return ", about"
	}
	return ""
}

func (t *textWriter) suggestions(r *Report) {
	if len(r.Suggestions) == 0 {
		return
	}
	t.say("\nWhat keys needed, and limits that 99 %% and 99.9 %% of them would never have met")
	for i := range r.Suggestions {
		s := &r.Suggestions[i]
		t.say("  %s: %s: %s, %s over it (%s)", s.Rule, s.Limit, s.Keys.of("key"), s.Over, percentOf(s.Share))
		t.say("    needed %s: half %s, 99 %% %s, 99.9 %% %s, most %s", s.Measure, grouped(s.Need.P50), grouped(s.Need.P99), grouped(s.Need.P999), grouped(s.Need.Max))
		if s.P99 != "" && s.P999 != "" {
			t.say("    room for 99 %%: %s, for 99.9 %%: %s", s.P99, s.P999)
		}
		if s.Note != "" {
			t.say("    %s", s.Note)
		}
	}
}

func (t *textWriter) difference(r *Report) {
	d := r.Difference
	if d == nil {
		return
	}
	t.say("\nAgainst %s", r.Against)
	t.say("  denied by the new policy only  %s", grouped(d.NewOnly))
	t.say("  denied by the old policy only  %s", grouped(d.OldOnly))
	t.say("  denied by both                 %s", grouped(d.Both))
	t.say("  clients newly hit              %s", d.NewlyHit)
	t.say("  clients hit no more            %s", d.Relieved)
	t.table(func(w io.Writer) {
		fmt.Fprintln(w, "  rule\tdenied before\tnow\tchange")
		for _, x := range d.Rules {
			change := signed(x.NewDenied - x.OldDenied)
			if x.In == "new" || x.In == "old" {
				change += " (only in the " + x.In + " policy)"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", x.Rule, grouped(x.OldDenied), grouped(x.NewDenied), change)
		}
	})
}

func (t *textWriter) malformed(r *Report) {
	if len(r.Log.MalformedLines) == 0 {
		return
	}
	t.say("\nMalformed lines (the first %d of %s)", len(r.Log.MalformedLines), grouped(r.Log.Malformed))
	for _, l := range r.Log.MalformedLines {
		t.say("  %s:%d: %s: %s", shown(l.File, 200), l.Line, l.Reason, l.Text)
	}
}

func (t *textWriter) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.say("\n%s", title)
	for _, l := range lines {
		t.say("  - %s", l)
	}
}
