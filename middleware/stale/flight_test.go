package stale

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// page is a service: it answers after a time, with a status, a header and what it was asked for.
type page struct {
	takes  time.Duration
	status int
	h      http.Header
	calls  atomic.Int32
	most   atomic.Int32 // at a time
	now    atomic.Int32
}

// serve does for one request what a front does, and returns what the client gets.
func (p *page) serve(ctx context.Context, c *Cache, q *Query) string {
	a, k := c.Join(ctx, q)
	if a != nil {
		return got(a, q).Body.String()
	}
	p.calls.Add(1)
	for now := p.now.Add(1); ; {
		most := p.most.Load()
		if now <= most || p.most.CompareAndSwap(most, now) {
			break
		}
	}
	defer p.now.Add(-1)
	select {
	case <-time.After(p.takes):
	case <-ctx.Done():
		if k != nil {
			k.Close()
		}
		return "left"
	}
	const body = "own"
	if k == nil {
		return body
	}
	if k.Header(p.status, p.h) {
		k.Write([]byte(body))
	}
	k.End(true)
	k.Close()
	return body
}

// crowd serves n identical requests at once, and returns how many got each answer.
func (p *page) crowd(t *testing.T, c *Cache, n int, q func(i int) *Query) map[string]int {
	t.Helper()
	var mu sync.Mutex
	answers := map[string]int{}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			text := p.serve(t.Context(), c, q(i))
			mu.Lock()
			defer mu.Unlock()
			answers[text]++
		})
	}
	all.Wait()
	if s := c.Stats(); s.Waiting != 0 || s.Leading != 0 {
		t.Errorf("when all is over: %+v", s)
	}
	return answers
}

func same(int) *Query { return ask("/", "") }

func TestOneCallForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		p := &page{takes: 3 * time.Second, status: 200, h: fields()}
		start := time.Now()
		if got := p.crowd(t, c, 1000, same); got["own"] != 1000 || p.calls.Load() != 1 || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %s with %d calls", got, time.Since(start), p.calls.Load())
		}
		// The next one refreshes, and who comes meanwhile gets what is there.
		first := make(chan string)
		go func() { first <- p.serve(t.Context(), c, same(0)) }()
		synctest.Wait()
		start = time.Now()
		if got := p.crowd2(t, c, 100); got != 100 || p.calls.Load() != 2 || time.Since(start) != 0 {
			t.Errorf("%d at once with %d calls after %s", got, p.calls.Load(), time.Since(start))
		}
		<-first
	})
}

// crowd2 counts the answers that come without a wait.
func (p *page) crowd2(t *testing.T, c *Cache, n int) (hits int) {
	t.Helper()
	for range n {
		q := same(0)
		if a, _ := c.Join(t.Context(), q); a != nil && got(a, q).Header().Get("Cache-Status") == byRefresh {
			hits++
		}
	}
	return hits
}

func TestWhoWaitedIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		_, k := c.Join(t.Context(), same(0))
		waited := make(chan *Answer)
		go func() {
			a, _ := c.Join(t.Context(), same(0))
			waited <- a
		}()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		k.Header(200, fields())
		k.End(true)
		w := got(<-waited, same(0))
		if w.Header().Get("Cache-Status") != byWaiting || w.Header().Get("Age") != "2" {
			t.Errorf("%v", w.Header())
		}
	})
}

// Pages that cannot be kept are not served one by one: two are tried, and then all go.
func TestUnkeepablePagesAreNotSerialised(t *testing.T) {
	for name, p := range map[string]*page{
		"a cookie": {takes: time.Second, status: 200, h: fields("Set-Cookie", "a=b")},
		"not 200":  {takes: time.Second, status: 302, h: fields("Location", "/login")},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := mustNew(t, Config{})
			start := time.Now()
			if got := p.crowd(t, c, 100, same); got["own"] != 100 || p.calls.Load() != 100 || time.Since(start) != 3*time.Second {
				t.Errorf("%s: %v after %s with %d calls", name, got, time.Since(start), p.calls.Load())
			}
			start = time.Now()
			if p.crowd(t, c, 100, same); time.Since(start) != time.Second {
				t.Errorf("%s: the second crowd took %s", name, time.Since(start))
			}
			// It is tried again after a while, and kept when it can be.
			time.Sleep(remember)
			p.status, p.h = 200, fields()
			before := p.calls.Load()
			if p.crowd(t, c, 100, same); p.calls.Load() != before+1 {
				t.Errorf("%s: %d calls for a page that can be kept again", name, p.calls.Load()-before)
			}
		})
	}
}

// One new visitor, who gets a cookie, does not let all others through.
func TestOneUnkeepableAnswerIsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		_, visitor := c.Join(t.Context(), same(0))
		p := &page{takes: time.Second, status: 200, h: fields()}
		done := make(chan map[string]int)
		go func() { done <- p.crowd(t, c, 100, same) }()
		synctest.Wait()
		visitor.Header(200, fields("Set-Cookie", "new=1"))
		if got := <-done; got["own"] != 100 || p.calls.Load() != 1 {
			t.Errorf("%v with %d calls", got, p.calls.Load())
		}
	})
}

// A service in trouble is asked by one at a time, for as long as the others have patience.
func TestFailingServiceIsSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{Wait: 5 * time.Second})
		p := &page{takes: 900 * time.Millisecond, status: 503, h: fields()}
		var early atomic.Int32
		time.AfterFunc(4999*time.Millisecond, func() { early.Store(p.most.Load()) })
		if got := p.crowd(t, c, 100, same); got["own"] != 100 || early.Load() != 1 {
			t.Errorf("%v, %d at a time", got, early.Load())
		}
	})
}

// When the one at the service leaves, another takes its place.
func TestLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		p := &page{takes: time.Second, status: 200, h: fields()}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan string)
		go func() { gone <- p.serve(ctx, c, same(0)) }()
		synctest.Wait()
		done := make(chan map[string]int)
		go func() { done <- p.crowd(t, c, 100, same) }()
		synctest.Wait()
		leave()
		if <-gone != "left" {
			t.Error("the first has not left")
		}
		if got := <-done; got["own"] != 100 || p.calls.Load() != 2 {
			t.Errorf("%v with %d calls, want 2", got, p.calls.Load())
		}
	})
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{Wait: 2 * time.Second})
		_, slow := c.Join(t.Context(), same(0))
		start := time.Now()
		a, k := c.Join(t.Context(), same(0))
		if a != nil || k != nil || time.Since(start) != 2*time.Second {
			t.Errorf("%v %v after %s", a, k, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if a, k = c.Join(ctx, same(0)); a != nil || k != nil || time.Since(start) != time.Second {
			t.Errorf("%v %v after %s, want the end of the context", a, k, time.Since(start))
		}
		// A slow service is no reason to let all through, an answer without an end is.
		slow.Header(200, fields())
		for _, want := range []time.Duration{2 * time.Second, 0} {
			start = time.Now()
			if a, k = c.Join(t.Context(), same(0)); a != nil || k != nil || time.Since(start) != want {
				t.Errorf("%v %v after %s, want %s", a, k, time.Since(start), want)
			}
		}
		slow.End(true)
	})
}

func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{MaxWaiting: 10})
		p := &page{takes: time.Second, status: 200, h: fields()}
		if got := p.crowd(t, c, 100, same); got["own"] != 100 || p.calls.Load() != 90 {
			t.Errorf("%v with %d calls, want 90", got, p.calls.Load())
		}
	})
}

// A page that differs by a header is fetched once for each value, and not for one value after the other.
func TestCrowdOfVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		p := &page{takes: time.Second, status: 200, h: fields("Vary", "X-V")}
		start := time.Now()
		p.crowd(t, c, 100, func(i int) *Query { return ask("/", "", "X-V", fmt.Sprint(i%5)) })
		if p.calls.Load() != 5 || time.Since(start) != 2*time.Second {
			t.Errorf("%d calls in %s, want 5 in 2s", p.calls.Load(), time.Since(start))
		}
	})
}

func TestCrowdWithConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustNew(t, Config{})
		p := &page{takes: time.Second, status: 304, h: fields("Etag", `"1"`)}
		p.crowd(t, c, 100, func(int) *Query { return ask("/", "", "If-None-Match", `"1"`) })
		if p.calls.Load() != 1 || c.Stats().Answers != 0 {
			t.Errorf("%d calls, %+v", p.calls.Load(), c.Stats())
		}
	})
}

func TestNotShared(t *testing.T) {
	c := mustNew(t, Config{})
	for name, q := range map[string]*Query{
		"range":               ask("/", "", "Range", "bytes=0-1"),
		"if-match":            ask("/", "", "If-Match", `"1"`),
		"if-unmodified-since": ask("/", "", "If-Unmodified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"),
		"websocket":           ask("/", "", "Upgrade", "websocket"),
		"head":                {Method: http.MethodHead, Stale: same(0).Stale},
		"post":                {Method: http.MethodPost, Stale: same(0).Stale},
		"no rule":             {Method: http.MethodGet},
	} {
		if a, k := c.Join(t.Context(), q); a != nil || k != nil {
			t.Errorf("%s: %v %v", name, a, k)
		}
	}
}

// What a handler does to the header of its request has no say in who gets the answer.
func TestHeaderThatTheHandlerChanges(t *testing.T) {
	c := mustNew(t, Config{})
	q := ask("/", "", "Accept-Language", "en")
	_, k := c.Join(t.Context(), q)
	q.Header.Set("Accept-Language", "zh")
	k.Header(200, fields("Vary", "Accept-Language"))
	k.Write([]byte("in en"))
	k.End(true)
	if kept(c, ask("/", "", "Accept-Language", "en")) != "in en" || kept(c, q) != "" {
		t.Error("the answer is kept for what the handler has made of the request")
	}
}

func TestStrikesAreBounded(t *testing.T) {
	c := mustNew(t, Config{})
	for i := range maxUnkept + 100 {
		c.mu.Lock()
		c.strike(ask(fmt.Sprint("/", i), "").key())
		c.mu.Unlock()
	}
	if len(c.unkept) != maxUnkept {
		t.Errorf("%d addresses are remembered, want %d", len(c.unkept), maxUnkept)
	}
}
