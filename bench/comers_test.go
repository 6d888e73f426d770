package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestComersComeAtTheirTimes: in the order of their times, as often as they want, never early, and not when the time is over.
func TestComersComeAtTheirTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var seen []int
		due := map[int]time.Time{}
		c := comers[int]{connections: 2, step: func(_ context.Context, _ *wire, v int) time.Time {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, v)
			if now := time.Now(); !now.Equal(due[v]) {
				t.Errorf("%d came %s late", v, now.Sub(due[v]))
			}
			if v < 10 || time.Since(began) > 10*time.Second {
				return time.Time{}
			}
			due[v] = due[v].Add(4 * time.Second)
			return due[v]
		}}
		var list []visit[int]
		for v, after := range map[int]time.Duration{1: 3 * time.Second, 2: time.Second, 30: 2 * time.Second} {
			due[v] = began.Add(after)
			list = append(list, visit[int]{due[v], v})
		}
		c.come(t.Context(), list)
		if want := []int{2, 30, 1, 30, 30, 30}; !slices.Equal(seen, want) {
			t.Errorf("they came as %v, want %v", seen, want)
		}
		if took := time.Since(began); took != 14*time.Second {
			t.Errorf("the last one was there after %s", took)
		}
	})
}

// TestComersAreGivenUp: whoever is still to come when ctx ends does not, and nobody is left behind.
func TestComersAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		steps := 0
		c := comers[int]{connections: 3, step: func(context.Context, *wire, int) time.Time {
			steps++
			return time.Now().Add(25 * time.Second)
		}}
		c.come(ctx, []visit[int]{{time.Now(), 1}})
		if steps != 3 {
			t.Errorf("%d steps in a minute, one every 25 s", steps)
		}
	})
}
