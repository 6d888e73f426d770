package headgate_test

import (
	"context"
	"fmt"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// One limit on one key is one line.
func ExampleAllow() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	ctx := context.Background()
	limit := headgate.MustParseLimit("token_bucket 1/1h burst=2")

	for range 3 {
		ok, err := headgate.Allow(ctx, store, limit, "203.0.113.9")
		fmt.Println(ok, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

// Several limits, of any algorithms, are decided together: if one denies, none is charged.
func ExampleTake() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	now := store.At(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)) // a fixed time, for the example
	site, login := headgate.MustParseLimit("token_bucket 100/s burst=200"), headgate.MustParseLimit("sliding_log 2/5m")

	for range 3 {
		d, err := headgate.Take(context.Background(), now, headgate.One("site", "", site), headgate.One("login", "203.0.113.9", login))
		if err != nil {
			fmt.Println(err) // there is no verdict: the store is down, or the charges are wrong
			return
		}
		fmt.Println(d.Allowed, d.Outcomes[0].Remaining, d.Outcomes[1].Remaining, d.Outcomes[d.Binding].RetryAfter)
	}
	// Output:
	// true 199 1 0s
	// true 198 0 0s
	// false 198 0 5m0s
}

// A refund gives back what a take charged, once.
func ExampleRefunder() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	ctx := context.Background()
	charges := []headgate.Charge{{Slot: "mail", Key: "u-17", Limit: headgate.MustParseLimit("fixed_window 10/day"), Cost: 4}}

	var d headgate.Decision
	if err := store.Take(ctx, charges, &d); err != nil {
		fmt.Println(err)
	}
	fmt.Println(d.Allowed, d.Outcomes[0].Remaining)
	for range 2 { // the second finds nothing left to give back
		if err := store.Refund(ctx, charges, &d); err != nil {
			fmt.Println(err)
		}
	}
	left, err := headgate.Take(ctx, store, headgate.Charge{Slot: "mail", Key: "u-17", Limit: charges[0].Limit}) // a peek
	fmt.Println(left.Outcomes[0].Remaining, err)
	// Output:
	// true 6
	// 10 <nil>
}

func ExampleParseLimit() {
	for _, text := range []string{"gcra 100/s burst=200", "fixed_window 20000/day zone=Asia/Shanghai", "token_bucket 0.2/s", "sliding_window 600/1m cells=7"} {
		limit, err := headgate.ParseLimit(text)
		if err != nil {
			fmt.Println(headgate.CodeOf(err), "-", err)
			continue
		}
		fmt.Println(limit)
	}
	// Output:
	// token_bucket 100/s burst=200
	// fixed_window 20000/day zone=Asia/Shanghai
	// token_bucket 0.2/s
	// invalid_limit - limit "sliding_window 600/1m cells=7": cells=7 does not divide the period 1m into whole microseconds; nearest is cells=6
}

// A concurrency limit bounds what is in flight. Each holder has a name, and its slot lives until it is released, or for
// the limit's ttl.
func ExampleSlots() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	ctx := context.Background()
	slot := func(holder string) headgate.Charge {
		return headgate.Charge{Slot: "export", Key: "tenant-7", Limit: headgate.MustParseLimit("concurrency 1 ttl=1m"), Cost: 1, Holder: holder}
	}
	first, second := slot("job-1"), slot("job-2")

	a, _ := headgate.Take(ctx, store, first)
	b, _ := headgate.Take(ctx, store, second)
	fmt.Println(a.Allowed, b.Allowed, b.Outcomes[0].RetryAfter)

	alive, _ := store.Renew(ctx, &first) // a job that takes longer than the ttl renews in time
	fmt.Println(alive)
	if err := store.Release(ctx, &first); err != nil {
		fmt.Println(err)
	}
	b, _ = headgate.Take(ctx, store, second)
	fmt.Println(b.Allowed)
	// Output:
	// true false unknown
	// true
	// true
}

// A lockout shuts a key after denials: here after the first, for half an hour, doubling up to a day.
func ExampleLockout() {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	guess := headgate.One("login", "203.0.113.9", headgate.MustParseLimit("sliding_log 1/5m"))
	guess.Lockout = &headgate.Lockout{After: 1, For: 30 * time.Minute, Max: 24 * time.Hour}

	for _, after := range []time.Duration{0, time.Minute, 10 * time.Minute, 31 * time.Minute} {
		d, _ := headgate.Take(context.Background(), store.At(noon.Add(after)), guess)
		fmt.Println(d.Allowed, d.Outcomes[0].Reason, d.Outcomes[0].RetryAfter)
	}
	// Output:
	// true  0s
	// false locked_out 30m0s
	// false locked_out 21m0s
	// true  0s
}
