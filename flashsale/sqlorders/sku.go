package sqlorders

import (
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// skuColumns are those that a flashsale.SKUState is made of.
const skuColumns = "sale, sku, title, total, reserved, sold, epoch, rebuilding, status, settings_version, rate, purchase_limit, price, currency, " +
	"opens_at, closes_at, hold, pay_time, grace, seq, store_run, retired"

// skuRow is what a row of sale_sku is scanned into.
type skuRow struct {
	state                                   flashsale.SKUState
	status                                  string
	rebuilding                              int64
	opensAt, closesAt, hold, payTime, grace int64
	retired                                 int64
}

func (r *skuRow) dest() []any {
	s := &r.state
	return []any{&s.Key.Sale, &s.Key.SKU, &s.Title, &s.Total, &s.Reserved, &s.Sold, &s.Epoch, &r.rebuilding, &r.status, &s.Settings.Version,
		&s.Settings.Rate, &s.Settings.PurchaseLimit, &s.Price, &s.Currency, &r.opensAt, &r.closesAt, &r.hold, &r.payTime, &r.grace, &s.Seq, &s.StoreRun, &r.retired}
}

func (r *skuRow) result() *flashsale.SKUState {
	s := r.state
	s.Rebuilding, s.Retired = r.rebuilding != 0, r.retired == s.Epoch
	s.Settings.Status = flashsale.Status(r.status)
	s.Settings.OpensAt, s.Settings.ClosesAt = timeAt(r.opensAt), timeAt(r.closesAt)
	s.Hold, s.PayTime, s.Grace = duration(r.hold), duration(r.payTime), duration(r.grace)
	return &s
}

func duration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// lockSKU locks the row of a sku, as the first of all that a transaction locks, and sets now. CodeUnknownSKU or CodeUnknownSale if
// there is none.
func (t *tx) lockSKU(key flashsale.Key) (*flashsale.SKUState, error) {
	return t.skuBy(t.lock, key)
}

// readSKU is lockSKU without a lock and without the clock.
func (t *tx) readSKU(key flashsale.Key) (*flashsale.SKUState, error) {
	return t.skuBy(t.one, key)
}

func (t *tx) skuBy(read func(query string, args []any, dest ...any) (bool, error), key flashsale.Key) (*flashsale.SKUState, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	var row skuRow
	found, err := read("SELECT "+skuColumns+" FROM sale_sku WHERE sale = ? AND sku = ?", []any{key.Sale, key.SKU}, row.dest()...)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, t.noSKU(key)
	}
	return row.result(), nil
}

func (t *tx) noSKU(key flashsale.Key) error {
	found, err := t.one("SELECT 1 FROM sale WHERE id = ?", []any{key.Sale}, new(int64))
	switch {
	case err != nil:
		return err
	case !found:
		return errorf(flashsale.CodeUnknownSale, "there is no sale %q", key.Sale)
	}
	return errorf(flashsale.CodeUnknownSKU, "sale %q has no sku %q", key.Sale, key.SKU)
}

// checkKey keeps what cannot be an id from the database, which might refuse it with an error of its own.
func checkKey(key flashsale.Key) error {
	if err := flashsale.CheckID("the id of the sale", key.Sale); err != nil {
		return err
	}
	return flashsale.CheckID("the id of the sku", key.SKU)
}
