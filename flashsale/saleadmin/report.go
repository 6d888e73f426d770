package saleadmin

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// matchBack is how far back a match looks if nobody has said so.
const matchBack = 24 * time.Hour

func (a *api) report(q *request) error {
	keys, next, err := q.keysAsked()
	if err != nil {
		return err
	}
	zone, err := q.zoneOf(q.r.PathValue("sale"))
	if err != nil {
		return err
	}
	r := Report{Zone: zone, Next: next, Instance: a.sales.Instance(), Reconciliation: reconciliationOf(a.sales.LastReconciliation(), keys), Audits: []Audit{}}
	for _, key := range keys {
		audit, err := a.sales.Audit(q.r.Context(), key)
		if err != nil {
			return err
		}
		r.Audits = append(r.Audits, auditOf(audit))
	}
	return q.answer(http.StatusOK, &r)
}

// keysAsked are a page of the skus of the sale in the path, or the one of the parameter sku.
func (q *request) keysAsked() (keys []flashsale.Key, next string, err error) {
	values, err := q.query("sku", "limit", "cursor")
	if err != nil {
		return nil, "", err
	}
	page, err := skuPage(values, auditPage())
	if err != nil {
		return nil, "", err
	}
	if keys, err = q.keysOf(q.r.Context(), q.r.PathValue("sale"), values.Get("sku")); err != nil {
		return nil, "", err
	}
	return pageOf(keys, page, func(k *flashsale.Key) string { return k.SKU })
}

func reconciliationOf(r *engine.ReconcileReport, keys []flashsale.Key) *Reconciliation {
	if r == nil {
		return nil
	}
	view := &Reconciliation{At: instant(r.At), SKUs: []ReconciledSKU{}}
	for i := range r.Keys {
		k := &r.Keys[i]
		for _, key := range keys {
			if k.Key != key {
				continue
			}
			one := ReconciledSKU{SKU: key.SKU, Skipped: k.Skipped, Compared: k.Compared, Replayed: k.Replayed, Ahead: k.Ahead, Missing: k.Missing}
			if k.Drift != nil {
				one.Drift = k.Drift.String()
			}
			view.SKUs = append(view.SKUs, one)
		}
	}
	return view
}

func auditOf(r *engine.AuditReport) Audit {
	a := Audit{
		SKU: r.Key.SKU, At: instant(r.At), OK: r.OK(), UnderWay: r.UnderWay, Still: r.Still, Broken: []Broken{}, Reservations: map[string]int64{},
		OrdersPaid: r.Books.OrdersPaid, OrdersOpen: r.Books.OrdersOpen, CapturedLoose: r.Books.CapturedLoose,
	}
	for _, b := range r.Broken {
		a.Broken = append(a.Broken, Broken{Invariant: b.Invariant, Text: b.Text})
	}
	for state, n := range r.Books.Rows {
		a.Reservations[state.String()] = n
	}
	return a
}

// match compares with the provider, takes what it has decided and nobody has heard of, and makes refunds that are owed.
func (a *api) match(q *request) error {
	var o MatchOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	since := a.cfg.Now().Add(-matchBack)
	if o.Since != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, o.Since); err != nil {
			return invalid(FieldError{"since", "it is no time of RFC 3339; write one such as 2026-11-11T20:00:00+08:00"})
		}
	}
	r, err := a.sales.MatchOnce(q.r.Context(), since)
	if err != nil {
		return err
	}
	view := Match{
		OperationID: q.command.ID, OK: len(r.Differences) == 0 && r.Omitted == 0, Since: instant(r.Since), Provider: r.Provider, Payments: r.Payments,
		Paid: r.Paid, Repaired: r.Repaired, Differences: []Difference{}, Omitted: r.Omitted,
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		view.Differences = append(view.Differences, Difference{
			Kind: string(d.Kind), IntentKey: d.IntentKey, RID: d.RID, OrderID: d.OrderID, Detail: d.Detail, Again: d.Again,
		})
	}
	q.done(slog.Int("repaired", r.Repaired), slog.Int("differences", len(r.Differences)+r.Omitted))
	return q.answer(http.StatusOK, &view)
}

func (a *api) planRebuild(q *request) error {
	keys, next, err := q.keysAsked()
	if err != nil {
		return err
	}
	plans := Plans{Plans: []Plan{}, Next: next}
	for _, key := range keys {
		p, err := a.sales.PlanRebuild(q.r.Context(), key)
		if err != nil {
			return err
		}
		plans.Plans = append(plans.Plans, Plan{
			SKU: key.SKU, Why: p.Why, From: p.From, To: p.To, Stock: stockOf(&p.Stock), SQL: sqlOf(&p.SQL, p.Unsent),
			Jobs: p.Jobs, Dead: p.Dead, Entries: p.Entries, Buyers: p.Buyers, TopUps: p.Adjusted,
		})
	}
	return q.answer(http.StatusOK, &plans)
}
