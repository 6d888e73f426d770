package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func documented(b *testing.B, second string) (base []headgate.Limit, entries []Entry) {
	return limits("token_bucket 1/s burst=5"), []Entry{
		{Daily: mustDaily(b, "19:50-21:00", "America/New_York"), Limits: limits("token_bucket 4/s burst=5"), Ramp: 10 * time.Minute},
		{Daily: mustDaily(b, "10:00-11:00", second), Limits: limits("token_bucket 4/s burst=5")},
		{From: mustTime(b, "2026-11-11T00:00:00-05:00"), To: mustTime(b, "2026-11-11T02:00:00-05:00"), Limits: limits("token_bucket 2/s burst=5")},
	}
}

// BenchmarkNew: a schedule in one zone, in two, and in as many as there can be.
func BenchmarkNew(b *testing.B) {
	for _, second := range []string{"America/New_York", "Asia/Shanghai"} {
		b.Run(second, func(b *testing.B) {
			base, entries := documented(b, second)
			for b.Loop() {
				mustPlan(b, base, entries, nil)
			}
		})
	}
	b.Run("hostile", func(b *testing.B) {
		var entries []Entry
		for i, name := range strings.Fields(zoneNames)[:MaxEntries] {
			entries = append(entries, Entry{Daily: mustDaily(b, fmt.Sprintf("10:%02d:%02d-10:%02d:%02d", i/60, i%60, (i+1)/60, (i+1)%60), name)})
		}
		for b.Loop() {
			mustPlan(b, nil, entries, nil)
		}
	})
}

func BenchmarkAt(b *testing.B) {
	base, entries := documented(b, "America/New_York")
	p := mustPlan(b, base, entries, &Warmup{From: 0.1, Over: time.Hour})
	pause, ramp := mustTime(b, "2026-06-01T08:00:00-04:00"), mustTime(b, "2026-06-01T19:55:01-04:00")
	b.Run("pause", func(b *testing.B) {
		for b.Loop() {
			p.At(pause, time.Time{})
		}
	})
	b.Run("ramp", func(b *testing.B) {
		for b.Loop() {
			p.At(ramp, time.Time{})
		}
	})
	b.Run("ramp and warmup", func(b *testing.B) {
		for b.Loop() {
			p.At(ramp, ramp.Add(-time.Minute))
		}
	})
}
