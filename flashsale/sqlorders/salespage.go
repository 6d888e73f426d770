package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// maxSalesPage bounds a page of sales.
const maxSalesPage = 500

// SalesAfter implements [flashsale.Sales].
func (o *Orders) SalesAfter(ctx context.Context, after string, limit int) (sales []flashsale.Sale, skus []flashsale.SKUState, err error) {
	if after != "" && !isID(after) {
		return nil, nil, errorf(flashsale.CodeUnknownSale, "there is no sale %.64q to go on after", after)
	}
	err = o.read(ctx, "SalesAfter", func(t *tx) (err error) {
		if sales, err = t.salesAfter(after, min(max(limit, 0), maxSalesPage)); err != nil || len(sales) == 0 {
			return err
		}
		skus, err = t.skusOfSales(sales)
		return err
	})
	return sales, skus, err
}

func (t *tx) salesAfter(after string, limit int) (sales []flashsale.Sale, err error) {
	where, args := "", []any{}
	if after != "" {
		var created int64
		found, err := t.one("SELECT created_at FROM sale WHERE id = ?", []any{after}, &created)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, errorf(flashsale.CodeUnknownSale, "there is no sale %q to go on after", after)
		}
		where, args = "WHERE created_at < ? OR created_at = ? AND id < ? ", []any{created, created, after}
	}
	err = t.query("SELECT id, body FROM sale "+where+"ORDER BY created_at DESC, id DESC LIMIT ?", append(args, int64(limit)), func(scan func(...any) error) error {
		var id, body string
		if err := scan(&id, &body); err != nil {
			return err
		}
		sale, err := saleOf(id, body)
		if err == nil {
			sales = append(sales, *sale)
		}
		return err
	})
	return sales, err
}

// skusOfSales reads the skus of sales, in the order of their keys.
func (t *tx) skusOfSales(sales []flashsale.Sale) (skus []flashsale.SKUState, err error) {
	ids := make([]string, len(sales))
	for i := range sales {
		ids[i] = sales[i].ID
	}
	where, args := in(t.d, "sale", ids)
	err = t.query("SELECT "+skuColumns+" FROM sale_sku WHERE "+where+" ORDER BY sale, ord", args, func(scan func(...any) error) error {
		var row skuRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		skus = append(skus, *row.result())
		return nil
	})
	return skus, err
}
