package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// second of the table: how many jobs wait, for how long the oldest has, how many were decided, and the pulls that were full and short.
type scaleStep struct {
	waiting     int64
	lag         time.Duration
	decided     int64
	full, short int64
	failing     bool
	times       int // how often, default 1
	want        int // workers afterwards
	why         string
}

func TestScaler(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	deep := func(decided int64, times, want int, why string) scaleStep {
		return scaleStep{waiting: 5000, lag: 800 * ms, decided: decided, full: 10, times: times, want: want, why: why}
	}
	quiet := func(times, want int, why string) scaleStep {
		return scaleStep{lag: 5 * ms, decided: 50, short: 50, times: times, want: want, why: why}
	}
	for name, c := range map[string]struct {
		min, max int
		steps    []scaleStep
	}{
		"quiet stays at the minimum":        {1, 8, []scaleStep{quiet(100, 1, "")}},
		"a burst of two seconds is nothing": {1, 8, []scaleStep{deep(1000, 2, 1, ""), quiet(1, 1, ""), deep(1000, 2, 1, "")}},
		"a backlog adds one, which stays if it was worth it": {1, 2, []scaleStep{
			deep(1000, 2, 1, ""), deep(1000, 1, 2, "5000 jobs wait"), deep(1000, 1, 2, ""), deep(1250, 2, 2, ""), deep(1250, 60, 2, ""),
		}},
		"one that was of no use goes, and is tried again half a minute later": {1, 8, []scaleStep{
			deep(1000, 2, 1, ""), deep(1000, 1, 2, "5000 jobs wait"), deep(1100, 3, 2, ""), deep(1100, 1, 1, "1100 jobs a second instead of 1000"),
			deep(1000, 29, 1, ""), deep(1000, 1, 2, "5000 jobs wait"), deep(2000, 4, 2, ""), deep(2000, 1, 3, "5000 jobs wait"),
		}},
		"the more there are, the less each has to bring": {4, 5, []scaleStep{
			deep(1000, 2, 4, ""), deep(1000, 1, 5, "jobs wait"), deep(1070, 4, 5, ""), deep(1070, 60, 5, ""),
		}},
		"but never less than 5 %":                   {7, 8, []scaleStep{deep(1000, 2, 7, ""), deep(1000, 1, 8, "jobs wait"), deep(1040, 3, 8, ""), deep(1040, 1, 7, "1040 jobs a second")}},
		"lag alone is pressure":                     {1, 8, []scaleStep{{waiting: 10, lag: 300 * ms, decided: 100, full: 1, times: 2, want: 1}, {waiting: 10, lag: 300 * ms, decided: 100, full: 1, want: 2, why: "300ms"}}},
		"what was pulled is not waiting":            {1, 8, []scaleStep{{waiting: 0, lag: time.Minute, decided: 1, full: 1, times: 30, want: 1}}},
		"a rate that bounds it":                     {1, 8, []scaleStep{{waiting: 9000, lag: time.Second, decided: 1000, full: 1, short: 40, times: 60, want: 1}}},
		"nothing is handed out":                     {1, 8, []scaleStep{{waiting: 9000, lag: time.Second, times: 60, want: 1}}},
		"SQL does not answer":                       {1, 8, []scaleStep{{waiting: 9000, lag: time.Second, full: 1, failing: true, times: 60, want: 1}}},
		"the maximum":                               {2, 2, []scaleStep{deep(1000, 60, 2, "")}},
		"pressure that goes away proves the worker": {1, 2, []scaleStep{deep(1000, 2, 1, ""), deep(1000, 1, 2, "jobs wait"), deep(1000, 1, 2, ""), quiet(8, 2, "")}},
		"quiet takes one away every ten seconds": {1, 3, []scaleStep{
			deep(1000, 2, 1, ""), deep(1000, 1, 2, "jobs wait"), deep(2000, 4, 2, ""), deep(2000, 1, 3, "jobs wait"), deep(4000, 4, 3, ""),
			quiet(9, 3, ""), quiet(1, 2, "nothing waits"), quiet(9, 2, ""), quiet(1, 1, "nothing waits"), quiet(100, 1, ""),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scaler{min: c.min, max: c.max, batch: 256, workers: c.min}
			now := time.Unix(1_000_000, 0)
			for i, step := range c.steps {
				for n := range max(step.times, 1) {
					now = now.Add(time.Second)
					why := s.next(load{now, step.waiting, step.lag, step.decided, step.full, step.short, step.failing})
					if s.workers != step.want || (why != "") != (step.why != "") || !strings.Contains(why, step.why) {
						t.Fatalf("step %d.%d: %d workers because of %q, want %d, %q", i+1, n+1, s.workers, why, step.want, step.why)
					}
				}
			}
		})
	}
}

func TestWorth(t *testing.T) {
	t.Parallel()
	var got []string
	for n := 1; n <= 8; n++ {
		got = append(got, fmt.Sprintf("%.3f", worth(n)))
	}
	if s := strings.Join(got, " "); s != "1.250 1.125 1.083 1.062 1.050 1.050 1.050 1.050" {
		t.Error(s)
	}
}
