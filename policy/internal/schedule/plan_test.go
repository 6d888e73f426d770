package schedule

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

func mustPlan(t interface{ Fatal(...any) }, base []headgate.Limit, entries []Entry, w *Warmup) *Plan {
	p, err := New(base, entries, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func limits(texts ...string) (all []headgate.Limit) {
	for _, text := range texts {
		all = append(all, limit(text))
	}
	return all
}

// TestAt is the schedule of the documentation.
func TestAt(t *testing.T) {
	t.Parallel()
	base, evening, sale := limits("token_bucket 1/s burst=5"), limits("token_bucket 4/s burst=5"), limits("token_bucket 2/s burst=5")
	p := mustPlan(t, base, []Entry{
		{Daily: mustDaily(t, "19:50-21:00", "Asia/Shanghai"), Limits: evening, Ramp: 10 * time.Minute},
		{From: mustTime(t, "2026-11-11T00:00:00+08:00"), To: mustTime(t, "2026-11-11T02:00:00+08:00"), Limits: sale},
	}, nil)
	for _, tc := range []struct {
		now         string
		want        headgate.Limit
		from, until string
	}{
		{"2026-11-10T19:49:59.999999+08:00", base[0], "2026-11-09T21:00:00+08:00", "2026-11-10T19:50:00+08:00"},
		{"2026-11-10T19:50:00+08:00", base[0], "2026-11-10T19:50:00+08:00", "2026-11-10T19:50:01+08:00"},
		{"2026-11-10T19:50:01+08:00", limit("token_bucket 1.005/s burst=5"), "2026-11-10T19:50:01+08:00", "2026-11-10T19:50:02+08:00"},
		{"2026-11-10T19:55:00.5+08:00", limit("token_bucket 2.5/s burst=5"), "2026-11-10T19:55:00+08:00", "2026-11-10T19:55:01+08:00"},
		{"2026-11-10T19:59:59+08:00", limit("token_bucket 3.995/s burst=5"), "2026-11-10T19:59:59+08:00", "2026-11-10T20:00:00+08:00"},
		{"2026-11-10T20:00:00+08:00", evening[0], "2026-11-10T20:00:00+08:00", "2026-11-10T21:00:00+08:00"},
		{"2026-11-10T21:00:00+08:00", base[0], "2026-11-10T21:00:00+08:00", "2026-11-11T00:00:00+08:00"},
		{"2026-11-11T00:00:00+08:00", sale[0], "2026-11-11T00:00:00+08:00", "2026-11-11T02:00:00+08:00"},
		{"2026-11-11T02:00:00+08:00", base[0], "2026-11-11T02:00:00+08:00", "2026-11-11T19:50:00+08:00"},
	} {
		got, from, until := p.At(mustTime(t, tc.now), time.Time{})
		if len(got) != 1 || got[0] != tc.want || !from.Equal(mustTime(t, tc.from)) || !until.Equal(mustTime(t, tc.until)) {
			t.Errorf("at %s: got %v from %s until %s, want %v from %s until %s", tc.now, got, from, until, tc.want, tc.from, tc.until)
		}
	}
}

// TestAtWarmsUpWhatIsInForce: a warm-up that meets a ramp, whose steps are not those of the warm-up.
func TestAtWarmsUpWhatIsInForce(t *testing.T) {
	t.Parallel()
	p := mustPlan(t, limits("token_bucket 100/s burst=200", "sliding_log 100/1m"), []Entry{
		{From: mustTime(t, "2026-01-01T10:00:00Z"), To: mustTime(t, "2026-01-01T11:00:00Z"), Limits: limits("token_bucket 200/s burst=400", "sliding_log 0/1m"), Ramp: 10 * time.Second},
	}, &Warmup{From: 0.5, Over: 10 * time.Second})
	inForce := mustTime(t, "2026-01-01T10:00:00.4Z")
	for _, tc := range []struct {
		now         string
		want        []headgate.Limit
		from, until string
	}{
		{"2026-01-01T10:00:01.3Z", limits("token_bucket 55/s burst=110", "sliding_log 45/1m"), "2026-01-01T10:00:01Z", "2026-01-01T10:00:01.4Z"},
		{"2026-01-01T10:00:01.4Z", limits("token_bucket 60.5/s burst=121", "sliding_log 49/1m"), "2026-01-01T10:00:01.4Z", "2026-01-01T10:00:02Z"},
		{"2026-01-01T10:00:10Z", limits("token_bucket 190/s burst=380", "sliding_log 0/1m"), "2026-01-01T10:00:10Z", "2026-01-01T10:00:10.4Z"},
		{"2026-01-01T10:00:10.4Z", limits("token_bucket 200/s burst=400", "sliding_log 0/1m"), "2026-01-01T10:00:10.4Z", "2026-01-01T11:00:00Z"},
	} {
		got, from, until := p.At(mustTime(t, tc.now), inForce)
		if !slices.Equal(got, tc.want) || !from.Equal(mustTime(t, tc.from)) || !until.Equal(mustTime(t, tc.until)) {
			t.Errorf("at %s: got %v from %s until %s", tc.now, got, from, until)
		}
	}
}

// TestConstant: a plan without entries and warm-up, at any time.
func TestConstant(t *testing.T) {
	base := limits("token_bucket 1/s", "concurrency 5 ttl=1s")
	p := mustPlan(t, base, nil, nil)
	if !p.Constant() || len(p.Extremes()) != 1 {
		t.Errorf("constant: %v, %v", p.Constant(), p.Extremes())
	}
	for _, now := range []time.Time{{}, time.Unix(0, 0), time.Unix(1<<40, 0)} {
		if got, from, until := p.At(now, now); !slices.Equal(got, base) || !from.IsZero() || until.Year() != 9999 {
			t.Errorf("at %s: %v from %s until %s", now, got, from, until)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { p.At(time.Unix(0, 0), time.Time{}) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestExtremes(t *testing.T) {
	t.Parallel()
	base, other := limits("token_bucket 1/s"), limits("token_bucket 2/s")
	entries := []Entry{
		{Daily: mustDaily(t, "01:00-02:00", ""), Limits: other},
		{Daily: mustDaily(t, "02:00-03:00", ""), Limits: base},
		{Daily: mustDaily(t, "03:00-04:00", ""), Limits: other},
	}
	p := mustPlan(t, base, entries, nil)
	got := p.Extremes()
	if len(got) != 2 || !slices.Equal(got[0], base) || !slices.Equal(got[1], other) || p.Constant() {
		t.Errorf("got %v", got)
	}
	got[0][0], entries[0].Limits[0] = nil, nil // neither is the plan's own
	if now, _, _ := p.At(time.Unix(0, 0), time.Time{}); now[0] != base[0] {
		t.Errorf("the base became %v", now)
	}
	if now, _, _ := p.At(time.Unix(5400, 0), time.Time{}); now[0] != limit("token_bucket 2/s") {
		t.Errorf("the entry became %v", now)
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	base := limits("token_bucket 1/s", "fixed_window 10/1m")
	noon := mustDaily(t, "12:00-13:00", "Asia/Shanghai")
	ten, eleven := mustTime(t, "2026-11-11T10:00:00+08:00"), mustTime(t, "2026-11-11T11:00:00+08:00")
	for _, tc := range []struct {
		entry Entry
		want  string
	}{
		{Entry{Daily: noon}, "it has 0 limits and the rule has 2 limits; the limits of an entry replace those of the rule one by one"},
		{Entry{Daily: noon, Limits: limits("token_bucket 1/s")}, "it has 1 limit and the rule has 2 limits"},
		{Entry{Daily: noon, Limits: []headgate.Limit{limit("token_bucket 1/s"), nil}}, "limit 2 is missing"},
		{Entry{Limits: base}, "it has no time; give it daily, or from and to"},
		{Entry{From: ten, Limits: base}, "from has no to; give it an end"},
		{Entry{To: ten, Limits: base}, "to has no from; give it a begin"},
		{Entry{From: eleven, To: ten, Limits: base}, "it ends, at 2026-11-11T10:00:00+08:00, no later than it begins, at 2026-11-11T11:00:00+08:00"},
		{Entry{From: ten, To: ten, Limits: base}, "no later than it begins"},
		{Entry{Daily: &Daily{}, Limits: base}, "its daily time is empty"},
		{Entry{Daily: noon, Limits: base, Ramp: -1}, "ramp -1ns is negative; leave it out for none"},
		{Entry{Daily: noon, Limits: base, Ramp: 61 * time.Minute}, "ramp 1h1m0s is longer than the entry; it lasts 1h0m0s"},
		{Entry{From: ten, To: eleven, Limits: base, Ramp: time.Hour + 1}, "ramp 1h0m0.000000001s is longer than the entry; it lasts 1h0m0s"},
		{
			Entry{Daily: noon, Limits: limits("token_bucket 5/s", "fixed_window 10/1h"), Ramp: time.Minute},
			`ramp from "fixed_window 10/1m" to "fixed_window 10/1h": the period changes; drop the ramp, which switches at once`,
		},
	} {
		_, err := New(base, []Entry{{Daily: mustDaily(t, "01:00-02:00", ""), Limits: base}, tc.entry}, nil)
		var wrong *EntryError
		if !errors.As(err, &wrong) || wrong.Entry != 1 || wrong.Other != -1 || !strings.Contains(wrong.Message, tc.want) || err.Error() != "entry 2 of the schedule: "+wrong.Message {
			t.Errorf("%v: got %v, want %s", tc.entry, err, tc.want)
		}
	}
	if _, err := New([]headgate.Limit{nil}, nil, nil); err == nil {
		t.Error("a base limit that is missing passed")
	}
	if _, err := New(base, make([]Entry, MaxEntries+1), nil); err == nil || !strings.Contains(err.Error(), "201 entries are too many; 200 are allowed") {
		t.Errorf("too many entries: %v", err)
	}
	if _, err := New(base, []Entry{{Daily: noon, Limits: limits("sliding_log 1/1s", "fixed_window 10/1h")}}, nil); err != nil {
		t.Errorf("other algorithms without a ramp: %v", err)
	}
}

// genPlan draws a plan whose entries do not overlap, most of them around a time.
func genPlan(t *rapid.T, around int64) *Plan {
	base := []headgate.Limit{limit("token_bucket 10/s burst=100"), limit("fixed_window 1000/1m")}
	zones := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC"}
	var kept []Entry
	for i := range rapid.IntRange(1, 6).Draw(t, "entries") {
		e := Entry{Limits: []headgate.Limit{limit("token_bucket 50/s burst=200"), limit("fixed_window 7/1m")}}
		if rapid.Bool().Draw(t, "daily") {
			e.Daily = genDaily(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		} else {
			from := around + rapid.Int64Range(-2*day, 2*day).Draw(t, "from")
			e.From, e.To = timeOf(from), timeOf(from+rapid.Int64Range(1, day).Draw(t, "length"))
		}
		e.Ramp = min(e.length(), time.Duration(rapid.SampledFrom([]int64{0, 1, 30e9, 90e9, 3600e9, math.MaxInt64}).Draw(t, "ramp")))
		if _, err := New(base, append(kept, e), nil); err == nil || i == 0 {
			kept = append(kept, e)
		}
	}
	var w *Warmup
	if rapid.Bool().Draw(t, "warm") {
		w = &Warmup{From: 0.25, Over: time.Duration(rapid.Int64Range(1, 3600e9).Draw(t, "over"))}
	}
	return mustPlan(t, base, kept, w)
}

// TestAtHolds: from one end to the next the limits are the same, whenever they are asked for, and the pieces meet.
func TestAtHolds(t *testing.T) {
	t.Parallel()
	times := clockZones()["America/New_York"]
	times = append(times, clockZones()["Pacific/Apia"]...)
	rapid.Check(t, func(t *rapid.T) {
		change := micros(mustTime(t, rapid.SampledFrom(times).Draw(t, "change")))
		p := genPlan(t, change)
		inForce := timeOf(change + rapid.Int64Range(-day, day).Draw(t, "in force"))
		now := timeOf(change + rapid.Int64Range(-day, day).Draw(t, "now"))
		for range 50 {
			limits, from, until := p.At(now, inForce)
			if from.After(now) || !until.After(now) {
				t.Fatalf("at %s: from %s until %s", now, from, until)
			}
			inside := timeOf(rapid.Int64Range(max(micros(from), change-10*day), micros(until)-1).Draw(t, "inside"))
			for _, same := range []time.Time{inside, until.Add(-time.Microsecond)} {
				again, _, end := p.At(same, inForce)
				if !slices.Equal(again, limits) || end.Before(until) {
					t.Fatalf("at %s: %v until %s; at %s: %v until %s", now, limits, until, same, again, end)
				}
			}
			if now = until; micros(until) == future {
				break
			}
		}
	})
}

// TestAtIsTheSlowClock compares the limits with what a clock looked at every minute says.
func TestAtIsTheSlowClock(t *testing.T) {
	t.Parallel()
	const minute = 60 * second
	over := span{micros(mustTime(t, "2026-10-24T00:00:00Z")), micros(mustTime(t, "2026-11-03T00:00:00Z"))}
	clocks := map[string]*slowClock{}
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC"} {
		clocks[zone] = newSlowClock(zone, over, minute)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan(t, over.from+5*day)
		p.warmup = nil
		for i := range p.entries {
			p.entries[i].ramp = 0
			if d := p.entries[i].daily; d != nil && (d.start%minute != 0 || d.end%minute != 0) {
				t.Skip("a clock that is looked at every minute cannot tell") // what ends in the minute that is shown again
			}
		}
		for i := range clocks["UTC"].shown {
			now := over.from + int64(i)*minute
			want := p.base
			for _, e := range p.entries {
				if e.once.holds(now) || e.daily != nil && clocks[e.daily.Zone()].on(e.daily, i) {
					want = e.limits
				}
			}
			if got, _, _ := p.At(timeOf(now), time.Time{}); !slices.Equal(got, want) {
				t.Fatalf("at %s: got %v, want %v", timeOf(now), got, want)
			}
		}
	})
}
