package engine_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
	"github.com/headgate-io/headgate/metrics"
)

// shop is everything that a sale is made of. With redisstock, a URL of a server and a real provider it is the same for any number of
// instances.
type shop struct {
	*engine.Engine
	stock  *memstock.Stock
	orders *sqlorders.Orders
	bank   *simpay.Provider
}

// open puts a shop together. What one part has to tell another that is made later, a closure passes on: retries of the database to the
// engine, whose alarm counts them, and webhooks of the provider.
func open(ctx context.Context) (*shop, error) {
	s := &shop{stock: memstock.New(memstock.Config{})}
	var err error
	s.orders, err = sqlorders.Open(ctx, sqlorders.Config{
		URL:     "sqlite::memory:",
		Retried: func(method string, tries int, why error) { s.Retried(method, tries, why) },
	})
	if err != nil {
		return nil, err
	}
	s.bank = simpay.New(simpay.Config{
		Deliver: func(ctx context.Context, header http.Header, body []byte) error { return s.Webhook(ctx, header, body) },
	})
	secret := make([]byte, flashsale.MinKeyBytes) // of all instances; keep it where secrets are kept
	_, _ = rand.Read(secret)
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: secret})
	if err != nil {
		return nil, err
	}
	figures, err := metrics.New(metrics.Config{}) // its Handler is the page for Prometheus
	if err != nil {
		return nil, err
	}
	s.Engine, err = engine.New(engine.Config{Stock: s.stock, Orders: s.orders, Keys: keys, Payments: s.bank, Observer: figures.Sale()})
	return s, err
}

// close ends what open has made.
func (s *shop) close() {
	_ = s.orders.Close()
	_ = s.stock.Close()
}

// sell creates a sale, has the stock loaded, and opens it.
func (s *shop) sell(ctx context.Context, key flashsale.Key, units int64) error {
	now := time.Now()
	err := s.CreateSale(ctx, &flashsale.Sale{
		ID: key.Sale, Title: "11.11", Currency: "CNY", OpensAt: now, ClosesAt: now.Add(time.Hour),
		SKUs: []flashsale.SKU{{ID: key.SKU, Title: "A phone", Total: units, Price: 3999_00}},
	})
	if err != nil {
		return err
	}
	if _, err := s.WatchOnce(ctx); err != nil { // while it runs, the watcher does it within a second
		return err
	}
	_, err = s.OpenSale(ctx, engine.Command{ID: "open-1", Sale: key.Sale, Reason: "it is time", By: "ops"})
	return err
}

// A unit's way, from the token to the paid order.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.close()
	key := flashsale.Key{Sale: "eleven", SKU: "phone"}
	if err := s.sell(ctx, key, 100); err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }() // consumers and jobs
	defer func() { stop(); <-ended }()

	token, _, err := s.Token(ctx, engine.TokenRequest{Key: key, User: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := s.Reserve(ctx, engine.ReserveRequest{Token: token, Key: key, User: "ann", Quantity: 1})
	fmt.Println("reserve:", answer.State, err)
	result, err := s.Await(ctx, key, answer.RID, "ann")
	fmt.Println("decided:", result.State, result.Amount, result.Currency, err)

	pay, err := s.Pay(ctx, answer.RID, "ann")
	fmt.Println("to be paid:", pay.State, err)
	_ = s.bank.Pay(pay.IntentKey, flashsale.PayCaptured) // the shopper, at the provider's page
	s.bank.Step(ctx)                                     // which sends its webhook
	result, err = s.Result(ctx, key, answer.RID, "ann")
	fmt.Println("paid:", result.State, err)
	// Output:
	// reserve: pending <nil>
	// decided: reserved 399900 CNY <nil>
	// to be paid: confirming <nil>
	// paid: confirmed <nil>
}
