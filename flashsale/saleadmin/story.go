package saleadmin

import (
	"log/slog"
	"net/http"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// maxDeadListed bounds a list of dead letters, maxDead how many are revived at a time.
const maxDeadListed, maxDead = 500, 1000

func (a *api) story(q *request) error {
	values, err := q.query("user")
	if err != nil {
		return err
	}
	user, sale := values.Get("user"), q.r.PathValue("sale")
	if err := flashsale.CheckUser(user); err != nil {
		return invalid(FieldError{"user", err.Error()})
	}
	zone, err := q.zoneOf(sale)
	if err != nil {
		return err
	}
	chapters, err := a.sales.Story(q.r.Context(), sale, user)
	if err != nil && chapters == nil {
		return err
	}
	s := Story{Sale: sale, Zone: zone, Reservations: []Reservation{}, Refusals: refusalsOf(a.sales.Refusals(q.r.Context(), sale, user))}
	s.User, s.UserBase64 = userOf(user)
	if err != nil {
		s.StockError = err.Error()
	}
	for i := range chapters {
		s.Reservations = append(s.Reservations, reservationOf(&chapters[i]))
	}
	return q.answer(http.StatusOK, &s)
}

func reservationOf(c *engine.Chapter) Reservation {
	r := &c.Reservation
	view := Reservation{
		RID: r.RID, SKU: r.Key.SKU, Quantity: r.Quantity, State: r.State.String(), Reason: r.Reason, Version: r.Version, PayGranted: r.PayGranted,
		OrderID: r.OrderID, Amount: r.Amount, Currency: r.Currency, Origin: r.Origin, Until: maybe(r.Until),
		CreatedAt: instant(r.CreatedAt), ChangedAt: instant(r.ChangedAt), EndedAt: maybe(r.EndedAt), Payments: []Payment{},
	}
	for i := range c.Payments {
		p := &c.Payments[i]
		view.Payments = append(view.Payments, Payment{
			IntentKey: p.IntentKey, Attempt: p.Attempt, Amount: p.Amount, Currency: p.Currency, State: string(p.State), Reason: p.Reason,
			AppliedTo: p.AppliedTo, CreatedAt: instant(p.CreatedAt), ChangedAt: instant(p.ChangedAt),
		})
	}
	return view
}

func refusalsOf(r engine.Refusals) Refusals {
	view := Refusals{
		Instance: r.Instance, Fleet: r.Fleet, Since: instant(r.Since), Dropped: r.Dropped, Missing: append([]string{}, r.Missing...), Of: []Refusal{},
	}
	for i := range r.Of {
		one := &r.Of[i]
		view.Of = append(view.Of, Refusal{
			SKU: one.Key.SKU, Code: string(one.Code), Detail: one.Detail, Rule: one.Rule, Quantity: one.Quantity,
			RetryAfterMs: one.RetryAfter.Milliseconds(), Count: one.Count,
			First: instant(one.First), Last: instant(one.Last),
		})
	}
	return view
}

func (a *api) deadLetters(q *request) error {
	values, err := q.query("limit")
	if err != nil {
		return err
	}
	limit, err := number(values, "limit", 100, maxDeadListed)
	if err != nil {
		return err
	}
	key := q.key()
	if _, err := q.keysOf(q.r.Context(), key.Sale, key.SKU); err != nil {
		return err
	}
	zone, err := q.zoneOf(key.Sale)
	if err != nil {
		return err
	}
	dead, err := a.sales.DeadLetters(q.r.Context(), key, limit+1)
	if err != nil {
		return err
	}
	view := DeadLetters{Zone: zone, DeadLetters: []DeadLetter{}, More: len(dead) > limit}
	dead = dead[:min(limit, len(dead))]
	for i := range dead {
		d := &dead[i]
		one := DeadLetter{
			ID: d.ID, RID: d.RID, Quantity: d.Quantity, Reason: d.Reason, Deliveries: d.Deliveries,
			At: instant(d.At), Deadline: instant(d.Deadline), DiedAt: instant(d.DiedAt),
		}
		one.User, one.UserBase64 = userOf(d.User)
		view.DeadLetters = append(view.DeadLetters, one)
	}
	return q.answer(http.StatusOK, &view)
}

func (a *api) revive(q *request) error {
	var o ReviveOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	if len(o.IDs) == 0 || len(o.IDs) > maxDead {
		return invalid(FieldError{"ids", "give the ids of 1 to 1000 dead letters"})
	}
	key := q.key()
	if _, err := q.keysOf(q.r.Context(), key.Sale, key.SKU); err != nil {
		return err
	}
	n, err := a.sales.ReviveDead(q.r.Context(), key, o.IDs)
	if err != nil {
		return err
	}
	q.done(slog.String("sku", key.String()), slog.Int("asked", len(o.IDs)), slog.Int("revived", n))
	return q.answer(http.StatusOK, &Revived{OperationID: q.command.ID, Revived: n})
}
