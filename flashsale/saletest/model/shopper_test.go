package model

import (
	"context"
	"sync"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// shopper is someone who asks, asks again, pays, walks away.
type shopper struct {
	name string

	mu      sync.Mutex
	tickets []ticket
	told    map[string]flashsale.State // the final answers this shopper got
	waits   map[string]bool            // what this shopper was told is being decided
}

// ticket is a token, and what was asked for with it.
type ticket struct {
	token, rid string
	quantity   int64
}

// op is what an actor does.
type op = func(ctx context.Context) error

func newShopper(name string) *shopper {
	return &shopper{name: name, told: map[string]flashsale.State{}, waits: map[string]bool{}}
}

func (s *shopper) all() []ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tickets
}

func (w *world) anyShopper() *shopper { return w.shoppers[w.rng.IntN(len(w.shoppers))] }

// buys asks for a token and spends it.
func (w *world) buys(e *engine.Engine, s *shopper) op {
	return w.asks(e, s, 1+w.rng.Int64N(w.sale.SKUs[0].PurchaseLimit))
}

func (w *world) asks(e *engine.Engine, s *shopper, quantity int64) op {
	return func(ctx context.Context) error {
		token, _, err := e.Token(ctx, engine.TokenRequest{Key: w.key, User: s.name, Device: "d"})
		if err != nil {
			return err
		}
		verified, err := w.keys.Verify(token, flashsale.TokenScope{Key: w.key, User: s.name, Device: "d"})
		if err != nil {
			return err
		}
		t := ticket{token, verified.RID, quantity}
		s.mu.Lock()
		s.tickets = append(s.tickets, t)
		s.mu.Unlock()
		return w.reserves(ctx, e, s, t, quantity)
	}
}

// asksAgain spends a token once more, now and then on another quantity.
func (w *world) asksAgain(e *engine.Engine, s *shopper) op {
	all := s.all()
	if len(all) == 0 {
		return w.buys(e, s)
	}
	t := all[w.rng.IntN(len(all))]
	quantity := t.quantity
	if w.rng.IntN(5) == 0 {
		quantity = 1 + w.rng.Int64N(w.sale.SKUs[0].PurchaseLimit)
	}
	return func(ctx context.Context) error { return w.reserves(ctx, e, s, t, quantity) }
}

func (w *world) reserves(ctx context.Context, e *engine.Engine, s *shopper, t ticket, quantity int64) error {
	answer, err := e.Reserve(ctx, engine.ReserveRequest{Token: t.token, Key: w.key, User: s.name, Device: "d", Quantity: quantity})
	if err == nil {
		w.tell(s, &answer.Result)
	}
	return err
}

// looks asks where a reservation stands.
func (w *world) looks(e *engine.Engine, s *shopper) op {
	rid := w.ridOf(s, nil)
	if rid == "" {
		return w.buys(e, s)
	}
	return func(ctx context.Context) error {
		result, err := e.Result(ctx, w.key, rid, s.name)
		if err == nil {
			w.tell(s, &result)
		}
		return err
	}
}

// tell keeps the final answers: there is one for each reservation. Only a Stock that has lost it can hold it for new once more.
func (w *world) tell(s *shopper, r *engine.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.State == flashsale.Pending {
		s.waits[r.RID] = true
	}
	was, ended := s.told[r.RID]
	switch {
	case !ended || was == r.State:
	case w.lossy && r.State == flashsale.Pending:
		w.tally.add("told pending after an end")
		return
	default:
		w.f.Errorf("I8: %s was told that %s is %s, and now that it is %s (version %d)", s.name, r.RID, was, r.State, r.Version)
	}
	if r.State.Terminal() {
		s.told[r.RID] = r.State
	}
}

// ridOf draws a reservation of a shopper: mostly one in one of these states, if there is one, else any; "" if there is none.
func (w *world) ridOf(s *shopper, states []flashsale.State) string {
	if len(states) > 0 && w.rng.IntN(5) != 0 {
		rows, err := w.orders.OfUser(context.Background(), w.key.Sale, s.name, 50)
		w.must(err)
		var rids []string
		for i := range rows {
			for _, state := range states {
				if rows[i].State == state {
					rids = append(rids, rows[i].RID)
				}
			}
		}
		if len(rids) > 0 {
			return rids[w.rng.IntN(len(rids))]
		}
	}
	all := s.all()
	if len(all) == 0 {
		return ""
	}
	return all[w.rng.IntN(len(all))].rid
}

// pays begins to pay, goes on with it, or tries to pay what cannot be paid.
func (w *world) pays(e *engine.Engine, s *shopper) op {
	rid := w.ridOf(s, []flashsale.State{flashsale.Reserved})
	if rid == "" {
		return w.buys(e, s)
	}
	return func(ctx context.Context) error { _, err := e.Pay(ctx, rid, s.name); return err }
}

// cancels gives back, by the owner or by an operator.
func (w *world) cancels(e *engine.Engine, s *shopper) op {
	rid := w.ridOf(s, []flashsale.State{flashsale.Reserved, flashsale.Confirming})
	if rid == "" {
		return w.buys(e, s)
	}
	if w.rng.IntN(4) == 0 {
		return func(ctx context.Context) error { _, err := e.CancelFor(ctx, rid, "op", "drawn"); return err }
	}
	return func(ctx context.Context) error { _, err := e.Cancel(ctx, rid, s.name); return err }
}
