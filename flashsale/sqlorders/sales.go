package sqlorders

import (
	"context"
	"encoding/json"

	"github.com/headgate-io/headgate/flashsale"
)

// saleBody is a sale as it was created, as it is stored: the same sale has the same bytes. Times and durations are microseconds.
type saleBody struct {
	Title    string    `json:"title"`
	Currency string    `json:"currency"`
	Zone     string    `json:"zone"`
	OpensAt  int64     `json:"opens_at"`
	ClosesAt int64     `json:"closes_at"`
	Hold     int64     `json:"hold"`
	PayTime  int64     `json:"pay_time"`
	Grace    int64     `json:"grace"`
	Rate     int64     `json:"rate"`
	SKUs     []skuBody `json:"skus"`
}

type skuBody struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Total int64  `json:"total"`
	Limit int64  `json:"purchase_limit"`
	Price int64  `json:"price"`
}

func bodyOf(s *flashsale.Sale) (string, error) {
	b := saleBody{
		Title: text(s.Title), Currency: s.Currency, Zone: s.Zone, OpensAt: micros(s.OpensAt), ClosesAt: micros(s.ClosesAt),
		Hold: s.Hold.Microseconds(), PayTime: s.PayTime.Microseconds(), Grace: s.Grace.Microseconds(), Rate: s.Rate,
	}
	for _, k := range s.SKUs {
		b.SKUs = append(b.SKUs, skuBody{ID: k.ID, Title: text(k.Title), Total: k.Total, Limit: k.PurchaseLimit, Price: k.Price})
	}
	encoded, err := json.Marshal(b)
	return string(encoded), err
}

func saleOf(id, body string) (*flashsale.Sale, error) {
	var b saleBody
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeInternal, Message: "sqlorders: the stored body of sale " + id, Err: err}
	}
	s := &flashsale.Sale{
		ID: id, Title: b.Title, Currency: b.Currency, Zone: b.Zone, OpensAt: timeAt(b.OpensAt), ClosesAt: timeAt(b.ClosesAt),
		Hold: duration(b.Hold), PayTime: duration(b.PayTime), Grace: duration(b.Grace), Rate: b.Rate,
	}
	for _, k := range b.SKUs {
		s.SKUs = append(s.SKUs, flashsale.SKU{ID: k.ID, Title: k.Title, Total: k.Total, PurchaseLimit: k.Limit, Price: k.Price})
	}
	return s, nil
}

// CreateSale implements [flashsale.Sales].
func (o *Orders) CreateSale(ctx context.Context, s *flashsale.Sale) error {
	full := s.WithDefaults()
	if err := full.Validate(); err != nil {
		return err
	}
	body, err := bodyOf(&full)
	if err != nil {
		return &flashsale.Error{Code: flashsale.CodeInternal, Message: "sqlorders: the body of sale " + full.ID, Err: err}
	}
	return o.write(ctx, "CreateSale", func(t *tx) error {
		var stored string
		found, err := t.one("SELECT body FROM sale WHERE id = ?", []any{full.ID}, &stored)
		switch {
		case err != nil:
			return err
		case found && stored == body:
			return nil
		case found:
			return errorf(flashsale.CodeExists, "there is a sale %q that says something else; what a sale says does not change: give the new one another id", full.ID)
		}
		return t.insertSale(&full, body)
	})
}

func (t *tx) insertSale(s *flashsale.Sale, body string) error {
	if err := t.clock(); err != nil {
		return err
	}
	begun, err := t.beginnings(s.ID)
	if err != nil {
		return err
	}
	common := []any{micros(s.OpensAt), micros(s.ClosesAt), s.Hold.Microseconds(), s.PayTime.Microseconds(), s.Grace.Microseconds(), s.Rate}
	sale := append([]any{s.ID, text(s.Title), s.Currency, s.Zone, body, t.now}, common...)
	var skus, ledger [][]any
	for i := range s.SKUs {
		k := &s.SKUs[i]
		skus = append(skus, append([]any{s.ID, k.ID, int64(i), text(k.Title), k.Total, k.Total, int64(0), int64(0), begun[k.ID].epoch + 1, int64(1),
			string(flashsale.Draft), begun[k.ID].version + 1, k.PurchaseLimit, k.Price, s.Currency, int64(0), "", t.now}, common...))
		ledger = append(ledger, []any{s.ID + "/" + k.ID, phaseInitial, s.ID, k.ID, k.Total, "", t.now})
	}
	if err := t.insert(columnsOf("sale", "id", "title", "currency", "zone", "body", "created_at int", "opens_at int", "closes_at int",
		"hold int", "pay_time int", "grace int", "rate int"), "", [][]any{sale}); err != nil {
		return err
	}
	if err := t.insert(columnsOf("sale_sku", "sale", "sku", "ord int", "title", "total int", "initial int", "reserved int", "sold int",
		"epoch int", "rebuilding int", "status", "settings_version int", "purchase_limit int", "price int", "currency", "seq int", "store_run",
		"changed_at int", "opens_at int", "closes_at int", "hold int", "pay_time int", "grace int", "rate int"), "", skus); err != nil {
		return err
	}
	return t.insert(ledgerColumns(), "", ledger)
}

// Sale implements [flashsale.Sales]. It is the sale as it was created; what has changed since (totals, rates, statuses) is in SKU.
func (o *Orders) Sale(ctx context.Context, id string) (*flashsale.Sale, error) {
	if err := flashsale.CheckID("the id of the sale", id); err != nil {
		return nil, err
	}
	var sale *flashsale.Sale
	err := o.read(ctx, "Sale", func(t *tx) error {
		var body string
		found, err := t.one("SELECT body FROM sale WHERE id = ?", []any{id}, &body)
		switch {
		case err != nil:
			return err
		case !found:
			return errorf(flashsale.CodeUnknownSale, "there is no sale %q", id)
		}
		sale, err = saleOf(id, body)
		return err
	})
	return sale, err
}

// SaleIDs implements [flashsale.Sales].
func (o *Orders) SaleIDs(ctx context.Context, limit int) ([]string, error) {
	var ids []string
	err := o.read(ctx, "SaleIDs", func(t *tx) error {
		return t.query("SELECT id FROM sale ORDER BY created_at DESC, id DESC LIMIT ?", []any{bounded(limit)}, func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	return ids, err
}

// SKU implements [flashsale.Sales].
func (o *Orders) SKU(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	var state *flashsale.SKUState
	err := o.read(ctx, "SKU", func(t *tx) (err error) {
		state, err = t.readSKU(key)
		return err
	})
	return state, err
}

// maxLimit bounds what a list returns.
const maxLimit = 10_000

// bounded is a limit that a caller gave, from 0 to maxLimit.
func bounded(limit int) int64 { return int64(min(max(limit, 0), maxLimit)) }

// The phases of the ledger in which units come and go.
const (
	phaseInitial  = "initial"
	phaseTopUp    = "top_up"
	phaseWithdraw = "withdraw"
)

func ledgerColumns() columns {
	return columnsOf("stock_ledger", "id", "phase", "sale", "sku", "quantity int", "kind", "at int")
}
