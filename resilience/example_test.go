package resilience_test

import (
	"context"
	"errors"
	"fmt"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/resilience"
)

// gone is a store that cannot be reached.
type gone struct{}

func (gone) Take(context.Context, []headgate.Charge, *headgate.Decision) error {
	return errors.New("connection refused")
}

// A limiter that goes on when its store is gone. In a program the store is a redisstore.Store, and live is the Live of a
// resilience.Fleet that meets there.
func ExampleNewLimiter() {
	local := memstore.New(memstore.Config{})
	defer local.Close()
	live := func() int { return 4 }
	limiter := resilience.NewLimiter(gone{}, local, resilience.LimiterConfig{Live: live})
	defer limiter.Close()

	limit := headgate.MustParseLimit("fixed_window 1000/day")
	d, err := headgate.Take(context.Background(), limiter, headgate.One("export", "u-17", limit))
	fmt.Println(d.Allowed, d.Outcomes[0].Remaining, err)
	// Output: true 249 <nil>
}

func ExampleDivide() {
	for _, text := range []string{"token_bucket 100/s burst=200", "sliding_log 2/5m", "concurrency 50 ttl=1m"} {
		fmt.Println(resilience.Divide(headgate.MustParseLimit(text), 3))
	}
	// Output:
	// token_bucket 100/3s burst=66
	// sliding_log 1/5m
	// concurrency 16 ttl=1m
}
