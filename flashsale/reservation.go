package flashsale

import "time"

// Reservation is a row of SQL.
type Reservation struct {
	RID      string
	Key      Key
	User     string
	Quantity int64
	State    State
	// Version is 1 when SQL first writes the row, and one more with every transition. A pending one has version 0.
	Version int64
	// Reason says why it was rejected, cancelled or expired: one of the Reason constants, or an operator's words.
	Reason string
	// Until is the time until which it can be paid, and PayGranted tells that the time to pay was granted already.
	Until      time.Time
	PayGranted bool
	OrderID    string
	// Amount is to be paid, in the smallest unit of the currency.
	Amount   int64
	Currency string
	// Origin is the key of the intent whose capture this reservation was made for (T8), "" for a shopper's own.
	Origin                        string
	CreatedAt, ChangedAt, EndedAt time.Time
}

// Reasons why a reservation was rejected or has ended.
const (
	ReasonSoldOut       = "sold_out"       // SQL has not enough left
	ReasonPurchaseLimit = "purchase_limit" // SQL knows of more purchases
	ReasonNotOpen       = "not_open"       // the sku was closed meanwhile
	ReasonDeadline      = "deadline"       // not decided in time
	ReasonUnpaid        = "unpaid"         // not paid in time
	ReasonPaymentVoid   = "payment_void"   // the payment was not completed in time
	ReasonByOwner       = "by_owner"
	ReasonByOperator    = "by_operator"
)

// Entry is a reservation as the Stock has it.
type Entry struct {
	RID      string
	User     string
	Quantity int64
	State    State
	Version  int64
	// At is when it came to this state by the Stock's clock; of a pending one, its Deadline is when the sweeper may refuse it.
	At, Deadline time.Time
}

// Effect is what SQL has decided of a reservation, to be followed by the Stock.
type Effect struct {
	RID      string
	User     string
	Quantity int64
	State    State
	Version  int64
}

// Job is a reservation that waits to be decided: an entry of the queue.
type Job struct {
	// ID is the entry's own name in the queue, by which it is acknowledged; unique within a key and an epoch.
	ID       string
	RID      string
	User     string
	Quantity int64
	// Origin as in Reservation.
	Origin string
	// Seq is the Stock's sequence number at T0.
	Seq int64
	// At is when it was appended, by the Stock's clock.
	At, Deadline time.Time
	// Deliveries counts how often it was pulled, this time included.
	Deliveries int64
}

// Decided is where a reservation stands after a call of Orders.
type Decided struct {
	RID      string
	User     string
	Quantity int64
	State    State
	Version  int64
	Reason   string
	// Replayed tells that the row was there already and nothing changed.
	Replayed bool
	// Outbox is the id of the row that tells of this version, 0 if Replayed.
	Outbox int64
}

// Effect returns what the Stock has to follow.
func (d *Decided) Effect() Effect {
	return Effect{RID: d.RID, User: d.User, Quantity: d.Quantity, State: d.State, Version: d.Version}
}
