package stale

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One at a time wakes up while a service fails: were it all of them, ten thousand would be a hundred million.
func TestFailuresWakeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		_, first := c.Join(t.Context(), same(0))
		var all sync.WaitGroup
		var led, now, most atomic.Int32
		for range 10_000 {
			all.Go(func() {
				_, k := c.Join(t.Context(), same(0))
				if k == nil {
					t.Error("one has not led")
					return
				}
				led.Add(1)
				most.Store(max(most.Load(), now.Add(1)))
				now.Add(-1)
				k.Close()
			})
		}
		synctest.Wait()
		if n := c.Stats().Waiting; n != 10_000 {
			t.Fatalf("%d wait", n)
		}
		first.Close()
		all.Wait()
		if led.Load() != 10_000 || most.Load() != 1 || c.Stats() != (Stats{}) {
			t.Errorf("%d have led, %d at a time; %+v", led.Load(), most.Load(), c.Stats())
		}
	})
}

// The lead is not lost when those leave to whom it could go, nor kept for nobody.
func TestLeadIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		_, first := c.Join(t.Context(), same(0))
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan *Keeping)
		go func() {
			_, k := c.Join(ctx, same(0))
			left <- k
		}()
		synctest.Wait()
		// Both happen before the one that waits can run: it may see either first.
		leave()
		first.Close()
		if k := <-left; k != nil {
			k.Close()
		}
		if s := c.Stats(); s != (Stats{}) {
			t.Errorf("%+v", s)
		}
		if fill(t, c, same(0), 200, "hello", fields()); kept(c, same(0)) != "hello" {
			t.Error("nobody can lead any more")
		}
	})
}

// Patience is one for all that a request waits for.
func TestPatienceIsNotRenewed(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			c := mustNew(t, Config{Wait: 2 * time.Second})
			var all sync.WaitGroup
			defer all.Wait()
			start := func(after, takes time.Duration, value string) {
				all.Go(func() {
					time.Sleep(after)
					begun := time.Now()
					_, k := c.Join(t.Context(), ask("/", "", "X-V", value))
					if waited := time.Since(begun); waited > 2*time.Second {
						t.Errorf("waited for %s", waited)
					}
					if k != nil {
						time.Sleep(takes)
						k.Header(200, fields("Vary", "X-V"))
						k.End(true)
						k.Close()
					}
				})
			}
			start(0, 2*time.Second, "a")
			for range 5 {
				start(0, 8*time.Second, "b")           // their patience ends when the answer for a is there
				start(time.Second, 8*time.Second, "b") // one of these goes next
			}
		})
	}
}

// Whatever clients and services do, in the end nobody waits, nothing is held, and everybody has got something.
func TestAnyOrder(t *testing.T) {
	c := mustNew(t, Config{Wait: 5 * time.Millisecond, MaxBytes: 100_000, MaxWaiting: 40})
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 200 {
				anyRequest(t, c, random)
			}
		})
	}
	all.Wait()
	if s := c.Stats(); s.Waiting != 0 || s.Leading != 0 || c.taking.Load() != 0 {
		t.Errorf("when all is over: %+v, taking %d", s, c.taking.Load())
	}
}

func anyRequest(t *testing.T, c *Cache, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(4000))*time.Microsecond)
	defer cancel()
	q := ask(fmt.Sprint("/", random.IntN(3)), "", "X-V", fmt.Sprint(random.IntN(3)))
	a, k := c.Join(ctx, q)
	if a != nil {
		got(a, q)
	}
	if k == nil {
		return
	}
	defer k.Close()
	h := []http.Header{fields(), fields("Vary", "X-V"), fields("Set-Cookie", "a=b"), fields("Content-Length", "5000")}[random.IntN(4)]
	if random.IntN(4) == 0 || !k.Header([]int{200, 200, 200, 503}[random.IntN(4)], h) {
		return
	}
	body, err := io.ReadAll(io.LimitReader(k.Body(io.NopCloser(strings.NewReader(strings.Repeat("x", 5000)))), random.Int64N(6000)))
	if err != nil {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}
