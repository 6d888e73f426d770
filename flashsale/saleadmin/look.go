package saleadmin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// Bounds of lists.
const (
	defaultSales, maxSales           = 50, 100
	defaultOperations, maxOperations = 20, 200
)

func (a *api) list(q *request) error {
	values, err := q.query("limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := number(values, "limit", defaultSales, maxSales)
	if err != nil {
		return err
	}
	after := values.Get("cursor")
	sales, skus, err := a.sales.SalesAfter(q.r.Context(), after, limit+1)
	switch {
	case after != "" && flashsale.CodeOf(err) == flashsale.CodeUnknownSale:
		return invalid(FieldError{"cursor", noSuchCursor})
	case err != nil:
		return err
	}
	of := map[string][]flashsale.SKUState{}
	for i := range skus {
		of[skus[i].Key.Sale] = append(of[skus[i].Key.Sale], skus[i])
	}
	list := List{Sales: []Summary{}}
	if len(sales) > limit {
		sales, list.Next = sales[:limit], sales[limit-1].ID
	}
	for i := range sales {
		list.Sales = append(list.Sales, summaryOf(&sales[i], of[sales[i].ID]))
	}
	return q.answer(http.StatusOK, &list)
}

// summaryOf sums a sale up.
func summaryOf(sale *flashsale.Sale, skus []flashsale.SKUState) Summary {
	s := Summary{
		ID: sale.ID, Title: sale.Title, Zone: sale.Zone, OpensAt: instant(sale.OpensAt), ClosesAt: instant(sale.ClosesAt), SKUs: len(sale.SKUs),
		Statuses: map[string]int{},
	}
	for i := range skus {
		k := &skus[i]
		s.Statuses[string(k.Settings.Status)]++
		s.Total += k.Total
		s.Reserved += k.Reserved
		s.Sold += k.Sold
	}
	return s
}

func (a *api) show(q *request) error {
	values, err := q.query("operations", "limit", "cursor")
	if err != nil {
		return err
	}
	operations, err := number(values, "operations", defaultOperations, maxOperations)
	if err != nil {
		return err
	}
	page, err := skuPage(values, showPage())
	if err != nil {
		return err
	}
	id := q.r.PathValue("sale")
	sale, err := q.sale(id, operations, page)
	if err != nil {
		return q.withAlarms(err, id)
	}
	return q.answer(http.StatusOK, sale)
}

// withAlarms adds to an error that says a store is away what is known without it: it is then that alarms are looked for.
func (q *request) withAlarms(err error, sale string) error {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		p.Instance, p.Alarms = q.sales.Instance(), q.alarmsOf(sale)
	}
	return p
}

// sale reads a sale and where it stands, with a page of its skus.
func (q *request) sale(id string, operations int, page Page) (*Sale, error) {
	ctx := q.r.Context()
	s, err := q.sales.Sale(ctx, id)
	if err != nil {
		return nil, err
	}
	view := &Sale{
		ID: s.ID, Title: s.Title, Currency: s.Currency, Zone: s.Zone, OpensAt: instant(s.OpensAt), ClosesAt: instant(s.ClosesAt),
		Hold: s.Hold.String(), PayTime: s.PayTime.String(), Grace: s.Grace.String(), SKUCount: len(s.SKUs), SKUs: []SKU{},
		Instance: q.sales.Instance(), Alarms: q.alarmsOf(id), Operations: []Operation{},
	}
	skus, next, err := pageOf(s.SKUs, page, func(k *flashsale.SKU) string { return k.ID })
	if err != nil {
		return nil, err
	}
	view.Next = next
	for i := range skus {
		key := flashsale.Key{Sale: id, SKU: skus[i].ID}
		look, err := q.sales.Look(ctx, key)
		if err != nil {
			return nil, err
		}
		view.SKUs = append(view.SKUs, skuOf(&skus[i], look))
		ops, err := q.sales.Operations(ctx, key, operations)
		if err != nil {
			return nil, err
		}
		view.Operations = append(view.Operations, operationsOf(ops)...)
	}
	slices.SortStableFunc(view.Operations, func(a, b Operation) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return view, nil
}

// alarmsOf are those about a sale, and those about all.
func (q *request) alarmsOf(sale string) []Alarm {
	alarms := []Alarm{}
	for _, one := range q.sales.Alarms() {
		if one.SKU == "" || strings.HasPrefix(one.SKU, sale+"/") {
			alarms = append(alarms, Alarm{Kind: one.Kind, SKU: one.SKU, Value: one.Value, Why: one.Why, Since: instant(one.Since)})
		}
	}
	return alarms
}

func skuOf(spec *flashsale.SKU, look *engine.Look) SKU {
	k := SKU{
		ID: spec.ID, Title: spec.Title, Price: spec.Price, PurchaseLimit: look.SKU.Settings.PurchaseLimit,
		Status: string(look.SKU.Settings.Status), Rate: look.SKU.Settings.Rate, UnderWay: look.UnderWay, SQL: sqlOf(&look.SKU, look.Unsent),
	}
	if look.StockErr != nil {
		k.StockError = look.StockErr.Error()
		return k
	}
	v := &look.Stock
	stock := stockOf(v)
	k.Stock, k.StockRate = &stock, v.Settings.Rate
	k.Queue = &Queue{Depth: v.Queue.Depth, Pulled: v.Queue.Pulled, Pending: v.Queue.Pending, Dead: v.Queue.Dead, OldestMs: v.Queue.Oldest.Milliseconds()}
	return k
}

func sqlOf(s *flashsale.SKUState, unsent int64) SQL {
	return SQL{
		Total: s.Total, Available: s.Available(), Reserved: s.Reserved, Sold: s.Sold, Epoch: s.Epoch, Rebuilding: s.Rebuilding, Unsent: unsent,
	}
}

func stockOf(v *flashsale.StockView) Stock {
	return Stock{
		Total: v.Total, Available: v.Available, Held: v.Held, Sold: v.Sold, Epoch: v.Epoch, Loaded: v.Loaded,
		Status: cmp.Or(string(v.Settings.Status), "none"),
	}
}

func operationsOf(ops []flashsale.Operation) []Operation {
	all := make([]Operation, len(ops))
	for i := range ops {
		op := &ops[i]
		all[i] = Operation{
			ID: op.ID, Sale: op.Key.Sale, SKU: op.Key.SKU, Kind: string(op.Kind), Units: op.Delta, Status: string(op.Status), Rate: op.Rate,
			Reason: op.Reason, By: op.By, State: string(op.State), Detail: op.Detail, CreatedAt: instant(op.CreatedAt),
		}
	}
	return all
}
