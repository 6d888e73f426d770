package metrics

import (
	"strings"
	"testing"
	"time"
)

// What was counted of leases goes with its rule, too.
func TestLeasesOfRulesThatHaveGone(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, Config{})
	m.SetRules([]string{"a", "b"})
	for _, slot := range []string{"a/0", "b/0", "b@user=u1/0", "gone/0"} {
		m.Leases().Leased(slot, 10, 4, time.Millisecond, "")
		m.Leases().Returned(slot, 2, 1)
	}
	m.Leases().Leased("b/0", 10, 0, time.Millisecond, "timeout")
	check := func(lines ...string) {
		t.Helper()
		var got []string
		for line := range strings.Lines(page(t, m)) {
			if strings.HasPrefix(line, "headgate_lease_calls_total{") || strings.HasPrefix(line, "headgate_lease_granted_units_total{") || strings.HasPrefix(line, "headgate_lease_call_duration_seconds_count") {
				got = append(got, strings.TrimPrefix(strings.TrimSpace(line), "headgate_lease_"))
			}
		}
		if strings.Join(got, "\n") != strings.Join(lines, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
	}
	check("call_duration_seconds_count 5", `calls_total{code="ok",rule="(other)"} 1`, `calls_total{code="ok",rule="a"} 1`, `calls_total{code="ok",rule="b"} 2`,
		`calls_total{code="timeout",rule="b"} 1`, `granted_units_total{rule="(other)"} 4`, `granted_units_total{rule="a"} 4`, `granted_units_total{rule="b"} 8`)
	m.SetRules([]string{"a"})
	check("call_duration_seconds_count 5", `calls_total{code="ok",rule="(other)"} 1`, `calls_total{code="ok",rule="a"} 1`,
		`granted_units_total{rule="(other)"} 4`, `granted_units_total{rule="a"} 4`)
}
