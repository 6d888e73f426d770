package demo

import (
	"context"
	"sync"
	"time"
)

// world is what visitors know and share.
type world struct {
	client *client
	sale   saleCalls
	shop   *Shop
	seed   uint64
	farm   *farm
	pace   time.Duration // of people: the median time between two pages
	arrive time.Duration // within which people come
	opens  time.Time     // of the sale
	quick  float64       // as in plan
	// late ends some time after the doors have closed: by then, whoever holds something has paid or has lost it.
	late context.Context
}

// paceFor makes people quicker in a short demo, so that the story is the same.
func paceFor(d time.Duration) time.Duration {
	return min(max(d/25, 50*time.Millisecond), 1200*time.Millisecond)
}

// crowd lets everybody in and waits until everybody has left, which is soon after ctx ends.
func crowd(ctx context.Context, w *world, shoppers, bots int) {
	var all sync.WaitGroup
	defer all.Wait()
	for n := range shoppers {
		s := newShopper(n, w)
		all.Go(func() { s.visit(ctx, w) })
	}
	for n := range bots {
		b := newBot(n, w)
		all.Go(func() { b.run(ctx) })
	}
}
