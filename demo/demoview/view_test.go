package demoview

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it and run with -update. Got:\n%s", file, got)
	}
}

// course is a demo of 30 s up to a moment, with numbers that are easy to check.
func course(to time.Duration) []demo.Snapshot {
	var all []demo.Snapshot
	for at := LiveEvery; at <= to; at += LiveEvery {
		n := int64(at / LiveEvery)
		s := demo.Snapshot{
			Elapsed: at, Total: 30 * time.Second, Phase: demo.PhaseBefore,
			Gateway: "http://127.0.0.1:8080", Policy: "examples/shop/policy.yaml", Store: "memory", DB: "SQLite in memory", StockIn: "memory",
			Requests: 1100 * n, Allowed: 100 * n, Denied: 1000 * n,
			Shoppers: demo.Audience{Served: 99 * n, Denied: n}, Bots: demo.Audience{Served: n, Denied: 999 * n},
			ByRule: []demo.RuleCount{
				{Rule: "login-device", Denied: 600 * n}, {Rule: "sms-phone", Denied: 300 * n},
				{Rule: "buy-device", Denied: 90 * n}, {Rule: "buy-user", Denied: 9 * n}, {Rule: "list:scanners", Denied: n},
			},
			Sale:      demo.Sale{Stock: 100},
			LatencyMS: demo.Spread{P50: 5.25, P99: 71.5}, RecentMS: demo.Spread{P50: 4.75, P99: 102.4},
			AddedUS: demo.Spread{P50: 207, P99: 2970}, DecisionUS: demo.Spread{P50: 6, P99: 44},
		}
		if at > 12*time.Second {
			s.Phase, s.Sale = demo.PhaseSale, demo.Sale{
				Stock: 100, Sold: 62, ToShoppers: 58, ToBots: 4, Unsold: 38, Reserved: 81, Held: 12, Paid: 64, Refunded: 2, Expired: 5, Returned: 7, DuplicatesRefused: 23,
			}
		}
		all = append(all, s)
	}
	return all
}

// failing is course with a store that is made to fail.
func failing(to time.Duration) []demo.Snapshot {
	events := []demo.Event{
		{At: 4500 * time.Millisecond, Text: "Redis is killed, its data kept (SIGKILL)", Mood: demo.Bad},
		{At: 5100 * time.Millisecond, Text: "local limits are in force (L1), on all 3 instances", Mood: demo.Bad},
		{At: 9 * time.Second, Text: "Redis is started again, with its data"},
		{At: 9400 * time.Millisecond, Text: "the store decides again, on all 3 instances", Mood: demo.Good},
	}
	all := course(to)
	for i := range all {
		f := &demo.Faults{InForce: "the store, on all 3 instances"}
		for _, e := range events {
			if e.At <= all[i].Elapsed {
				f.Events = append(f.Events, e)
			}
		}
		if n := len(f.Events); n == 2 || n == 3 {
			f.L1, f.InForce = true, "local limits (L1), on all 3 instances"
		}
		f.Local = int64(700 * len(f.Events))
		all[i].Faults = f
	}
	return all
}

func show(width, height int, past []demo.Snapshot) model {
	m := model{style: newStyles(lipgloss.NewRenderer(io.Discard)), width: width, height: height}
	for _, s := range past {
		m.see(s)
	}
	return m
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]model{
		"80x24.txt":        show(80, 24, course(13*time.Second)),
		"120x40.txt":       show(120, 40, course(13*time.Second)),
		"60x18.txt":        show(60, 18, course(13*time.Second)),
		"chaos-80x24.txt":  show(80, 24, failing(13*time.Second)),
		"chaos-l1.txt":     show(80, 24, failing(6*time.Second)),
		"chaos-120x40.txt": show(120, 40, failing(13*time.Second)),
		"first.txt":        show(80, 24, course(LiveEvery)),
		"empty.txt":        show(80, 24, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, m.render())
		})
	}
}

// TestRenderFits: whatever the terminal's size, nothing is wider or higher than it.
func TestRenderFits(t *testing.T) {
	t.Parallel()
	for _, past := range [][]demo.Snapshot{nil, course(LiveEvery), course(30 * time.Second), failing(30 * time.Second), make([]demo.Snapshot, keep+50)} {
		for _, width := range []int{1, 10, 39, 40, 41, 80, 141, 500} {
			for _, height := range []int{1, 2, 10, 19, 20, 24, 200} {
				lines := strings.Split(show(width, height, past).render(), "\n")
				if len(past) > 0 && len(lines) > max(height, 2) {
					t.Errorf("%dx%d: %d lines", width, height, len(lines))
				}
				for _, line := range lines {
					if len(past) > 0 && lipgloss.Width(line) > max(width, 2) {
						t.Errorf("%dx%d: a line is %d wide: %q", width, height, lipgloss.Width(line), line)
					}
				}
			}
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, ends := range map[string]bool{
		"q": true, "Q": true, "\x03": true, "\x1b": true, "xq": true, "x": false, "": false, "\x1b[A": false, "\x1b[q": false,
	} {
		m := show(80, 24, course(time.Second))
		if got := m.press(keys); got != ends {
			t.Errorf("%q: got %v, want %v", keys, got, ends)
		}
		if said := strings.Contains(m.render(), "closing"); said != ends {
			t.Errorf("%q: the view says that it closes: %v", keys, said)
		}
		if m.press(keys) {
			t.Errorf("%q ends twice", keys)
		}
	}
}

// TestLive runs the program on a pipe: it shows what it is told, hears the keyboard and gives the terminal back.
func TestLive(t *testing.T) {
	t.Parallel()
	keyboard, hand := io.Pipe()
	defer hand.Close()
	quit := make(chan struct{})
	var out bytes.Buffer // read after Close only
	l := StartLive(keyboard, &out, func() { close(quit) })
	for _, s := range course(2 * time.Second) {
		l.Watch(s)
	}
	if _, err := hand.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-quit:
	case <-time.After(time.Minute):
		t.Fatal("the q was not heard")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HEADGATE demo", "closing", enterScreen, leaveScreen} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q", want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	watch := Plain(&b)
	past := course(13 * time.Second)
	for i := 1; i < len(past); i += 2 {
		watch(past[i])
	}
	golden(t, "plain.txt", b.String())
	b.Reset()
	watch = Plain(&b)
	past = failing(13 * time.Second)
	for i := 1; i < len(past); i += 2 {
		watch(past[i])
	}
	golden(t, "chaos-plain.txt", b.String())
}

func TestReport(t *testing.T) {
	t.Parallel()
	sum := demo.Summary{
		DurationS: 30.1, Policy: "examples/shop/policy.yaml", Store: "memory", DB: "SQLite in memory", Stock: "memory",
		Requests: 104_605, Allowed: 8_128, Denied: 96_477, Shoppers: demo.Audience{Served: 7_638, Denied: 29},
		Bots: demo.Audience{Served: 490, Denied: 96_448}, Sale: demo.Sale{
			Stock: 100, Sold: 100, ToShoppers: 92, ToBots: 8, Reserved: 116, Paid: 104, Refunded: 4, Expired: 11, Returned: 16, DuplicatesRefused: 1_203,
		}, Invariants: demo.Invariants{OK: true, Settled: true, Broken: []string{}},
		SMSSent: demo.SMS{Shoppers: 400, Bots: 50}, LatencyMS: demo.Spread{P50: 5.86, P99: 71.2},
		AddedLatencyUS: demo.Spread{P50: 207, P99: 2970}, DecisionUS: demo.Spread{P50: 6, P99: 44},
		DeniedByRule: map[string]int64{"sms-phone": 32_423, "login-device": 32_363, "buy-device": 31_573, "buy-user": 118},
	}
	golden(t, "report.txt", Report(&sum))
	sum.Chaos = chaosSummary()
	golden(t, "report-chaos.txt", Report(&sum))
	sum.Chaos.Kept, sum.Chaos.WithData.Over, sum.Chaos.WithoutStore.BoundKept = false, 1, false
	sum.Chaos.AfterEmptyRestart = demo.Without{Admitted: 12, BoundKept: true}
	golden(t, "report-chaos-bad.txt", Report(&sum))
	sum.Interrupted, sum.Sale.Oversold, sum.DeniedByRule, sum.Chaos = true, 3, nil, nil
	sum.Invariants.Settled = false
	golden(t, "report-early.txt", Report(&sum))
	sum.Invariants = demo.Invariants{Broken: []string{"I1: SQL has 0 reserved and 103 sold of 100", "3 units are sold or held beyond the stock of 100"}}
	golden(t, "report-bad.txt", Report(&sum))
}

func chaosSummary() *demo.FaultSummary {
	ms := func(v float64) *float64 { return &v }
	return &demo.FaultSummary{
		Kept: true, Instances: 3, WithData: demo.WithData{Admitted: 8_012},
		WithoutStore: demo.Without{Admitted: 3_231, Over: 93, SpentBefore: 101, Here: 95, Bound: 243, BoundKept: true, ByLimit: []demo.LimitCount{
			{Rule: "buy-device", Limit: "token_bucket 1/s burst=5", Keys: 1, SpentBefore: 1, Here: 5, Over: 3, Bound: 13},
			{Rule: "login-device", Limit: "sliding_log 10/1h", Keys: 10, SpentBefore: 100, Here: 90, Over: 90, Bound: 230},
		}},
		AfterEmptyRestart: demo.Without{Admitted: 1_307, Over: 30, SpentBefore: 30, Here: 30, Bound: 60, BoundKept: true, ByLimit: []demo.LimitCount{
			{Rule: "a-rule-with-a-name-as-long-as-they-get", Limit: "sliding_log 3/10m", Keys: 10, SpentBefore: 30, Here: 30, Over: 30, Bound: 60},
		}},
		Faults: []demo.Fault{
			{Fault: "killed, its data kept", AtS: 4.5, LastedMS: 4531, NoticedMS: ms(12.5), L1MS: ms(604), RecoveredMS: ms(480), FellToOnError: 12_345},
			{Fault: "stalled for 250 ms", AtS: 18.2, LastedMS: 250, NoticedMS: ms(201), RecoveredMS: ms(9), FellToOnError: 7},
		},
		FellToOnError: 12_352, BreakerOpen: 12_001, LongestDecisionMS: 207.3,
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "–", time.Microsecond: "1µs", 999 * time.Microsecond: "999µs", 999_600: "1.00ms", 9994 * time.Microsecond: "9.99ms",
		9996 * time.Microsecond: "10.0ms", 99_960 * time.Microsecond: "100ms", time.Second: "1.00s", time.Minute: "60.00s",
	} {
		if got := short(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100_000: "100,000"} {
		if got := grouped(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, total int64
		want        string
	}{{0, 0, "–"}, {0, 5, "0.0%"}, {1, 5000, "<0.1%"}, {4999, 5000, ">99.9%"}, {5000, 5000, "100.0%"}, {1, 3, "33.3%"}} {
		if got := percent(c.part, c.total); got != c.want {
			t.Errorf("%d of %d: got %s, want %s", c.part, c.total, got, c.want)
		}
	}
}
