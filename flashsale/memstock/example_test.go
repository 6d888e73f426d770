package memstock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
)

// A sku is loaded, put on sale, and one of its two units is reserved; a consumer pulls the job, and the stock follows what SQL has
// decided. The engine does all this.
func Example() {
	ctx, key := context.Background(), flashsale.Key{Sale: "spring", SKU: "red-chair"}
	stock := memstock.New(memstock.Config{})
	defer stock.Close()

	_, _ = stock.Point(ctx, key, 1)
	_ = stock.Load(ctx, key, 1, &flashsale.LoadPart{Last: true, Total: 2})
	_ = stock.Configure(ctx, key, 1, &flashsale.Settings{
		Version: 1, Status: flashsale.Open, OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(time.Hour), PurchaseLimit: 1, Rate: 1000,
	})

	ask := flashsale.Ask{RID: "r1", User: "anna", Quantity: 1, Body: flashsale.BodyHash(key, "anna", 1)}
	first, _ := stock.Reserve(ctx, key, 1, &ask)
	again, _ := stock.Reserve(ctx, key, 1, &ask)
	fmt.Println("accepted:", first.Accepted, "left:", first.Available, "known:", again.Known)

	jobs, _ := stock.Pull(ctx, key, 1, "consumer-1", 10, 5*time.Second)
	effect := flashsale.Effect{RID: jobs[0].RID, User: jobs[0].User, Quantity: jobs[0].Quantity, State: flashsale.Reserved, Version: 1}
	_, _ = stock.Apply(ctx, key, 1, []flashsale.Effect{effect}, []string{jobs[0].ID})

	other := flashsale.Ask{RID: "r2", User: "anna", Quantity: 1, Body: flashsale.BodyHash(key, "anna", 1)}
	refused, _ := stock.Reserve(ctx, key, 1, &other)
	fmt.Println("refused:", refused.Code, "holds:", refused.Holds)
	// Output:
	// accepted: true left: 1 known: true
	// refused: purchase_limit holds: [r1]
}
