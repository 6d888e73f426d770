package limitertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	headgate "github.com/headgate-io/headgate"
)

const (
	takers       = 16
	takesOfTaker = 25
	admitted     = 100
)

// concurrent: many goroutines at once are admitted exactly as often as the limit says.
func (s *suite) concurrent(t *testing.T) {
	c := s.clinic(t)
	for _, limit := range []string{"token_bucket 100/1h", "fixed_window 100/1h", "fixed_window 100/day", "sliding_log 100/1h", "sliding_window 100/1h cells=4",
		"leaky_bucket 100/1h capacity=100", "leaky_bucket 1/1s max_wait=99s"} {
		t.Run(limit, func(t *testing.T) { c.in(t).crowd(limit) })
	}
	t.Run("concurrency", func(t *testing.T) { c.in(t).crowdOfHolders() })
	t.Run("several", func(t *testing.T) { c.in(t).crossing() })
	if _, ok := c.l.(headgate.Refunder); ok {
		t.Run("refunds", func(t *testing.T) { c.in(t).crowdThatRefunds() })
	}
}

// together runs do from many goroutines at once and returns how often it returned true.
func (c *clinic) together(do func(l headgate.Limiter, taker, n int) (bool, error)) int64 {
	c.t.Helper()
	var count atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	l := c.at(0)
	for taker := range takers {
		wg.Go(func() {
			<-begin
			for n := range takesOfTaker {
				ok, err := do(l, taker, n)
				if err != nil {
					c.t.Errorf("taker %d, take %d: %v", taker, n, err)
					return
				}
				if ok {
					count.Add(1)
				}
			}
		})
	}
	close(begin)
	wg.Wait()
	return count.Load()
}

func (c *clinic) crowd(limit string) {
	charge := c.on("k", limit)
	got := c.together(func(l headgate.Limiter, _, _ int) (bool, error) {
		d, err := headgate.Take(context.Background(), l, charge)
		return d.Allowed, err
	})
	if got != admitted {
		c.t.Errorf("%s: want %d of %d admitted, got %d", limit, admitted, takers*takesOfTaker, got)
	}
}

func (c *clinic) crowdOfHolders() {
	charge := c.on("k", fmt.Sprintf("concurrency %d ttl=1h", admitted))
	got := c.together(func(l headgate.Limiter, taker, n int) (bool, error) {
		d, err := headgate.Take(context.Background(), l, held(charge, fmt.Sprintf("%d-%d", taker, n)))
		return d.Allowed, err
	})
	if got != admitted {
		c.t.Errorf("want %d holders, got %d", admitted, got)
	}
}

// crossing: takes that name two shared limits in different orders and one of their own. What was admitted is what was
// charged, everywhere.
func (c *clinic) crossing() {
	a, b := c.on("a", "token_bucket 60/1h"), c.on("b", "sliding_log 60/1h")
	own := make([]headgate.Charge, takers)
	for i := range own {
		own[i] = c.on(fmt.Sprint(i), "fixed_window 5/1h")
	}
	got := c.together(func(l headgate.Limiter, taker, n int) (bool, error) {
		charges := these(a, b, own[taker])
		if n%2 == 0 {
			charges = these(own[taker], b, a)
		}
		d, err := headgate.Take(context.Background(), l, charges...)
		return d.Allowed, err
	})
	if got > 60 || !c.s.Sharded && got != 60 {
		c.t.Errorf("want 60 admitted, got %d", got)
	}
	c.peek(0, a, 60-got)
	c.peek(0, b, 60-got)
	spent := int64(0)
	for i := range own {
		spent += 5 - c.take(0, cost(own[i], 0)).Outcomes[0].Remaining
	}
	if spent != got {
		c.t.Errorf("%d admitted and %d charged to the takers", got, spent)
	}
}

// crowdThatRefunds: everyone gives back what it took, so that nothing is left charged.
func (c *clinic) crowdThatRefunds() {
	for _, limit := range []string{"token_bucket 100/1h", "fixed_window 100/1h", "sliding_log 100/1h", "sliding_window 100/1h cells=4", "leaky_bucket 100/1h capacity=100"} {
		charge := cost(c.on(limit, limit), 2)
		c.together(func(l headgate.Limiter, _, _ int) (bool, error) {
			d, err := headgate.Take(context.Background(), l, charge)
			if err != nil || !d.Allowed {
				return false, err
			}
			return true, l.(headgate.Refunder).Refund(context.Background(), these(charge), &d)
		})
		c.peek(0, charge, admitted)
	}
}
