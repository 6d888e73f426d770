package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// report is everything that a run has found out.
type report struct {
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	Results  []result          `json:"results"`
}

func (r report) markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Measured on %s.\n", r.Machine)
	for _, s := range r.Results {
		fmt.Fprintf(out, "\n### %s\n\n", s.Title)
		if s.Skipped != "" {
			fmt.Fprintf(out, "Not measured: %s\n", s.Skipped)
			continue
		}
		s.table(out, r.Versions)
	}
	return out.Flush()
}

func (s result) table(out io.Writer, versions map[string]string) {
	fmt.Fprint(out, "| |")
	for _, c := range s.Columns {
		fmt.Fprintf(out, " %s |", c.Name)
	}
	fmt.Fprint(out, "\n|---|"+strings.Repeat("---:|", len(s.Columns))+"\n")
	for i, row := range s.Rows {
		fmt.Fprintf(out, "| %s |", withVersion(row.Contender, versions))
		for k, c := range s.Columns {
			fmt.Fprintf(out, " %s |", cell(c, row, k, i > 0))
		}
		fmt.Fprintln(out)
	}
	if s.Notes != "" {
		fmt.Fprintf(out, "\n%s\n", s.Notes)
	}
}

func cell(c column, row line, k int, ratio bool) string {
	if row.Median[k] == noGoal {
		return "–"
	}
	text := grouped(row.Median[k], c.digits)
	if ratio && row.Times[k] > 0 {
		text += fmt.Sprintf(" (%.2f×)", row.Times[k])
	}
	return text
}

// grouped writes a number with thin groups of three digits before the point.
func grouped(v float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, v)
	whole, fraction, dotted := strings.Cut(text, ".")
	for at := len(whole) - 3; at > 0 && whole[at-1] != '-'; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if dotted {
		return whole + "." + fraction
	}
	return whole
}

// withVersion puts versions behind the names of modules and programs in a contender's name.
func withVersion(name string, versions map[string]string) string {
	for module, version := range versions {
		if short := shortName(module); short != "headgate" && strings.HasPrefix(name, short) {
			return short + " " + version + strings.TrimPrefix(name, short)
		}
	}
	return name
}

var majorVersion = regexp.MustCompile(`/v\d+$`)

// shortName is how contenders name a module: its last two elements, without a major version.
func shortName(module string) string {
	parts := strings.Split(majorVersion.ReplaceAllString(module, ""), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// versions returns the versions of the modules in this program, as it was built, and of the servers.
func versions() map[string]string {
	found := map[string]string{"nginx": programVersion("nginx", "-v"), "redis": programVersion("redis-server", "--version")}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return found
	}
	for _, m := range info.Deps {
		found[m.Path] = m.Version
	}
	return found
}

var number = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

func programVersion(program, flag string) string {
	for _, path := range []string{program, "/usr/sbin/" + program} {
		if out, err := exec.Command(path, flag).CombinedOutput(); err == nil {
			return number.FindString(string(out))
		}
	}
	return "(not installed)"
}

// machine describes what the numbers depend on.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s, %s, %s, Redis %s%s", runtime.NumCPU(), model, runtime.GOOS, runtime.Version(),
		programVersion("redis-server", "--version"), loadAverage())
}

// loadAverage says how busy the machine is already, where that can be known: figures of a machine that others use too are too bad.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	average, _, _ := strings.Cut(string(text), " ")
	return ", load average " + average + " before the first section"
}
