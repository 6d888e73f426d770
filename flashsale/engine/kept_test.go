package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// counting is a kept number: how often it was read.
func counting(reads *int, fail *error, takes time.Duration) *kept[int] {
	return &kept[int]{read: func(ctx context.Context) (int, error) {
		*reads++
		n := *reads
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		return n, *fail
	}}
}

func TestKeptIsReadOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads int
		var fail error
		k := counting(&reads, &fail, 10*time.Millisecond)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if v, err := k.get(t.Context(), time.Second, 10*time.Second); v != 1 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Second)
		all.Go(func() {
			if v, _ := k.get(t.Context(), time.Second, 10*time.Second); v != 2 {
				t.Errorf("who reads gets %d", v)
			}
		})
		synctest.Wait()
		if v, _ := k.get(t.Context(), time.Second, 10*time.Second); v != 1 {
			t.Errorf("while it is read the old one is good: %d", v)
		}
		if v, _ := k.get(t.Context(), 100*time.Millisecond, 0); v != 2 {
			t.Errorf("who needs a new one waits for it: %d", v)
		}
		all.Wait()
		if reads != 2 {
			t.Errorf("%d readings", reads)
		}
	})
}

// TestKeptSurvivesFailures: what was kept is better than nothing, a store that fails is not asked by everybody, and a reading that hangs ends.
func TestKeptSurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads int
		fail := errors.New("down")
		k := counting(&reads, &fail, time.Millisecond)
		for range 100 {
			if _, err := k.get(t.Context(), time.Second, 0); err == nil {
				t.Fatal("nothing was kept, and something came")
			}
		}
		if reads != 1 {
			t.Errorf("a store that is down is asked %d times at once", reads)
		}
		time.Sleep(againKept)
		fail = nil
		if v, err := k.get(t.Context(), time.Second, 0); v != 2 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		time.Sleep(time.Hour)
		fail = errors.New("down again")
		if v, err := k.get(t.Context(), time.Second, 0); v != 2 || err != nil {
			t.Errorf("what was kept is gone: %d, %v", v, err)
		}
		hung := counting(&reads, &fail, time.Hour)
		began := time.Now()
		if _, err := hung.get(t.Context(), time.Second, 0); err == nil || time.Since(began) != readKept {
			t.Errorf("a reading that hangs: %v after %s", err, time.Since(began))
		}
	})
}

// TestKeptWaitersCanGo: who waits for another's reading can leave, and who reads cannot take it away from the others.
func TestKeptWaitersCanGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads int
		var fail error
		k := counting(&reads, &fail, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if v, err := k.get(ctx, time.Second, 0); v != 1 || err != nil {
				t.Errorf("who reads: %d, %v", v, err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := k.get(ctx, time.Second, 0); flashsale.CodeOf(err) != flashsale.CodeUnavailable {
				t.Errorf("who has left: %v", err)
			}
		})
		all.Go(func() {
			if v, err := k.get(t.Context(), time.Second, 0); v != 1 || err != nil {
				t.Errorf("who stays: %d, %v", v, err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
	})
}

// TestKeptPanics: nobody waits for ever for a reading that has panicked.
func TestKeptPanics(t *testing.T) {
	t.Parallel()
	k := &kept[int]{read: func(context.Context) (int, error) { panic("a fault") }}
	func() {
		defer func() { _ = recover() }()
		_, _ = k.get(t.Context(), time.Second, 0)
	}()
	if _, err := k.get(t.Context(), time.Second, 0); flashsale.CodeOf(err) != flashsale.CodeInternal {
		t.Errorf("after a panic: %v", err)
	}
}
