package faults

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is what was measured of one fault.
type row struct {
	// lasted is how long the fault was there; back how long after it every instance had strict and leased rules admitted by
	// the store again.
	lasted, back time.Duration
	// shut is how long after the beginning the last of the breakers that opened in the fault did so first; 0 if none did.
	shut time.Duration
	// longest is the longest call, but for the time in which its process was stopped.
	longest time.Duration
	// over is how many were admitted over the limits, bound how many may be.
	over, bound int64
	// decisions were made, local of them by local limits; refused had none; skipped were not even asked for.
	decisions, local, refused, skipped int
	// opened is how often a breaker opened.
	opened int
	// heap is the most that an instance has in use at its end, redis what the store has. In bytes.
	heap, redis int64
	// rate is how many new keys a second a flood had.
	rate int64
}

func columns() []string {
	return []string{"fault", "lasted", "decisions", "by local limits", "answered 503", "over the limits", "may be", "longest call", "breakers open after",
		"back after", "heap", "Redis"}
}

func (r *row) cells(name string) []string {
	n := func(v int) string { return fmt.Sprint(v) }
	return []string{name, short(r.lasted), n(r.decisions), n(r.local), n(r.refused), n(int(r.over)), n(int(r.bound)), short(r.longest), short(r.shut),
		short(r.back), megabytes(r.heap), megabytes(r.redis)}
}

func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return max(d.Round(time.Millisecond), time.Millisecond).String()
}

func megabytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// table is all rows, in the order of the faults.
func table(faults []fault, rows map[string]*row) string {
	lines := [][]string{columns(), slices.Repeat([]string{"---:"}, len(columns()))}
	lines[1][0] = "---"
	for _, f := range faults {
		if r := rows[f.name]; r != nil {
			lines = append(lines, r.cells(f.name))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString("\n" + where())
	for name, r := range rows {
		if r.rate > 0 {
			fmt.Fprintf(&b, " Of %s there were %d in fact.", name, r.rate)
		}
	}
	return b.String() + "\n"
}

// where says on what the table was measured.
func where() string {
	redis := "Redis"
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		_, version, _ := strings.Cut(string(out), "v=")
		version, _, _ = strings.Cut(version, " ")
		redis += " " + version
	}
	return fmt.Sprintf("Measured on %d processors, everything on one machine: %s/%s, %s, %s.", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		strings.Replace(runtime.Version(), "go", "Go ", 1), redis)
}

// The place of the table in docs/reliability.md.
const (
	page       = "../../docs/reliability.md"
	tableBegin = "<!-- faults: begin; make faults writes what follows -->\n"
	tableEnd   = "<!-- faults: end -->\n"
)

// writeTable puts the table into a file: between the marks if it has them, else as all there is.
func writeTable(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, rest, _ := strings.Cut(string(old), tableBegin)
	if _, after, ok := strings.Cut(rest, tableEnd); ok {
		text = before + tableBegin + text + tableEnd + after
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// TestPage: the table of the page has every fault that is tested, in their order, and nothing else; each is explained.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), tableBegin)
	between, after, ok := strings.Cut(rest, tableEnd)
	if !ok {
		t.Fatalf("%s has no table between %q and %q", page, tableBegin, tableEnd)
	}
	var shown, tested []string
	for line := range strings.Lines(between) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch {
		case !strings.HasPrefix(line, "| ") || strings.HasPrefix(cells[0], "---"):
		case cells[0] == columns()[0]:
			if !slices.Equal(cells, columns()) {
				t.Errorf("the columns are %q, the tests write %q", cells, columns())
			}
		default:
			shown = append(shown, cells[0])
		}
	}
	for _, f := range faults() {
		tested = append(tested, f.name)
		if !strings.Contains(after, "- **"+f.name+".** ") {
			t.Errorf("%s does not explain %q after the table", page, f.name)
		}
	}
	if !slices.Equal(shown, tested) {
		t.Errorf("the table has %q,\nthe tests have %q", shown, tested)
	}
	for line := range strings.Lines(after) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "- **"), ".** "); ok && strings.HasPrefix(line, "- **") && !slices.Contains(tested, name) {
			t.Errorf("%s explains %q, which is not tested", page, name)
		}
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/page.md"
	for _, step := range []struct{ before, want string }{
		{"", "table\n"},
		{"no marks", "table\n"},
		{"head\n" + tableBegin + "old\n" + tableEnd + "tail\n", "head\n" + tableBegin + "table\n" + tableEnd + "tail\n"},
	} {
		if err := os.WriteFile(file, []byte(step.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := writeTable(file, "table\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != step.want {
			t.Errorf("%q became %q, %v", step.before, got, err)
		}
	}
}
