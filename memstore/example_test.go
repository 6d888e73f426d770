package memstore_test

import (
	"context"
	"fmt"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// On a hot path the charges are prepared and the decision is used again: such a take allocates nothing.
func ExampleStore_Take() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	limit := headgate.MustParseLimit("token_bucket 10/1h burst=2")

	var d headgate.Decision
	charges := []headgate.Charge{headgate.One("search", "", limit)}
	for _, user := range []string{"ada", "ada", "ada", "bob"} {
		charges[0].Key = user
		if err := store.Take(context.Background(), charges, &d); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(user, d.Allowed)
	}
	// Output:
	// ada true
	// ada true
	// ada false
	// bob true
}

// A store can be asked at any time, so that rules are tested without waiting and logs are replayed.
func ExampleStore_At() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	day := headgate.MustParseLimit("fixed_window 1/day zone=America/New_York")

	summerTime := time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC) // midnight of a day of 23 hours
	for _, after := range []time.Duration{0, time.Hour, 23 * time.Hour} {
		d, _ := headgate.Take(context.Background(), store.At(summerTime.Add(after)), headgate.One("coupon", "u-1", day))
		fmt.Println(after, d.Allowed, d.Outcomes[0].RetryAfter)
	}
	// Output:
	// 0s true 0s
	// 1h0m0s false 22h0m0s
	// 23h0m0s true 0s
}

// When a slot is full, its further keys share one state. Nobody who is denied gets away with it.
func ExampleStore_Stats() {
	store := memstore.New(memstore.Config{MaxKeysPerSlot: 2, SweepInterval: -1})
	defer store.Close()
	limit := headgate.MustParseLimit("token_bucket 1/1h burst=1")
	allowed := 0
	for i := range 1000 {
		ok, _ := headgate.Allow(context.Background(), store, limit, fmt.Sprint("bot-", i))
		if ok {
			allowed++
		}
	}
	fmt.Printf("%d allowed, %+v\n", allowed, store.Stats())
	// Output:
	// 3 allowed, {Keys:2 Slots:1 Overflowed:998 Forgotten:0}
}

func ExampleStore_Inspect() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	at := store.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	ctx := context.Background()
	_, _ = headgate.Take(ctx, at, headgate.Charge{Slot: "api", Key: "u-1", Limit: headgate.MustParseLimit("token_bucket 1/s burst=10"), Cost: 4})

	in, err := at.(headgate.Inspector).Inspect(ctx, "api", "u-1")
	fmt.Println(in.Algorithm, in.Used, in.IdleAt, err)
	// Output:
	// token_bucket 4 2026-01-01 00:00:04 +0000 UTC <nil>
}
