package redisstock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

// sku is one thing on sale in epoch 1, for tests that look beyond the contract.
type sku struct {
	*testing.T
	stock *redisstock.Stock
	key   flashsale.Key
}

// sell puts units on sale, at a purchase limit and the highest rate.
func sell(t *testing.T, s *redisstock.Stock, total, limit int64) *sku {
	t.Helper()
	k := &sku{T: t, stock: s, key: flashsale.Key{Sale: "sale", SKU: "sku"}}
	settings := flashsale.Settings{
		Version: 1, Status: flashsale.Open, OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(time.Hour),
		PurchaseLimit: limit, Rate: flashsale.MaxRate,
	}
	_, err := s.Point(t.Context(), k.key, 1)
	k.check(err)
	k.check(s.Load(t.Context(), k.key, 1, &flashsale.LoadPart{Last: true, Total: total, Settings: settings}))
	k.check(s.Configure(t.Context(), k.key, 1, &settings))
	return k
}

func (k *sku) check(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *sku) ask(rid, user string, quantity int64) *flashsale.Ask {
	return &flashsale.Ask{RID: rid, User: user, Quantity: quantity, Body: flashsale.BodyHash(k.key, user, quantity)}
}

func (k *sku) reserve(ctx context.Context, rid, user string, quantity int64) (flashsale.Answer, error) {
	return k.stock.Reserve(ctx, k.key, 1, k.ask(rid, user, quantity))
}

func (k *sku) accept(rid, user string, quantity int64) {
	k.Helper()
	a, err := k.reserve(k.Context(), rid, user, quantity)
	if err != nil || !a.Accepted {
		k.Fatalf("%s: %+v, %v", rid, a, err)
	}
}

func (k *sku) view() flashsale.StockView {
	k.Helper()
	v, err := k.stock.View(k.Context(), k.key)
	k.check(err)
	if v.Available+v.Held+v.Sold != v.Total || v.Available < 0 {
		k.Fatalf("the figures do not add up: %+v", v)
	}
	return v
}

// later is a reserve call under way.
type later struct {
	answer flashsale.Answer
	err    error
	done   chan struct{}
}

func (k *sku) begin(ctx context.Context, ask *flashsale.Ask) *later {
	l := &later{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.answer, l.err = k.stock.Reserve(ctx, k.key, 1, ask)
	}()
	return l
}

// jam stops the server with one reserve call on the wire, and returns that call.
func (k *sku) jam(srv *testservers.RedisServer) *later {
	k.Helper()
	k.check(srv.Pause())
	k.Cleanup(func() { _ = srv.Resume() })
	first := k.begin(k.Context(), k.ask("jam", "u-jam", 1))
	k.awaitWaiting(0, 1)
	return first
}

// queue begins calls one after the other, so that they wait in this order.
func (k *sku) queue(asks ...*flashsale.Ask) []*later {
	k.Helper()
	begun := make([]*later, len(asks))
	for i, ask := range asks {
		begun[i] = k.begin(k.Context(), ask)
		k.awaitWaiting(i+1, 1)
	}
	return begun
}

func (k *sku) awaitWaiting(queued, inFlight int) {
	k.Helper()
	await(k.T, func() error {
		if q, f := k.stock.Waiting(); q != queued || f != inFlight {
			return fmt.Errorf("%d wait and %d are on the wire, want %d and %d", q, f, queued, inFlight)
		}
		return nil
	})
}

// await fails the test unless a condition holds in time.
func await(t *testing.T, condition func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := testservers.Poll(ctx, condition); err != nil {
		t.Fatal(err)
	}
}

// failsWith fails the test unless an error has a code and a text in it.
func failsWith(t *testing.T, err error, code flashsale.Code, text string) {
	t.Helper()
	if flashsale.CodeOf(err) != code || !containsAll(err, text) {
		t.Fatalf("want %q with %q in it, got %q: %v", code, text, flashsale.CodeOf(err), err)
	}
}
