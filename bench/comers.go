package main

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// comers have many come at their times, on few connections: who comes when all of them are taken waits for one, and that counts. A step
// returns when its visitor does the next one, the zero time for never.
type comers[V any] struct {
	connections int
	addr        string
	step        func(ctx context.Context, w *wire, v V) time.Time

	mu      sync.Mutex
	waiting visits[V]
	left    int
	// sooner tells that somebody waits for less than the first one did.
	sooner chan struct{}
}

// visit is somebody's next step.
type visit[V any] struct {
	at  time.Time
	who V
}

// visits are a heap, the next one first.
type visits[V any] []visit[V]

func (h visits[V]) Len() int           { return len(h) }
func (h visits[V]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h visits[V]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *visits[V]) Push(v any)        { *h = append(*h, v.(visit[V])) }
func (h *visits[V]) Pop() any {
	last := len(*h) - 1
	v := (*h)[last]
	*h = (*h)[:last]
	return v
}

// come has them all come, and returns when nobody comes again or ctx has ended.
func (c *comers[V]) come(ctx context.Context, all []visit[V]) {
	c.waiting, c.left, c.sooner = all, len(all), make(chan struct{}, 1)
	heap.Init(&c.waiting)
	ctx, end := context.WithCancel(ctx)
	defer end()
	ready := make(chan V)
	var group sync.WaitGroup
	for range c.connections {
		group.Go(func() {
			w := &wire{addr: c.addr}
			defer w.close()
			for v := range ready {
				if c.again(v, c.step(ctx, w, v)) == 0 {
					end()
				}
			}
		})
	}
	c.usher(ctx, ready)
	close(ready)
	group.Wait()
}

// usher hands over who is to come, at the time.
func (c *comers[V]) usher(ctx context.Context, ready chan<- V) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		v, wait := c.next()
		if wait == 0 {
			select {
			case ready <- v:
			case <-ctx.Done():
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.sooner:
		case <-ctx.Done():
			return
		}
	}
}

// next takes who is to come now; if there is nobody it returns how long to wait for one.
func (c *comers[V]) next() (v V, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return v, time.Hour
	}
	if wait := time.Until(c.waiting[0].at); wait > 0 {
		return v, wait
	}
	return heap.Pop(&c.waiting).(visit[V]).who, 0
}

// again notes when somebody comes again, and returns how many have not come for the last time.
func (c *comers[V]) again(v V, at time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.IsZero() {
		c.left--
		return c.left
	}
	heap.Push(&c.waiting, visit[V]{at, v})
	select {
	case c.sooner <- struct{}{}:
	default:
	}
	return c.left
}
