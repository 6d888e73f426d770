package metrics

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What a function tells wrongly spoils its own series at most, and is logged.
func TestBrokenFigures(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := newMetrics(t, Config{
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
		Breakers: func() map[string]bool { return map[string]bool{"a\xff": true, "a\xfe": false} }, // one name when shown
	})
	text := page(t, m)
	if !strings.Contains(text, "headgate_build_info") || !strings.Contains(text, `headgate_breaker_open{node="a?"}`) {
		t.Errorf("the rest of the page is gone:\n%s", text)
	}
	if !strings.Contains(log.String(), "metrics could not be shown in full") {
		t.Errorf("logged: %q", log.String())
	}
}

func TestHisto(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		v    int64
		want int
	}{{-5, 0}, {0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 2}, {63, 6}, {64, 6}, {65, 7}, {1 << 62, 7}} {
		if got := newHisto(takeBounds).bucket(tc.v); got != tc.want {
			t.Errorf("bucket(%d) = %d, want %d", tc.v, got, tc.want)
		}
	}
	for _, bounds := range [][]int64{decisionBounds, callBounds, requestBounds, takeBounds} {
		if len(bounds) > maxBounds {
			t.Errorf("%d bounds do not fit", len(bounds))
		}
	}
	for processors, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 4, 16: 16, 100: 16} {
		if got := cellsFor(processors); got != want {
			t.Errorf("cellsFor(%d) = %d, want %d", processors, got, want)
		}
	}
}

// Durations of any size are spread over the cells.
func TestChance(t *testing.T) {
	t.Parallel()
	for _, unit := range []time.Duration{1, 100, time.Microsecond, 1024, time.Millisecond} {
		var hit [maxCells]int
		for i := range 1600 {
			*cell(hit[:], chance(time.Duration(i)*unit))++
		}
		for c, n := range hit {
			if n < 50 || n > 200 {
				t.Errorf("in units of %v cell %d is used %d times of 1600", unit, c, n)
			}
		}
	}
}

func BenchmarkDecided(b *testing.B) {
	m := newMetrics(b, Config{})
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("rule-", i)
	}
	m.SetRules(names)
	v := m.Policy()
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := time.Duration(0); b.Loop(); i++ {
			v.Decided("rule-500", "allow", 12*time.Microsecond+i)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := time.Duration(0); pb.Next(); i++ {
				v.Decided("rule-500", "allow", 12*time.Microsecond+i)
			}
		})
	})
}

func BenchmarkScrape(b *testing.B) {
	m := scene(b)
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprint("rule-", i)
	}
	m.SetRules(names)
	for b.Loop() {
		page(b, m)
	}
}
