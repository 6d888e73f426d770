package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// BeginRebuild implements [flashsale.Rebuilds]. The row of the sku is locked before that of the lease.
func (o *Orders) BeginRebuild(ctx context.Context, key flashsale.Key, lease string, fence int64) (epoch int64, err error) {
	if err := checkLease(lease, "any"); err != nil {
		return 0, err
	}
	err = o.write(ctx, "BeginRebuild", func(t *tx) error {
		sku, err := t.lockSKU(key)
		if err != nil {
			return err
		}
		if err := t.fenced(lease, fence); err != nil {
			return err
		}
		epoch = sku.Epoch + 1
		_, err = t.exec("UPDATE sale_sku SET epoch = ?, rebuilding = 1, seq = 0, store_run = '', changed_at = ? WHERE sale = ? AND sku = ?",
			epoch, t.now, key.Sale, key.SKU)
		return err
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

// EndRebuild implements [flashsale.Rebuilds]. Ending it again with the same run is fine.
func (o *Orders) EndRebuild(ctx context.Context, key flashsale.Key, epoch int64, storeRun string) error {
	if len(storeRun) > maxStoreRun {
		return invalidf("the run of the stock of %s has %d bytes, more than %d", key, len(storeRun), maxStoreRun)
	}
	return o.write(ctx, "EndRebuild", func(t *tx) error {
		sku, err := t.lockSKU(key)
		if err != nil {
			return err
		}
		if err := inEpoch(sku, epoch); err != nil {
			return err
		}
		_, err = t.exec("UPDATE sale_sku SET rebuilding = 0, store_run = ?, changed_at = ? WHERE sale = ? AND sku = ?", text(storeRun), t.now, key.Sale, key.SKU)
		return err
	})
}

const maxStoreRun = 200

// inEpoch is CodeStaleEpoch unless a sku has this epoch.
func inEpoch(sku *flashsale.SKUState, epoch int64) error {
	if sku.Epoch == epoch {
		return nil
	}
	return errorf(flashsale.CodeStaleEpoch, "the epoch of %s is %d, not %d", sku.Key, sku.Epoch, epoch)
}
