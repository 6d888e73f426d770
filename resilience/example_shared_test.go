package resilience_test //nolint:testableexamples // it takes a Redis: TestShared runs the same code

import (
	"context"
	"errors"
	"fmt"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
)

// Shared is a limiter that all instances of a service share by a Redis: leased, so that a decision costs no call, and by this
// instance's part of each limit, in memory, while Redis is away.
type Shared struct {
	*resilience.Limiter
	Fleet *resilience.Fleet
	close func() error
}

// OpenShared needs Redis to be there when it is called; whenever it is lost later, the limiter goes on without it.
func OpenShared(ctx context.Context, url string) (*Shared, error) {
	store, err := redisstore.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	leased := leasestore.New(store, leasestore.Config{})
	fleet := resilience.NewFleet(store, resilience.FleetConfig{}) // how many instances there are
	local := memstore.New(memstore.Config{})
	limiter := resilience.NewLimiter(leased, local, resilience.LimiterConfig{Live: fleet.Live})
	return &Shared{limiter, fleet, func() error {
		// What stands before the store first: leases are given back, and the fleet is told that one has left.
		return errors.Join(limiter.Close(), leased.Close(), fleet.Close(), store.Close(), local.Close())
	}}, nil
}

// Close gives back what this instance has charged ahead and not spent.
func (s *Shared) Close() error { return s.close() }

// A limit that instances share, decided in memory, that holds while Redis is lost. It takes a Redis to run.
func ExampleNewLimiter_shared() {
	ctx := context.Background()
	limiter, err := OpenShared(ctx, "redis://127.0.0.1:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	ok, err := headgate.Allow(ctx, limiter, headgate.MustParseLimit("token_bucket 5000/s burst=1000"), "export")
	fmt.Println(ok, err)
}
