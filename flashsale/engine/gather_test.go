package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestGatherSharesCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		g := newGather(2, 10, func(_ context.Context, keys []int) (map[int]string, error) {
			mu.Lock()
			sizes = append(sizes, len(keys))
			mu.Unlock()
			time.Sleep(time.Second)
			answers := map[int]string{}
			for _, k := range keys {
				if k%7 != 0 {
					answers[k] = fmt.Sprint("answer ", k)
				}
			}
			return answers, nil
		})
		began := time.Now()
		var all sync.WaitGroup
		ask := func(k int) {
			all.Go(func() {
				v, found, err := g.get(t.Context(), k)
				if err != nil || found != (k%7 != 0) || found && v != fmt.Sprint("answer ", k) {
					t.Errorf("of %d: %q, %v, %v", k, v, found, err)
				}
			})
			synctest.Wait()
		}
		for k := range 21 {
			ask(k)
		}
		ask(20) // shares a place with the one before
		all.Wait()
		// Two alone, since nothing was under way, then a full call beside one of what was left.
		slices.Sort(sizes)
		if fmt.Sprint(sizes) != "[1 1 9 10]" || time.Since(began) != 2*time.Second {
			t.Errorf("the calls had %v keys, in %s", sizes, time.Since(began))
		}
	})
}

// TestGatherIsNeverOld: who asks while a call is under way does not get the answer of that one.
func TestGatherIsNeverOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state := 1
		g := newGather(1, 10, func(_ context.Context, keys []string) (map[string]int, error) {
			read := state
			time.Sleep(time.Second)
			return map[string]int{keys[0]: read}, nil
		})
		go func() { _, _, _ = g.get(t.Context(), "k") }()
		synctest.Wait()
		state = 2
		if v, _, err := g.get(t.Context(), "k"); v != 2 || err != nil {
			t.Errorf("got %d, %v, want what was true when it was asked for", v, err)
		}
	})
}

// TestGatherSurvivesItsCaller: if who makes a call leaves, those who share it are answered all the same.
func TestGatherSurvivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGather(1, 10, func(ctx context.Context, keys []string) (map[string]int, error) {
			if !pause(ctx, time.Second) {
				return nil, ctx.Err()
			}
			return map[string]int{keys[0]: len(keys)}, nil
		})
		var all sync.WaitGroup
		get := func(ctx context.Context, key string, want flashsale.Code) {
			all.Go(func() {
				_, _, err := g.get(ctx, key)
				wantCode(t, key, err, want)
			})
			synctest.Wait()
		}
		leaves, cancel := context.WithCancel(t.Context())
		get(leaves, "first", flashsale.CodeUnavailable)
		waiting, giveUp := context.WithCancel(t.Context())
		get(waiting, "second", flashsale.CodeUnavailable) // makes the second call, and waits for a slot
		get(t.Context(), "third", "")
		get(t.Context(), "fourth", "")
		giveUp()
		synctest.Wait()
		cancel()
		all.Wait()
		if g.open != nil || len(g.slots) != 0 {
			t.Error("a call is left open")
		}
	})
}

func TestGatherSharesErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	g := newGather(1, 10, func(context.Context, []string) (map[string]int, error) { return nil, broken })
	if _, found, err := g.get(t.Context(), "k"); found || !errors.Is(err, broken) {
		t.Errorf("%v, %v", found, err)
	}
}

// TestGatherThatPanics: who shares a call that panics is told of a fault, and not that there is nothing.
func TestGatherThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGather(1, 10, func(_ context.Context, keys []string) (map[string]int, error) {
			time.Sleep(time.Second)
			if len(keys) > 1 {
				panic("in the store")
			}
			return nil, nil
		})
		go func() { _, _, _ = g.get(t.Context(), "first") }()
		synctest.Wait()
		var all sync.WaitGroup
		all.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is not its caller's any more")
				}
			}()
			_, _, _ = g.get(t.Context(), "second")
		})
		synctest.Wait()
		all.Go(func() {
			_, found, err := g.get(t.Context(), "third")
			if wantCode(t, "who shares the call", err, flashsale.CodeInternal); found {
				t.Error("there is an answer")
			}
		})
		all.Wait()
	})
}
