package demo

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func draws(c chance, n int, one func(chance) time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = one(c)
	}
	return out
}

func TestChanceComesFromTheSeed(t *testing.T) {
	t.Parallel()
	one := func(c chance) time.Duration { return c.lognormal(time.Second, 1, time.Hour) }
	a, b := draws(newChance(7, 1), 50, one), draws(newChance(7, 1), 50, one)
	if !slices.Equal(a, b) {
		t.Error("the same seed and stream draw differently")
	}
	if slices.Equal(a, draws(newChance(8, 1), 50, one)) || slices.Equal(a, draws(newChance(7, 2), 50, one)) {
		t.Error("another seed, or another stream, draws the same")
	}
}

// TestDistributions checks medians and tails with margins that a right generator misses about never.
func TestDistributions(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for _, c := range []struct {
		name             string
		draw             func(chance) time.Duration
		least, most      time.Duration
		median, nineNine time.Duration // expected, give or take a sixth
	}{
		{"lognormal", func(c chance) time.Duration { return c.lognormal(time.Second, 0.8, time.Minute) }, 0, time.Minute, time.Second, 6431 * time.Millisecond},
		{"pareto", func(c chance) time.Duration { return c.pareto(time.Second, 1.5, time.Minute) }, time.Second, time.Minute, 1587 * time.Millisecond, 21544 * time.Millisecond},
		{"capped", func(c chance) time.Duration { return c.pareto(time.Second, 0.5, 3*time.Second) }, time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second},
		{"exponential", func(c chance) time.Duration { return c.exponential(time.Second, time.Minute) }, 0, time.Minute, 693 * time.Millisecond, 4605 * time.Millisecond},
		{"between", func(c chance) time.Duration { return c.between(time.Second, 3*time.Second) }, time.Second, 3 * time.Second, 2 * time.Second, 2980 * time.Millisecond},
	} {
		d := draws(newChance(1, 1), n, c.draw)
		slices.Sort(d)
		if d[0] < c.least || d[n-1] > c.most {
			t.Errorf("%s: drew %s to %s, want within %s to %s", c.name, d[0], d[n-1], c.least, c.most)
		}
		for _, q := range []struct{ got, want time.Duration }{{d[n/2], c.median}, {d[n*99/100], c.nineNine}} {
			if off := (q.got - q.want).Abs(); off > q.want/6 {
				t.Errorf("%s: got a percentile of %s, want about %s", c.name, q.got, q.want)
			}
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if !pause(ctx, 59*time.Second) || time.Since(start) != 59*time.Second {
			t.Errorf("a pause of 59s took %s", time.Since(start))
		}
		if pause(ctx, time.Hour) || time.Since(start) != time.Minute {
			t.Errorf("a pause that is cut off after a minute took %s", time.Since(start))
		}
		if pause(ctx, 0) {
			t.Error("a pause of nothing passed after the end")
		}
	})
}
