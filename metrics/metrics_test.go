package metrics

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	headgate "github.com/headgate-io/headgate"
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func newMetrics(t testing.TB, cfg Config) *Metrics {
	t.Helper()
	cfg.OwnOnly = true
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scene is a moment in which everything has happened.
func scene(t testing.TB) *Metrics {
	t.Helper()
	m := newMetrics(t, sceneConfig())
	m.SetRules([]string{"login", "site", "list:scanners", "login", ""})
	p := m.Policy()
	p.Decided("login", "allow", 900*time.Nanosecond)
	p.Decided("login", "limited", 30*time.Microsecond)
	p.Decided("login", "limited", 2*time.Second)
	p.Decided("list:scanners", "forbidden", 1000*time.Nanosecond)
	p.Decided("", "allow", -time.Second) // a clock that was set
	p.Decided("gone", "locked_out", time.Millisecond)
	p.Decided("site", "postponed", time.Millisecond)
	p.ShadowDenied("site")
	p.StoreFailed("timeout", true)
	p.StoreFailed("", false)
	p.Shed("sheddable")
	p.Shed("urgent")

	s := m.Store()
	s.Call("192.0.2.1:6379", "take", 12, 400*time.Microsecond, "")
	s.Call("", "take", 1, 300*time.Millisecond, headgate.CodeIndeterminate)
	s.Call("192.0.2.1:6379", "fleet", 0, 2*time.Millisecond, "")
	s.Failed(headgate.CodeOverloaded, false)
	s.Failed(headgate.CodeTimeout, true)
	s.UnknownStates(3)
	s.NewKey("login/0")
	s.NewKey("login@user=u-99/1")
	s.NewKey("policy/in-force")
	m.Memory("fallback").ObserveKeys(10, 2, 30, 40)

	l := m.Leases()
	l.Leased("site/0", 100, 60, 700*time.Microsecond, "")
	l.Leased("site/0", 100, 0, 2*time.Millisecond, "unavailable")
	l.Leased("gone/0", 5, 5, time.Millisecond, "")
	l.Returned("site/0", 7, 2)

	r := m.Resilience()
	r.BreakerChanged("192.0.2.1:6379", true, "half failed")
	r.BreakerChanged("192.0.2.1:6379", false, "the probe came back")
	r.LevelChanged(1, true, "automatic", "the store does not answer")
	r.LevelChanged(3, true, "hand", "an attack")
	r.LevelAlert(2, "a quarter of the devices")
	r.OverloadChanged(true, "cpu at 95%")

	g := m.Gateway()
	g.Request(200, "allow", 12*time.Millisecond, 11*time.Millisecond)
	g.Request(429, "limited", 100*time.Microsecond, 0)
	g.Request(0, "", time.Minute, time.Second)
	g.Request(70000, "allow", time.Second, time.Second)
	sellAll(m.Sale())
	return m
}

// sellAll is a sale in which everything has happened.
func sellAll(v *SaleView) {
	const phone = "eleven/phone"
	v.Reserved(phone, "accepted", 3*time.Millisecond)
	v.Reserved(phone, "sold_out", 200*time.Microsecond)
	v.Reserved("", "unknown_sale", time.Microsecond)
	v.Batch(phone, 100, 0, 12*time.Millisecond, 80*time.Millisecond)
	v.Batch(phone, 2, 3, 700*time.Millisecond, 2*time.Second)
	for _, transition := range []string{"T1", "T2", "T3", "T3b", "T4", "T5", "T6", "T7", "T8", "T99"} {
		v.Moved(phone, transition, "", 2)
	}
	v.Moved(phone, "T1'", "sold_out", 1)
	v.Moved(phone, "T9", "paid_twice", 1)
	v.Backlog(phone, 110, 10, 1, 111, 1500*time.Millisecond)
	v.Workers(3, "the backlog")
	v.Alarm("dead_letters", phone, true, 1, "1 job could not be decided")
	v.Alarm("drift", "eleven/case", true, -4, "they differ")
	v.Alarm("sql", "", true, 2, "no answer")
	v.Alarm("sql", "", false, 0, "it answers")
	v.Rebuilt(phone, 2, 40*time.Millisecond, "")
	v.Rebuilt(phone, 3, time.Second, "unavailable")
	v.RefusalsWritten(250, 0, "")
	v.RefusalsWritten(0, 0, "unavailable")
	v.RefusalsWritten(30, 12, "")
	v.Leased("sweep", true)
	v.Leased("poll", true)
	v.Leased("poll", false)
	v.Job("sweep", 5, 3*time.Millisecond, "")
	v.Job("sweep", 0, time.Second, "unavailable")
}

func sceneConfig() Config {
	limit := headgate.MustParseLimit
	return Config{
		Version:   "v1.2.3",
		Instances: func() int { return 4 }, FleetAge: func() time.Duration { return 1500 * time.Millisecond },
		Switches: func() [3]bool { return [3]bool{true, false, true} },
		Breakers: func() map[string]bool { return map[string]bool{"192.0.2.1:6379": false, "192.0.2.2:6379": true} },
		Waiting:  func() int { return 5 },
		Gateway:  func() GatewayFigures { return GatewayFigures{InFlight: 6, Tunnels: 1, Held: 2} },
		Upstreams: func() []UpstreamFigures {
			return []UpstreamFigures{{"http://192.0.2.9", true, 1, 20, 100, 9}, {"http://192.0.2.9", false, 0, 0, 0, 0}, {"bad\xffname", false, 0, 0, 2, 0}}
		},
		Leases:    func() LeaseFigures { return LeaseFigures{3, 44} },
		DenyCache: func() DenyFigures { return DenyFigures{8, 90, 10, 1} },
		Overload: func() OverloadFigures {
			return OverloadFigures{true, 0.95, 0.5, 0.9, 0.85, [3]float64{0, 0.25, 1}}
		},
		Policy: func() PolicyFigures {
			return PolicyFigures{"90d2ab4471fe", time.UnixMicro(1_700_000_000_500_000), 3, true}
		},
		Limits: func() []LimitFigures {
			return []LimitFigures{
				{"login", 0, limit("token_bucket 0.5/s burst=5")}, {"login", 1, limit("fixed_window 20000/day")}, {"login", 1, limit("fixed_window 1/day")},
				{"login", 2, limit("concurrency 50 ttl=60s")}, {"site", 0, limit("leaky_bucket 10/s capacity=20")}, {"site", 1, limit("sliding_window 600/1m cells=6")},
				{"site", 2, limit("sliding_log 5/5m")}, {"site", 3, limit("fixed_window 1/month")}, {"gone", 0, limit("sliding_log 5/5m")}, {"site", 4, nil},
			}
		},
	}
}

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

func page(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
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
