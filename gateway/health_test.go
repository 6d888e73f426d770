package gateway

import (
	"strings"
	"testing"
	"time"
)

// judged is a health on a clock of its own, which stands still unless a step moves it.
type judged struct {
	*health
	now time.Time
}

func newJudged(rules Ejection) *judged {
	rules = rules.withDefaults()
	start := time.Unix(1_767_225_600, 0)
	return &judged{newHealth(&rules, func() float64 { return 0 }, start), start}
}

// sends reports outcomes, one letter each: g, b, f or u; a digit lets that many seconds pass. It returns the first judgement that
// asks for something, and how many letters that took.
func (j *judged) sends(t *testing.T, serving int, outcomes string) (judgement, int) {
	t.Helper()
	for i, letter := range outcomes {
		if letter >= '0' && letter <= '9' {
			j.now = j.now.Add(time.Duration(letter-'0') * time.Second)
			continue
		}
		a, ok := j.admit(j.now)
		if !ok {
			t.Fatalf("letter %d of %q is not admitted", i, outcomes)
		}
		o := map[rune]outcome{'g': good, 'b': busy, 'f': failed, 'u': unknown}[letter]
		if got := j.report(j.now, a, o, serving); got != (judgement{}) {
			return got, i + 1
		}
	}
	return judgement{}, len(outcomes)
}

func TestWhenAnUpstreamIsEjected(t *testing.T) {
	for _, c := range []struct {
		name     string
		rules    Ejection
		serving  int
		outcomes string
		why      string
		after    int
	}{
		{"all is well", Ejection{}, 1, strings.Repeat("g", 100), "", 100},
		{"in a row", Ejection{}, 1, "fffff", "5 failures in a row", 5},
		{"a good one in between", Ejection{}, 1, "ffffgffff", "", 9},
		{"what clients break off", Ejection{}, 1, "ffffuuuuuf", "5 failures in a row", 10},
		{"other rows", Ejection{Consecutive: 2}, 1, "fgff", "2 failures in a row", 4},
		{"half of ten", Ejection{}, 1, "gfgfgfgfgf", "5 of 10 requests failed within 10s", 10},
		{"half of nine", Ejection{}, 1, "gfgfgfgfg", "", 9},
		{"less than half", Ejection{}, 1, strings.Repeat("ggf", 30), "", 90},
		{"spread over more than the window", Ejection{}, 1, "gfgfgf9gfg1gfgfgf", "", 17},
		{"within the window", Ejection{}, 1, "gfgfgf8gf1gf", "5 of 10 requests failed within 10s", 12},
		{"another share", Ejection{FailedShare: 0.2, LeastRequests: 5}, 1, "ggggf", "1 of 5 requests failed within 10s", 5},
		{"another window", Ejection{Window: 2 * time.Second}, 1, "gfgfgf3gfgf", "", 11},
		{"no share", Ejection{FailedShare: -1}, 1, strings.Repeat("gf", 50), "", 100},
		{"no row", Ejection{Consecutive: -1}, 1, "fffffffff", "", 9},
		{"no row, but a share", Ejection{Consecutive: -1}, 1, "ffffffffff", "10 of 10 requests failed within 10s", 10},
		{"off", Ejection{Off: true}, 1, strings.Repeat("f", 50), "", 50},
		{"busy, and nobody else", Ejection{}, 1, strings.Repeat("b", 50), "", 50},
		{"busy beside another", Ejection{}, 2, "bbbbb", "5 failures in a row", 5},
		{"busy by share", Ejection{}, 2, "gbgbgbgbgb", "5 of 10 requests failed within 10s", 10},
		{"busy is fine", Ejection{StatusIsFine: true}, 2, strings.Repeat("b", 50), "", 50},
		{"busy answers between failures, and nobody else", Ejection{}, 1, "ffffbffffb", "8 of 10 requests failed within 10s", 10},
		{"both kinds in a row", Ejection{}, 2, "fbfbf", "5 failures in a row", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, after := newJudged(c.rules).sends(t, c.serving, c.outcomes)
			if got.eject != c.why || after != c.after || got.back {
				t.Errorf("%+v after %d, want %q after %d", got, after, c.why, c.after)
			}
			if mild := c.serving > 1 && c.why != ""; got.mild != mild {
				t.Errorf("mild is %t", got.mild)
			}
		})
	}
}

// An answer that breaks off after a good header is a failure too, however many headers are good.
func TestBrokenAnswersEject(t *testing.T) {
	j := newJudged(Ejection{})
	for i := range 10 {
		a, _ := j.admit(j.now)
		if got := j.report(j.now, a, good, 1); got != (judgement{}) {
			t.Fatalf("%d: %+v", i, got)
		}
		got := j.broke(j.now, a, 1)
		if want := map[bool]string{true: "10 of 10 requests failed within 10s"}[i == 9]; got.eject != want {
			t.Fatalf("after %d: %+v, want %q", i+1, got, want)
		}
	}
}

func TestEjectionsGetLonger(t *testing.T) {
	j := newJudged(Ejection{})
	for i, seconds := range []int{5, 10, 20, 40, 60, 60} {
		want := time.Duration(seconds) * time.Second
		a, _ := j.admit(j.now)
		if got := j.eject(j.now, a, "why"); got != want {
			t.Errorf("ejection %d lasts %s, want %s", i, got, want)
		}
		if _, ok := j.admit(j.now.Add(time.Hour)); ok {
			t.Error("a request is let through before a probe has reached it")
		}
		j.now = j.now.Add(want)
		j.reached()
	}
	a, _ := j.admit(j.now)
	j.report(j.now, a, good, 0)
	if !j.restore(j.now, a) {
		t.Fatal("it is not restored")
	}
	j.now = j.now.Add(119 * time.Second)
	if got := j.eject(j.now, a, "soon"); got != 60*time.Second {
		t.Errorf("one that fails again soon is ejected for %s, want 60s", got)
	}
	j.reached()
	a, _ = j.admit(j.now)
	j.restore(j.now, a)
	j.now = j.now.Add(121 * time.Second)
	if got := j.eject(j.now, a, "later"); got != 5*time.Second {
		t.Errorf("one that was good for long is ejected for %s, want 5s", got)
	}
}

func TestEjectionHasJitter(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 8 * time.Second, 0.5: 9 * time.Second, 1: 10 * time.Second} {
		if got := jittered(8*time.Second, func() float64 { return random }); got != want {
			t.Errorf("%g: %s, want %s", random, got, want)
		}
	}
}

// What was sent before an ejection says nothing after it.
func TestLateOutcomesDoNotCount(t *testing.T) {
	j := newJudged(Ejection{})
	old, _ := j.admit(j.now)
	j.eject(j.now, old, "why")
	j.reached()
	for _, o := range []outcome{failed, good, unknown} {
		if got := j.report(j.now, old, o, 1); got != (judgement{}) {
			t.Errorf("outcome %d decides the trial: %+v", o, got)
		}
	}
	if j.restore(j.now, old) || j.eject(j.now, old, "late") != 0 {
		t.Error("an old request changes the phase")
	}
	if a, ok := j.admit(j.now); !ok || !a.counted {
		t.Errorf("the trial has no place: %+v %t", a, ok)
	}
}

func TestTrialIsOneAtATime(t *testing.T) {
	j := newJudged(Ejection{})
	a, _ := j.admit(j.now)
	j.eject(j.now, a, "why")
	j.reached()
	first, ok := j.admit(j.now)
	if !ok {
		t.Fatal("no trial")
	}
	if _, ok := j.admit(j.now); ok {
		t.Error("two at a time")
	}
	if got := j.report(j.now, first, unknown, 0); got != (judgement{}) {
		t.Errorf("a client that leaves decides the trial: %+v", got)
	}
	second, ok := j.admit(j.now)
	if !ok {
		t.Fatal("the place of a client that has left stays taken")
	}
	j.now = j.now.Add(5 * time.Second)
	if _, ok := j.admit(j.now); !ok {
		t.Error("a request that takes long holds up all others")
	}
	if got := j.report(j.now, second, failed, 0); got.eject != "its trial failed" {
		t.Errorf("a trial that fails: %+v", got)
	}
}

func TestTrialByBusyAnswer(t *testing.T) {
	for _, c := range []struct {
		serving int
		want    judgement
	}{{0, judgement{back: true}}, {1, judgement{eject: "its trial failed", mild: true}}} {
		j := newJudged(Ejection{})
		a, _ := j.admit(j.now)
		j.eject(j.now, a, "why")
		j.reached()
		a, _ = j.admit(j.now)
		if got := j.report(j.now, a, busy, c.serving); got != c.want {
			t.Errorf("%d in service: %+v, want %+v", c.serving, got, c.want)
		}
	}
}

// room counts how many requests it would take now.
func (j *judged) room(t *testing.T) int {
	t.Helper()
	var taken []admission
	for len(taken) < 1000 {
		a, ok := j.admit(j.now)
		if !ok {
			break
		}
		taken = append(taken, a)
	}
	for _, a := range taken {
		j.report(j.now, a, unknown, 1)
	}
	return len(taken)
}

func TestSlowStart(t *testing.T) {
	restored := func() *judged {
		j := newJudged(Ejection{})
		a, _ := j.admit(j.now)
		j.eject(j.now, a, "why")
		j.reached()
		a, _ = j.admit(j.now)
		j.report(j.now, a, good, 0)
		j.restore(j.now, a)
		return j
	}
	j := restored()
	for _, c := range []struct {
		outcomes string
		places   int
	}{{"", 2}, {"g", 3}, {"ggg", 6}, {"f", 3}, {"f", 1}, {"f", 1}, {strings.Repeat("g", 63), 64}, {"g", 1000}} {
		j.sends(t, 1, c.outcomes)
		if got := j.room(t); got != c.places {
			t.Errorf("after %q more: %d places, want %d", c.outcomes, got, c.places)
		}
	}
	j = restored()
	j.now = j.now.Add(startTime + 1)
	if got := j.room(t); got != 1000 {
		t.Errorf("when the time for it is over: %d places", got)
	}
}
