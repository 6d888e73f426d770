package saletest

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// shopper is someone who asks, asks again, pays, walks away.
type shopper struct {
	name   string
	tokens []ticket
	told   map[string]flashsale.State // the final answers this shopper got
}

// ticket is a token, and what was asked for with it.
type ticket struct {
	token, rid string
	quantity   int64
}

// move draws what happens next and begins it, or makes it happen.
func (w *world) move() {
	i := w.rng.IntN(len(w.engines))
	e := w.engines[i]
	s := w.shoppers[w.rng.IntN(len(w.shoppers))]
	begin := func(name string, op func(ctx context.Context) error) { w.start(i, name, op) }
	once := func(name string, f func(ctx context.Context) (int, error)) {
		begin(name, func(ctx context.Context) error { _, err := f(ctx); return err })
	}
	switch n := w.rng.IntN(100); {
	case n < 12:
		begin(s.name+" buys", w.buys(e, s))
	case n < 18:
		begin(s.name+" asks again", w.asksAgain(e, s))
	case n < 33:
		begin(s.name+" pays", w.pays(e, s))
	case n < 36:
		begin(s.name+" cancels", w.cancels(e, s))
	case n < 38:
		begin(s.name+" looks", w.looks(e, s))
	case n < 54:
		consumer := fmt.Sprintf("c%d", w.rng.IntN(3))
		once("consume", func(ctx context.Context) (int, error) { return e.ConsumeOnce(ctx, w.key, consumer) })
	case n < 58:
		once("deliver", e.DeliverOnce)
	case n < 64:
		once("sweep", e.SweepOnce)
	case n < 70:
		once("watch", e.WatchOnce)
	case n < 76:
		once("poll", e.PollOnce)
	case n < 79:
		once("reconcile", e.ReconcileOnce)
	case n < 82:
		once("relay", e.RelayOnce)
	case n < 90:
		w.hear(i)
	case n < 94:
		begin("operator", w.operator(e))
	default:
		w.provider.Step(context.Background())
		w.now = w.now.Add(time.Duration(w.rng.IntN(1+5000)) * time.Millisecond)
	}
}

// fate draws what goes wrong, if anything does.
func (w *world) fate(losses bool) {
	switch n := w.rng.IntN(1000); {
	case n < 12:
		i := w.rng.IntN(len(w.engines))
		w.crash(i)
		w.boot(i)
	case n < 30:
		w.now = w.now.Add(time.Duration(w.rng.IntN(240)) * time.Second)
		w.note("TIME passes")
	case n < 34:
		w.now = w.now.Add(leaseTime + time.Minute)
		w.note("TIME passes, beyond all leases")
	case n < 40:
		w.skews.stock, w.skews.sql = w.skew(), w.skew()
		w.note("CLOCKS: stock %s, sql %s", w.skews.stock, w.skews.sql)
	case n < 48 && losses:
		lost := w.rng.IntN(30)
		if w.rng.IntN(6) == 0 {
			lost = len(w.stock.writes)
		}
		w.note("LOSS of %d writes", lost)
		w.stock.lose(lost)
		w.lossy = true
	}
}

func (w *world) skew() time.Duration {
	return time.Duration(w.rng.IntN(20_000)-10_000) * time.Millisecond
}

// buys asks for a token and spends it.
func (w *world) buys(e *engine.Engine, s *shopper) func(ctx context.Context) error {
	quantity := 1 + w.rng.Int64N(w.sale.SKUs[0].PurchaseLimit)
	return func(ctx context.Context) error {
		token, _, err := e.Token(ctx, engine.TokenRequest{Key: w.key, User: s.name, Device: "d"})
		if err != nil {
			return err
		}
		verified, err := w.keys.Verify(token, flashsale.TokenScope{Key: w.key, User: s.name, Device: "d"})
		if err != nil {
			return err
		}
		s.tokens = append(s.tokens, ticket{token, verified.RID, quantity})
		return w.reserves(ctx, e, s, len(s.tokens)-1, quantity)
	}
}

func (w *world) asksAgain(e *engine.Engine, s *shopper) func(ctx context.Context) error {
	if len(s.tokens) == 0 {
		return w.buys(e, s)
	}
	i := w.rng.IntN(len(s.tokens))
	quantity := s.tokens[i].quantity
	if w.rng.IntN(5) == 0 {
		quantity = 1 + w.rng.Int64N(w.sale.SKUs[0].PurchaseLimit)
	}
	return func(ctx context.Context) error { return w.reserves(ctx, e, s, i, quantity) }
}

func (w *world) reserves(ctx context.Context, e *engine.Engine, s *shopper, i int, quantity int64) error {
	t := s.tokens[i]
	answer, err := e.Reserve(ctx, engine.ReserveRequest{Token: t.token, Key: w.key, User: s.name, Device: "d", Quantity: quantity})
	if err == nil {
		w.tell(s, &answer.Result)
	}
	return err
}

func (w *world) looks(e *engine.Engine, s *shopper) func(ctx context.Context) error {
	if len(s.tokens) == 0 {
		return w.buys(e, s)
	}
	rid := s.tokens[w.rng.IntN(len(s.tokens))].rid
	return func(ctx context.Context) error {
		result, err := e.Result(ctx, w.key, rid, s.name)
		if err == nil {
			w.tell(s, &result)
		}
		return err
	}
}

// tell keeps the final answers: there is one for each reservation.
func (w *world) tell(s *shopper, r *engine.Result) {
	if s.told == nil {
		s.told = map[string]flashsale.State{}
	}
	if was, ok := s.told[r.RID]; ok && was != r.State {
		w.t.Errorf("%s was told that %s is %s, and now that it is %s\n%s", s.name, r.RID, was, r.State, w.history())
	}
	if r.State.Terminal() {
		s.told[r.RID] = r.State
	}
}

func (w *world) pays(e *engine.Engine, s *shopper) func(ctx context.Context) error {
	if len(s.tokens) == 0 {
		return w.buys(e, s)
	}
	rid := s.tokens[w.rng.IntN(len(s.tokens))].rid
	return func(ctx context.Context) error { _, err := e.Pay(ctx, rid, s.name); return err }
}

func (w *world) cancels(e *engine.Engine, s *shopper) func(ctx context.Context) error {
	if len(s.tokens) == 0 {
		return w.buys(e, s)
	}
	rid := s.tokens[w.rng.IntN(len(s.tokens))].rid
	return func(ctx context.Context) error { _, err := e.Cancel(ctx, rid, s.name); return err }
}

// hear delivers one of the webhooks that are on their way, whichever; some come twice, some never.
func (w *world) hear(i int) {
	w.provider.Step(context.Background())
	if len(w.hooks) == 0 {
		return
	}
	n := w.rng.IntN(len(w.hooks))
	h := w.hooks[n]
	if w.rng.IntN(4) != 0 {
		w.hooks = append(w.hooks[:n], w.hooks[n+1:]...)
	}
	w.start(i, "webhook", func(ctx context.Context) error { return w.engines[i].Webhook(ctx, h.header, h.body) })
}

// operator draws what an operator does: something new, or the last thing once more.
func (w *world) operator(e *engine.Engine) func(ctx context.Context) error {
	if w.begun == 0 || w.rng.IntN(4) != 0 {
		w.begun++
	}
	c := engine.Command{ID: fmt.Sprintf("op-%d", w.begun), Sale: w.key.Sale, SKU: w.key.SKU, Reason: "drawn", By: "op"}
	kind, units := w.rng.IntN(10), 1+w.rng.Int64N(3)
	return func(ctx context.Context) (err error) {
		switch {
		case kind < 3:
			_, err = e.TopUp(ctx, c, units)
		case kind < 6:
			_, err = e.Withdraw(ctx, c, units)
		case kind < 7:
			_, err = e.PauseSale(ctx, c)
		case kind < 9:
			_, err = e.ResumeSale(ctx, c)
		default:
			_, err = e.SetRate(ctx, c, 1+units*300)
		}
		return err
	}
}
