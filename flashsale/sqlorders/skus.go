package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// retirable is what SKUs does not list, as a condition with the time up to which a sku must have been quiet.
const retirable = "status = 'closed' AND reserved = 0 AND changed_at < ?"

// SKUs implements [flashsale.Sales]. They come in the order of their sales' ids, and in a sale in the sale's order.
func (o *Orders) SKUs(ctx context.Context) ([]flashsale.SKUState, error) {
	return o.skus(ctx, "SKUs", "NOT ("+retirable+") ORDER BY sale, ord")
}

// Retirable implements [flashsale.Sales].
func (o *Orders) Retirable(ctx context.Context, after flashsale.Key, limit int) ([]flashsale.SKUState, error) {
	return o.skus(ctx, "Retirable", retirable+" AND rebuilding = 0 AND retired <> epoch AND sale >= ? AND (sale > ? OR sku > ?) ORDER BY sale, sku LIMIT ?",
		after.Sale, after.Sale, after.SKU, bounded(limit))
}

// skus reads skus by a condition whose first argument is the time up to which one must have been quiet.
func (o *Orders) skus(ctx context.Context, method, where string, more ...any) (all []flashsale.SKUState, err error) {
	err = o.read(ctx, method, func(t *tx) error {
		if err := t.clock(); err != nil {
			return err
		}
		return t.query("SELECT "+skuColumns+" FROM sale_sku WHERE "+where, append([]any{t.quiet()}, more...), func(scan func(...any) error) error {
			var row skuRow
			if err := scan(row.dest()...); err != nil {
				return err
			}
			all = append(all, *row.result())
			return nil
		})
	})
	return all, err
}

// quiet is the time since when a closed sku must not have changed to be retired.
func (t *tx) quiet() int64 { return t.now - flashsale.Retention.Microseconds() }

// Retire implements [flashsale.Sales].
func (o *Orders) Retire(ctx context.Context, key flashsale.Key, epoch int64) error {
	return o.write(ctx, "Retire", func(t *tx) error {
		sku, err := t.lockSKU(key)
		if err != nil {
			return err
		}
		if err := inEpoch(sku, epoch); err != nil {
			return err
		}
		n, err := t.exec("UPDATE sale_sku SET retired = epoch WHERE "+retirable+" AND rebuilding = 0 AND sale = ? AND sku = ?", t.quiet(), key.Sale, key.SKU)
		if err == nil && n == 0 {
			err = errorf(flashsale.CodeInvalidState, "%s cannot be retired: it is not closed, or not quiet for %s, or being rebuilt", key, flashsale.Retention)
		}
		return err
	})
}
