package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lines returns those of a page that begin with one of some names, without the prefix of all.
func lines(t *testing.T, m *Metrics, names ...family) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(page(t, m)) {
		for _, name := range names {
			if strings.HasPrefix(line, string(name)+"{") || strings.HasPrefix(line, string(name)+" ") {
				out = append(out, strings.TrimSpace(strings.TrimPrefix(line, "headgate_sale_")))
			}
		}
	}
	return strings.Join(out, "\n")
}

// Where no sale is, nothing is said of one; where there is one, what has a total has it from the beginning.
func TestSaleIsShownOnceItIsThere(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{})
	if text := page(t, m); strings.Contains(text, "headgate_sale") {
		t.Errorf("a fresh page tells of a sale:\n%s", text)
	}
	m.Sale().Workers(1, "started")
	want := `consumers 1
payments_total{outcome="begun"} 0
payments_total{outcome="captured"} 0
payments_total{outcome="not_captured"} 0
payments_total{outcome="refunded"} 0`
	if got := lines(t, m, famConsumers, famPayments); got != want {
		t.Errorf("got\n%s", got)
	}
}

// Of a batch, each job counts, with the age of the oldest: the latency is never shown better than it is.
func TestDecisionLatencyCountsJobs(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{})
	m.Sale().Batch("s/k", 250, 0, time.Millisecond, 400*time.Millisecond)
	m.Sale().Batch("s/k", 1, 0, time.Millisecond, -time.Second) // a clock that was set
	m.Sale().Batch("s/k", 0, -1, -1, 0)
	want := `decision_latency_seconds_bucket{le="0.25"} 1
decision_latency_seconds_bucket{le="0.5"} 251
decision_latency_seconds_sum 100
decision_latency_seconds_count 251`
	var got []string
	for _, line := range strings.Split(lines(t, m, famDecisionAge+"_bucket", famDecisionAge+"_count", famDecisionAge+"_sum"), "\n") {
		if !strings.Contains(line, "le=") || strings.Contains(line, `"0.25"`) || strings.Contains(line, `"0.5"`) {
			got = append(got, line)
		}
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// An alarm has a series while it is on, with the difference where it is about one; each time that it goes on counts once.
func TestAlarmsComeAndGo(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{})
	v := m.Sale()
	for _, value := range []float64{2, 3, -1} {
		v.Alarm("drift", "s/k", true, value, "")
	}
	v.Alarm("sql", "", true, 1, "")
	want := `alarm_active{kind="drift",sale="s",sku="k"} 1
alarm_active{kind="sql",sale="(none)",sku="(none)"} 1
alarms_total{kind="drift"} 1
alarms_total{kind="sql"} 1
drift_units{sale="s",sku="k"} -1`
	if got := lines(t, m, famAlarm, famAlarms, famDrift); got != want {
		t.Errorf("on:\n%s", got)
	}
	v.Alarm("drift", "s/k", false, 0, "")
	v.Alarm("drift", "s/k", false, 0, "")
	v.Alarm("sql", "", false, 0, "")
	v.Alarm("sql", "", true, 1, "")
	v.Alarm("sql", "", false, 0, "")
	want = `alarms_total{kind="drift"} 1
alarms_total{kind="sql"} 2`
	if got := lines(t, m, famAlarm, famAlarms, famDrift); got != want {
		t.Errorf("off:\n%s", got)
	}
}

// The figures of a queue that nobody tells any more are not shown as if they were of now; a sku that is not on sale makes room for another.
func TestSKUsThatAreOver(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{MaxSKUs: 2})
	v := m.Sale()
	now := time.Unix(1_800_000_000, 0)
	v.skus.now = func() time.Time { return now }
	sell := func(key string) {
		v.Reserved(key, "accepted", 1)
		v.Backlog(key, 7, 2, 0, 7, time.Second)
	}
	check := func(what string, f family, want ...string) {
		t.Helper()
		if got := lines(t, m, f); got != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s", what, got)
		}
	}
	accepted := func(sale, sku string, n int) string {
		return fmt.Sprintf(`reserves_total{outcome="accepted",sale=%q,sku=%q} %d`, sale, sku, n)
	}
	sell("a/1")
	now = now.Add(30 * time.Minute)
	sell("b/1")
	sell("c/1")
	check("no room", famReserves, accepted("(other)", "(other)", 1), accepted("a", "1", 1), accepted("b", "1", 1))
	check("a is over", famQueueJobs, `queue_jobs{sale="b",sku="1",state="pulled"} 2`, `queue_jobs{sale="b",sku="1",state="waiting"} 5`)
	now = now.Add(30*time.Minute + time.Second)
	v.Backlog("b/1", 1, 1, 0, 1, 0)
	sell("c/1")
	check("a has made room", famReserves, accepted("(other)", "(other)", 1), accepted("b", "1", 1), accepted("c", "1", 1))
	sell("a/1")
	check("no room for a", famReserves, accepted("(other)", "(other)", 2), accepted("b", "1", 1), accepted("c", "1", 1))
}

// A reason of an operator's own words is no label.
func TestReasonsOfOperatorsAreNoLabels(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{})
	m.Sale().Moved("s/k", "T5", "the shopper, whose name is Ann, has called", 1)
	if text := page(t, m); strings.Contains(text, "Ann") || !strings.Contains(text, `headgate_sale_transitions_total{sale="s",sku="k",transition="T5"} 1`) {
		t.Errorf("got\n%s", text)
	}
}
