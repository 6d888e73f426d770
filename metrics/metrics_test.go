package metrics

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	headgate "github.com/headgate-io/headgate"
)

// The page is, to the letter, what testdata/scene.prom says; -update writes it.
func TestScene(t *testing.T) {
	t.Parallel()
	const file = "testdata/scene.prom"
	m := scene(t)
	var names []string
	for _, f := range families() {
		if f.family != famBuild { // it has the version of Go
			names = append(names, string(f.family))
		}
	}
	if *update {
		text, err := testutil.GatherAndFormat(m.Gatherer(), expfmt.TypeTextPlain, names...)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if err := testutil.GatherAndCompare(m.Gatherer(), want, names...); err != nil {
		t.Error(err)
	}
}

var update = flag.Bool("update", false, "write what the tests compare with")

// Every family has a series in the scene, so that no name, unit or label of one escapes the tests below.
func TestSceneHasEverything(t *testing.T) {
	t.Parallel()
	got, err := scene(t).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range got {
		seen[f.GetName()] = true
	}
	for _, f := range families() {
		if !seen[string(f.family)] {
			t.Errorf("%s is nowhere in the scene", f.family)
		}
		delete(seen, string(f.family))
	}
	if len(seen) > 0 {
		t.Errorf("families() does not have %v", seen)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	m := scene(t)
	problems, err := testutil.GatherAndLint(m.Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		return // the check above is what promtool runs
	}
	cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(page(t, m))
	if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("promtool: %v\n%s", err, text)
	}
}

// The page has the figures of the process too, unless they are left out; a fresh one has no series of what is not there.
func TestHandler(t *testing.T) {
	t.Parallel()
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	text := page(t, m)
	for _, want := range []string{"go_goroutines ", "process_cpu_seconds_total ", "headgate_build_info{", "headgate_decision_duration_seconds_count 0\n",
		`headgate_shed_requests_total{priority="normal"} 0`, "headgate_metrics_bundled_rules 0\n"} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	for _, absent := range []string{"headgate_store", "headgate_lease", "headgate_instances", "headgate_level ", "headgate_request", "(other)", "(none)"} {
		if strings.Contains(text, "\n"+absent) {
			t.Errorf("a fresh page has %q", absent)
		}
	}
	if text := page(t, newMetrics(t, Config{})); strings.Contains(text, "\ngo_") || strings.Contains(text, "\nprocess_") {
		t.Error("the figures of the process are there though left out")
	}
}

// However many rules, slots, nodes, codes and statuses there are, the series are bounded, and nothing is lost from the sums.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{MaxRules: 20, MaxSKUs: 20})
	const n = 20_000
	for i := range n {
		name := fmt.Sprint("rule-", i)
		m.Policy().Decided(name, "verdict-"+name, time.Microsecond)
		m.Policy().StoreFailed(name, true)
		m.Policy().Shed(name)
		m.Policy().ShadowDenied(name)
		m.Store().Call(name, "take", 1, time.Microsecond, headgate.Code(name))
		m.Store().Failed(headgate.Code(name), false)
		m.Store().NewKey(name + "/0")
		m.Leases().Leased(name+"/0", 1, 1, time.Microsecond, "")
		m.Resilience().BreakerChanged(name, true, "")
		m.Resilience().LevelChanged(i, true, "hand", "")
		m.Resilience().LevelAlert(i, "")
		m.Gateway().Request(i, "allow", 1, 1)
		m.Memory(name).ObserveKeys(1, 1, 1, 1)
	}
	for i := range n {
		flood(m.Sale(), fmt.Sprint("name-", i))
	}
	got, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		sum := 0.0
		for _, s := range f.GetMetric() {
			sum += s.GetCounter().GetValue()
		}
		if len(f.GetMetric()) > maxCalls+1 {
			t.Errorf("%s has %d series", f.GetName(), len(f.GetMetric()))
		}
		byRule := strings.Contains(f.String(), `name:"rule"`)
		if byRule && len(f.GetMetric()) > 2*20+20+1 {
			t.Errorf("%s has %d series by rule", f.GetName(), len(f.GetMetric()))
		}
		counted := f.GetType().String() == "COUNTER" && !strings.HasPrefix(f.GetName(), "headgate_memory") && f.GetName() != string(famOverloadChanges) && f.GetName() != string(famUnknown)
		if bySKU := strings.Contains(f.String(), `name:"sku"`); bySKU && f.GetName() != string(famAlarm) && f.GetName() != string(famDrift) && len(f.GetMetric()) > 20+1+maxCodes {
			t.Errorf("%s has %d series by sku", f.GetName(), len(f.GetMetric()))
		}
		if f.GetName() == string(famPayments) || f.GetName() == string(famJobLeader) {
			continue // of several things at once
		}
		if counted && sum != n {
			t.Errorf("%s sums up to %v, want %d", f.GetName(), sum, n)
		}
	}
}

// flood tells once of everything under a name.
func flood(v *SaleView, name string) {
	v.Reserved(name+"/sku", name, 1)
	v.Moved(name+"/sku", "T9", name, 1)
	v.Batch(name+"/sku", 1, 1, 1, 1)
	v.Backlog(name+"/sku", 1, 0, 0, 1, 1)
	v.Alarm(name, name+"/sku", true, 1, "")
	v.Rebuilt(name+"/sku", 1, 1, name)
	v.RefusalsWritten(1, 0, name)
	v.Leased(name, true)
	v.Job(name, 1, 1, name)
}

// A policy that changes: rules that stay keep their counts, those that go lose their series, and late requests of the old
// policy bring none back.
func TestSetRules(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{MaxRules: 3})
	decide := func(names ...string) {
		for _, name := range names {
			m.Policy().Decided(name, "allow", 1)
		}
	}
	check := func(bundled int, lines ...string) {
		t.Helper()
		text := page(t, m)
		var got []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, string(famDecisions)+"{") && strings.Contains(line, `"allow"`) {
				got = append(got, strings.TrimSpace(strings.NewReplacer(string(famDecisions)+`{rule="`, "", `",verdict="allow"}`, "").Replace(line)))
			}
		}
		if strings.Join(got, ", ") != strings.Join(lines, ", ") {
			t.Errorf("decisions %q, want %q", got, lines)
		}
		if want := fmt.Sprintf("\nheadgate_metrics_bundled_rules %d\n", bundled); !strings.Contains(text, want) {
			t.Errorf("no line %q", want)
		}
	}
	decide("a", "b", "a", "c", "d", "")
	check(0, "(none) 1", "(other) 1", "a 2", "b 1", "c 1")
	m.SetRules([]string{"a", "c"})
	decide("a", "b", "x")
	check(0, "(none) 1", "(other) 3", "a 3", "c 1")
	m.SetRules([]string{"a", "b", "e", "f", "g", "a"})
	decide("a", "b", "c", "f")
	check(2, "(none) 1", "(other) 5", "a 4", "b 1", "e 0")
	m.SetRules(nil)
	check(0, "(none) 1", "(other) 5")
}

// All of it at once, with scrapes and changes of the policy in between; in the end nothing is missing.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, sceneConfig())
	const goroutines, each = 8, 2000
	names := []string{"r0", "r1", "r2", "r3", "r4"}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := range each {
				rule := names[i%len(names)]
				m.Policy().Decided(rule, verdicts[i%7], time.Duration(i)*time.Microsecond)
				m.Store().Call("192.0.2.1:6379", "take", i%70, time.Duration(i), headgate.Code(verdicts[i%3]))
				m.Gateway().Request(200+i%7, verdicts[i%2], time.Millisecond, time.Millisecond)
				m.Leases().Returned(rule+"/0", 1, 1)
				m.Memory(rule).ObserveKeys(i, i, 1, 1)
			}
		})
	}
	for range 20 {
		all.Go(func() {
			m.SetRules(names)
			if _, err := m.Gatherer().Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{string(famDecisionTime): goroutines * each, string(famCallTakes): goroutines * each, string(famRequestTime): goroutines * each}
	for _, f := range got {
		if n, ok := want[f.GetName()]; ok && f.GetMetric()[0].GetHistogram().GetSampleCount() != n {
			t.Errorf("%s counts %d, want %d", f.GetName(), f.GetMetric()[0].GetHistogram().GetSampleCount(), n)
		}
		sum := 0.0
		for _, s := range f.GetMetric() {
			sum += s.GetCounter().GetValue()
		}
		if (f.GetName() == string(famCalls) || f.GetName() == string(famRequests)) && sum != goroutines*each {
			t.Errorf("%s sums up to %v", f.GetName(), sum)
		}
	}
}

// What may be told at every request costs no memory.
func TestNoAllocations(t *testing.T) { // not parallel: it counts
	m := scene(t)
	for name, f := range map[string]func(){
		"Decided": func() { m.Policy().Decided("login", "limited", 30*time.Microsecond) },
		"other":   func() { m.Policy().Decided("gone", "limited", 30*time.Microsecond) },
		"Shadow":  func() { m.Policy().ShadowDenied("site") },
		"Shed":    func() { m.Policy().Shed("normal") },
		"Call":    func() { m.Store().Call("192.0.2.1:6379", "take", 12, time.Millisecond, "") },
		"NewKey":  func() { m.Store().NewKey("login@user=u-99/1") },
		"Leased":  func() { m.Leases().Leased("site/0", 1, 1, 1, "") },
		"Request": func() { m.Gateway().Request(200, "allow", 1, 1) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
