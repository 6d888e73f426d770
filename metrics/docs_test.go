package metrics

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

const docs = "../docs/metrics.md"

// The table of docs/metrics.md is that of families(); -update writes it.
func TestDocsHaveEveryMetric(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- table: written by `go test ./metrics -update` -->\n", "<!-- end of the table -->"
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", docs)
	}
	want := docsTable()
	if *update {
		if err := os.WriteFile(docs, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the table of %s is not that of the code; run go test ./metrics -update", docs)
	}
}

func docsTable() string {
	var out strings.Builder
	out.WriteString("| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n")
	for _, f := range families() {
		kind := map[prometheus.ValueType]string{counter: "counter", gauge: "gauge", histogram: "histogram"}[f.kind]
		labels := ""
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", f.family, kind, labels, f.unit, f.help)
	}
	return out.String()
}

var (
	metricName = regexp.MustCompile(`\bheadgate_[a-z_]+`)
	rulesBlock = regexp.MustCompile("(?s)```yaml\n(groups:.*?)```")
)

// A query of the documentation asks for nothing that is not there.
func TestDocsNameRealMetrics(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, f := range families() {
		name := string(f.family)
		known[name] = true
		if f.kind == histogram {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
		}
	}
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	names := metricName.FindAllString(string(text), -1)
	if len(names) < len(families())+10 {
		t.Errorf("only %d names were found", len(names))
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("%s names %s, which is no metric", docs, name)
		}
	}
	block := rulesBlock.FindSubmatch(text)
	if block == nil {
		t.Fatal("no alerts in a yaml block that begins with groups:")
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		return
	}
	file := filepath.Join(t.TempDir(), "alerts.yml")
	if err := os.WriteFile(file, block[1], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
