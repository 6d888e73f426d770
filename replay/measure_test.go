package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func TestSampleIsEven(t *testing.T) {
	t.Parallel()
	s := newSample[bool](1000)
	const keys = 50_000
	for round := range 2 { // a key that comes again counts once
		for i := range keys {
			if h := hashText("192.0.2." + strconv.Itoa(i)); s.wants(h) {
				s.put(h, i%4 == 0)
			}
		}
		hit := 0
		for _, v := range s.items {
			if v {
				hit++
			}
		}
		all, part := s.scale(len(s.items)), s.scale(hit)
		if len(s.items) > 1000 || s.whole() || all < keys*8/10 || all > keys*12/10 || part < keys/4*7/10 || part > keys/4*13/10 {
			t.Errorf("round %d: %d in the sample, which stand for %d and %d; want about %d and %d", round, len(s.items), all, part, keys, keys/4)
		}
	}
}

func TestSampleIsExactUpToItsBound(t *testing.T) {
	t.Parallel()
	s := newSample[int](1000)
	for i := range 1000 {
		s.put(hashText(strconv.Itoa(i)), i)
	}
	if !s.whole() || s.scale(len(s.items)) != 1000 {
		t.Errorf("%d, whole %v", len(s.items), s.whole())
	}
}

// TestHeavyKeysAreFound: every key with more than its part of all denials is there, and its count is never too low.
func TestHeavyKeysAreFound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	h := newHeavy(50)
	truth := map[string]int64{}
	total := int64(0)
	for range 200_000 {
		key := "k" + strconv.Itoa(int(r.ExpFloat64()*300))
		if r.IntN(3) == 0 {
			key = "heavy" + strconv.Itoa(r.IntN(5))
		}
		h.see(hashText(key), key, true)
		truth[key]++
		total++
	}
	found := map[string]*counter{}
	for _, c := range h.order {
		found[c.key] = c
	}
	for key, n := range truth {
		if c := found[key]; n > total/50 && c == nil {
			t.Errorf("%s with %d of %d is not among them", key, n, total)
		} else if c != nil && (c.denied < n || c.denied-c.over > n) {
			t.Errorf("%s: counted %d, of which at most %d too many; there were %d", key, c.denied, c.over, n)
		}
	}
	if len(h.order) != 50 || len(h.byHash) != 50 {
		t.Errorf("%d and %d counters", len(h.order), len(h.byHash))
	}
}

// event is one request of a key in a test of gauges.
type event struct{ at, cost int64 }

func events(r *rand.Rand, n int, gap time.Duration) []event {
	var all []event
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC).UnixMicro()
	for range n {
		at += int64(r.ExpFloat64() * float64(gap.Microseconds()))
		if r.IntN(20) == 0 {
			at += 40 * gap.Microseconds()
		}
		all = append(all, event{at, 1 + int64(r.IntN(3))})
	}
	return all
}

// mostIn is the most in any time of a period, counted in the plainest way.
func mostIn(all []event, period int64) (most int64) {
	for i := range all {
		sum := int64(0)
		for j := i; j >= 0 && all[j].at > all[i].at-period; j-- {
			sum += all[j].cost
		}
		most = max(most, sum)
	}
	return most
}

func TestSlidingGauge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		for _, c := range []struct {
			gap   time.Duration
			exact bool
		}{{20 * time.Second, true}, {time.Second, false}} {
			g := newGauge(headgate.MustParseLimit("sliding_log 5/5m"))
			var u usage
			all := events(r, 500, c.gap)
			for _, e := range all {
				g.add(&u, e.at, e.cost)
			}
			want := mostIn(all, g.period)
			// Times that are closer together than a part of the period count as one, so the sum is that of a longer period.
			most := mostIn(all, g.period+g.quantum)
			if u.peak < want || u.peak > most || c.exact && u.peak != want {
				t.Errorf("seed %d, a request every %s: got %d, want %d, at most %d", seed, c.gap, u.peak, want, most)
			}
			if len(u.grains) > mostGrains {
				t.Errorf("%d grains", len(u.grains))
			}
		}
	}
}

func TestAlignedGauge(t *testing.T) {
	t.Parallel()
	at := func(text string) int64 {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when.UnixMicro()
	}
	for limit, c := range map[string]struct {
		times []string
		want  int64
	}{
		"fixed_window 5/1h":                         {[]string{"2026-01-01T00:59:59Z", "2026-01-01T01:00:00Z", "2026-01-01T01:59:59Z", "2026-01-01T02:00:00Z"}, 2},
		"fixed_window 5/day zone=Asia/Shanghai":     {[]string{"2026-01-01T15:59:59Z", "2026-01-01T16:00:00Z", "2026-01-02T15:59:59Z", "2026-01-02T16:00:00Z"}, 2},
		"fixed_window 5/day zone=America/New_York":  {[]string{"2026-03-08T04:59:59Z", "2026-03-08T05:00:00Z", "2026-03-09T03:59:59Z", "2026-03-09T04:00:00Z"}, 2}, // 23 hours
		"fixed_window 5/week":                       {[]string{"2026-01-04T23:59:59Z", "2026-01-05T00:00:00Z", "2026-01-11T23:59:59Z", "2026-01-12T00:00:00Z"}, 2},
		"fixed_window 5/month":                      {[]string{"2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59Z", "2026-03-01T00:00:00Z"}, 2},
		"fixed_window 5/hour zone=Asia/Kolkata":     {[]string{"2026-01-01T00:29:59Z", "2026-01-01T00:30:00Z", "2026-01-01T01:29:59Z", "2026-01-01T01:30:00Z"}, 2},
		"fixed_window 5/1m":                         {[]string{"1969-12-31T23:58:59Z", "1969-12-31T23:59:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"}, 2},
		"fixed_window 5/day zone=America/Sao_Paulo": {[]string{"2018-11-04T02:59:59Z", "2018-11-04T03:00:00Z", "2018-11-05T01:59:59Z", "2018-11-05T02:00:00Z"}, 2}, // begins at 01:00
		"fixed_window 5/day zone=America/Havana":    {[]string{"2026-11-01T03:00:00Z", "2026-11-01T03:30:00Z", "2026-11-01T04:30:00Z"}, 2},                         // has two midnights
	} {
		g := newGauge(headgate.MustParseLimit(limit))
		var u usage
		for _, text := range c.times {
			g.add(&u, at(text), 1)
		}
		if got := g.need(&u); got != c.want {
			t.Errorf("%s: got %d, want %d", limit, got, c.want)
		}
	}
}

// TestSuggestionsHold: under a limit that is suggested for all keys of a log, no request of the same log is denied, and under
// one that is a unit smaller, one is.
func TestSuggestionsHold(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	var log strings.Builder
	at := 0
	for range 3000 {
		if r.IntN(6) == 0 {
			at += r.IntN(40)
		}
		log.WriteString(lineAt(at, fmt.Sprintf("192.0.2.%d", r.IntN(9)), "/"))
	}
	file := writeFile(t, "log", log.String())
	for _, c := range []struct{ limit, smaller string }{
		{"sliding_log 1/1m", "sliding_log %d/1m"},
		{"fixed_window 1/1m", "fixed_window %d/1m"},
		{"fixed_window 1/hour zone=Asia/Kolkata", "fixed_window %d/hour zone=Asia/Kolkata"},
		{"token_bucket 1/1m burst=1", ""},
		{"token_bucket 1/s burst=2", "token_bucket 1/s burst=%d"},
		{"token_bucket 0.2/s", "token_bucket 0.2/s burst=%d"},
		{"token_bucket 0/s", ""},
		{"leaky_bucket 1/s capacity=1", "leaky_bucket 1/s capacity=%d"},
		{"leaky_bucket 1/s capacity=1 max_wait=1s", ""},
		{"leaky_bucket 1/s max_wait=0s", ""},
		{"leaky_bucket 3/s max_wait=500ms", ""},
		{"sliding_window 1/1m cells=6", ""},
	} {
		first := mustReplay(t, c.limit, file)
		if first.Total.Denied == 0 || len(first.Suggestions) != 1 {
			t.Errorf("%s: %d denied, %+v", c.limit, first.Total.Denied, first.Suggestions)
			continue
		}
		s := first.Suggestions[0]
		if then := mustReplay(t, s.P999, file); then.Total.Denied != 0 {
			t.Errorf("%s: %s is suggested, and %d requests are denied under it", c.limit, s.P999, then.Total.Denied)
		}
		if c.smaller != "" {
			smaller := fmt.Sprintf(c.smaller, s.Need.Max-1)
			if then := mustReplay(t, smaller, file); then.Total.Denied == 0 {
				t.Errorf("%s: %s is suggested, and %s would do", c.limit, s.P999, smaller)
			}
		}
	}
}

func TestSuggestionsBeyondALimitsKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit       string
		need, most  int64
		want, notes string
	}{
		{"sliding_log 5/5m", 1001, 1001, "sliding_window 1001/5m", "too many for a sliding_log; a window in cells counts a little otherwise"},
		{"sliding_log 5/5m", 1000, 1000, "sliding_log 1000/5m", ""},
		{"token_bucket 1/s burst=5", 70, 7, "token_bucket 1/s burst=70", ""},
		{"token_bucket 1/s burst=5", 71, 7, "token_bucket 7/s", "its rate is too low for them"},
		{"leaky_bucket 10/s max_wait=2s", 31, 20, "leaky_bucket 10/s max_wait=3s", ""},
		{"sliding_window 6/1m cells=6", 0, 0, "sliding_window 1/1m cells=6", ""},
		{"concurrency 5 ttl=1m", 3, 3, "", ""},
		{"fixed_window 5/month zone=UTC", 3_000_000_000_000, 1, "", ""}, // beyond what a limit can have
	} {
		got, notes := newGauge(headgate.MustParseLimit(c.limit)).suggestText(c.need, c.most)
		if got != c.want || notes != c.notes {
			t.Errorf("%s for %d: got %q (%s), want %q (%s)", c.limit, c.need, got, notes, c.want, c.notes)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var values []int64
	for i := range int64(1000) {
		values = append(values, i+1)
	}
	for thousandths, want := range map[int]int64{500: 500, 990: 990, 999: 999, 1000: 1000, 0: 1} {
		if got := quantile(values, thousandths); got != want {
			t.Errorf("%d: got %d, want %d", thousandths, got, want)
		}
	}
	if got := quantile([]int64{7}, 990); got != 7 {
		t.Errorf("of one: %d", got)
	}
}

func TestSeriesKeepsEveryRequest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for _, gap := range []int64{0, 1, 7, 300, 86_400, 3_000_000} {
		var s series
		at := int64(-1_000_000) * 1e6
		for i := range int64(5000) {
			s.at(at).add(i%2 == 0, i%3 == 0)
			at += r.Int64N(gap*1e6 + 1)
		}
		var sum point
		for _, p := range s.points {
			sum.requests += p.requests
			sum.allowed += p.allowed
			sum.before += p.before
		}
		if sum != (point{5000, 2500, 1667}) || len(s.points) > mostPoints {
			t.Errorf("gap %d s: %+v in %d points of %d s", gap, sum, len(s.points), widthOf(s.width))
		}
	}
}

func TestCloseUpIsAroundThePeak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peak, end int64 // the log has one request a second from 1000 on, and five at the peak
		from, to  int64
	}{
		"middle":    {5000, 9000, 4700, 5299},
		"start":     {1010, 9000, 1000, 1309},
		"end":       {8990, 9000, 8401, 9000},
		"short log": {1005, 1020, 1000, 1020},
	} {
		var u closeUp
		for s := int64(1000); s <= c.end; s++ {
			for range map[bool]int{true: 5, false: 1}[s == c.peak] {
				u.at(s*1e6+7).add(true, false)
			}
		}
		from, points := u.end()
		if from != c.from || from+int64(len(points))-1 != c.to || u.peakAt != c.peak || points[c.peak-from].requests != 5 {
			t.Errorf("%s: %d to %d, peak at %d; want %+v", name, from, from+int64(len(points))-1, u.peakAt, c)
		}
		for i, p := range points {
			if want := map[bool]int64{true: 5, false: 1}[from+int64(i) == c.peak]; p.requests != want {
				t.Errorf("%s: second %d has %d, want %d", name, from+int64(i), p.requests, want)
			}
		}
	}
}

func TestCloseUpAcrossGaps(t *testing.T) {
	t.Parallel()
	var u closeUp
	for _, s := range []int64{0, 1, 1, 1, 2, 10_000, 10_001, 10_300, 50_000} {
		u.at(s*1e6).add(true, false)
	}
	from, points := u.end()
	counts := []int64{}
	for _, p := range points {
		counts = append(counts, p.requests)
	}
	if from != 0 || !slices.Equal(counts, []int64{1, 3, 1}) {
		t.Errorf("from %d: %v", from, counts)
	}
}

func TestManyKeysAreEstimated(t *testing.T) {
	t.Parallel()
	info := RuleInfo{Name: "all", Keyed: true, Limits: limits("fixed_window 2/1h")}
	p, f := newFake(t, "p", fakeRule{RuleInfo: info, key: "ip"})
	for i := range 599 { // each rule gets a part of the room: 500 keys
		p.Rules = append(p.Rules, RuleInfo{Name: fmt.Sprintf("other-%d", i)})
	}
	_ = f
	var log strings.Builder
	for i := range 20_000 {
		log.WriteString(lineAt(i/100, fmt.Sprintf("10.0.%d.%d", i/256%256, i%256), "/"))
		if i%10 == 0 {
			log.WriteString(lineAt(i/100, "203.0.113.9", "/"))
		}
	}
	r, err := Run(t.Context(), Config{Policy: p, Files: []string{"-"}, Stdin: strings.NewReader(log.String()), Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Suggestions[0].Keys; !got.Estimated || got.N < 15_000 || got.N > 25_000 {
		t.Errorf("keys: %+v, want about 20,001", got)
	}
	top := r.Rules[0].TopKeys
	if len(top) != 1 || top[0].Key != "203.0.113.9" || top[0].Requests > 2000 || top[0].Requests < 1900 || top[0].Denied != 1998 || !top[0].Estimated {
		t.Errorf("top: %+v, want the one that was denied 1998 of 2000 times", top)
	}
	if r.Log.Clients != (Count{N: 20_001}) {
		t.Errorf("clients: %+v", r.Log.Clients)
	}
}
