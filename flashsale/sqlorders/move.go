package sqlorders

import (
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// The words of the ledger and of orders.
const (
	phaseReserve = "reserve"
	phaseSettle  = "settle"

	kindSold     = "sold"
	kindReleased = "released"

	orderUnpaid    = "unpaid"
	orderPaid      = "paid"
	orderCancelled = "cancelled"
	orderExpired   = "expired"
)

// lockReservation locks the sku of a reservation and reads both, in this order: the key of a reservation never changes, so that it
// may be read before the lock, and everything else only after it.
func (t *tx) lockReservation(rid string) (*flashsale.SKUState, *flashsale.Reservation, error) {
	if !isID(rid) {
		return nil, nil, noReservation(rid)
	}
	var key flashsale.Key
	found, err := t.one("SELECT sale, sku FROM reservation WHERE rid = ?", []any{rid}, &key.Sale, &key.SKU)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, nil, noReservation(rid)
	}
	s, err := t.lockSKU(key)
	if err != nil {
		return nil, nil, err
	}
	r, err := t.reservation(rid)
	return s, r, err
}

// change is what a transition makes of a reservation: its new state with its reason, and the time until which it can be paid.
type change struct {
	to      flashsale.State
	reason  string
	until   time.Time
	granted bool
}

// become is a change that leaves the time to pay as it is.
func become(r *flashsale.Reservation, to flashsale.State, reason string) change {
	return change{to: to, reason: reason, until: r.Until, granted: r.PayGranted}
}

// move makes a transition of a reservation whose sku is locked, with all that follows it: units, buyer, ledger, order and outbox. It
// is a compare-and-set on the version that was read, and r follows.
func (t *tx) move(r *flashsale.Reservation, c change) (flashsale.Decided, error) {
	if !r.State.CanBecome(c.to) {
		return flashsale.Decided{}, invalidState(r, "become "+c.to.String())
	}
	from, version := r.State, r.Version
	r.State, r.Version, r.Reason, r.Until, r.PayGranted, r.ChangedAt = c.to, version+1, c.reason, c.until, c.granted, timeAt(t.now)
	if c.to.Terminal() {
		r.EndedAt = r.ChangedAt
	}
	err := t.exactlyOne("reservation "+r.RID+" has changed under its lock",
		"UPDATE reservation SET state = ?, version = ?, reason = ?, until_at = ?, pay_granted = ?, changed_at = ?, ended_at = ? WHERE rid = ? AND version = ?",
		int64(c.to), r.Version, c.reason, micros(c.until), flag(c.granted), t.now, orNull(micros(r.EndedAt)), r.RID, version)
	if err != nil {
		return flashsale.Decided{}, err
	}
	if from.Class() == flashsale.Held && c.to.Class() != flashsale.Held {
		if err := t.settleUnits(r); err != nil {
			return flashsale.Decided{}, err
		}
	}
	d := standing(r)
	err = t.tell([]flashsale.Reservation{*r}, func(_ string, id int64) { d.Outbox = id })
	return d, err
}

// settleUnits takes a reservation that has ended out of what is reserved, into what is sold or left.
func (t *tx) settleUnits(r *flashsale.Reservation) error {
	sold, kind := int64(0), kindReleased
	if r.State.Class() == flashsale.Sold {
		sold, kind = r.Quantity, kindSold
	}
	sale, sku := r.Key.Sale, r.Key.SKU
	err := t.exactlyOne("there is no sku "+r.Key.String(), "UPDATE sale_sku SET reserved = reserved - ?, sold = sold + ?, changed_at = ? WHERE sale = ? AND sku = ?",
		r.Quantity, sold, t.now, sale, sku)
	if err != nil {
		return err
	}
	if kind == kindReleased {
		err = t.exactlyOne("reservation "+r.RID+" has no buyer", "UPDATE buyer SET quantity = quantity - ? WHERE sale = ? AND sku = ? AND user_id = ?",
			r.Quantity, sale, sku, []byte(r.User))
		if err != nil {
			return err
		}
	}
	// The primary key (id, phase) makes a reservation settle once.
	if err := t.insert(ledgerColumns(), "", [][]any{{r.RID, phaseSettle, sale, sku, r.Quantity, kind, t.now}}); err != nil {
		return err
	}
	return t.exactlyOne("reservation "+r.RID+" has no unpaid order", "UPDATE orders SET state = ?, changed_at = ? WHERE rid = ? AND state = ?",
		orderState(r.State), t.now, r.RID, orderUnpaid)
}

// orderState is what an order becomes when its reservation ends.
func orderState(s flashsale.State) string {
	switch s {
	case flashsale.Confirmed:
		return orderPaid
	case flashsale.Cancelled:
		return orderCancelled
	}
	return orderExpired
}

// exactlyOne runs a statement that must change one row; anything else means that the tables contradict each other.
func (t *tx) exactlyOne(contradiction, text string, args ...any) error {
	n, err := t.exec(text, args...)
	if err == nil && n != 1 {
		return errorf(flashsale.CodeInternal, "sqlorders: %s (%d rows); nothing was changed", contradiction, n)
	}
	return err
}

// standing is where a reservation stands.
func standing(r *flashsale.Reservation) flashsale.Decided {
	return flashsale.Decided{RID: r.RID, User: r.User, Quantity: r.Quantity, State: r.State, Version: r.Version, Reason: r.Reason}
}

// replayed is the answer of a call that changes nothing.
func replayed(r *flashsale.Reservation) flashsale.Decided {
	d := standing(r)
	d.Replayed = true
	return d
}

func noReservation(rid string) error {
	return errorf(flashsale.CodeNotFound, "there is no reservation %.64q", rid)
}

func invalidState(r *flashsale.Reservation, what string) error {
	return errorf(flashsale.CodeInvalidState, "reservation %s is %s and cannot %s", r.RID, r.State, what)
}

// flag is a yes or no as it is stored.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// orNull is a number as it is stored where there may be none.
func orNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
