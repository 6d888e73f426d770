package flashsale

import (
	"context"
	"time"
)

// Payments is a payment provider. All calls can be repeated. An error with CodeUnavailable leaves open what happened.
type Payments interface {
	// Create makes an intent under its key; the same key again returns the same intent.
	Create(ctx context.Context, in *Intent) (*ProviderPayment, error)
	// Query returns what the provider knows; CodeUnknownPayment if it does not know the key.
	Query(ctx context.Context, intentKey string) (*ProviderPayment, error)
	// Void asks that an intent be not captured any more. The status that comes back may be PayVoid, PayCaptured (too late), or
	// PayOpen (asked for, not decided yet).
	Void(ctx context.Context, intentKey string) (*ProviderPayment, error)
	// Refund gives all of a captured payment back, once for each key.
	Refund(ctx context.Context, intentKey string) (*ProviderPayment, error)
	// Webhook checks the signature of a message of the provider, and its age, far below EventsFor, and reads it. CodeInvalidSignature.
	Webhook(header map[string][]string, body []byte) (*ProviderEvent, error)
	// List returns payments that changed since a time, in pages: what the match is made with.
	List(ctx context.Context, since time.Time, cursor string, limit int) (page []ProviderPayment, next string, err error)
}

// Intent is what a shopper is to pay.
type Intent struct {
	Key      string
	Amount   int64
	Currency string
	// OrderID and User are shown in the provider's own pages.
	OrderID, User string
	// ReturnURL is where the provider's pages send the shopper back to, "" for what the provider is set up with.
	ReturnURL string
}

// PayStatus is where a payment stands at the provider.
type PayStatus string

// The statuses.
const (
	PayOpen     PayStatus = "open"
	PayCaptured PayStatus = "captured"
	PayFailed   PayStatus = "failed"
	PayVoid     PayStatus = "void"
	PayRefunded PayStatus = "refunded"
)

// ProviderPayment is a payment as the provider has it.
type ProviderPayment struct {
	IntentKey string
	Status    PayStatus
	Amount    int64
	Currency  string
	// URL is where the shopper pays.
	URL       string
	ChangedAt time.Time
}

// ProviderEvent is a message of the provider. It says that something has changed; what is true is asked for when it matters.
type ProviderEvent struct {
	ID      string
	Payment ProviderPayment
}

// Payment is a row of SQL: one attempt to pay for a reservation.
type Payment struct {
	IntentKey string
	RID       string
	Attempt   int64
	Amount    int64
	Currency  string
	State     PaymentState
	// AppliedTo is the rid of the reservation that the capture has paid.
	AppliedTo string
	// Reason says why it is refunded.
	Reason               string
	CreatedAt, ChangedAt time.Time
}

// PaymentState is where a row stands.
type PaymentState string

// The states of a row. PaymentCaptured without AppliedTo waits for T8.
const (
	PaymentLive      PaymentState = "live"
	PaymentCaptured  PaymentState = "captured"
	PaymentVoid      PaymentState = "void"
	PaymentFailed    PaymentState = "failed"
	PaymentRefunding PaymentState = "refunding" // a refund is owed
	PaymentRefunded  PaymentState = "refunded"
)

// PaymentBook are the transitions that payments make.
type PaymentBook interface {
	// BeginPayment is T3; while confirming, it returns the live payment again. User must be the owner's, else CodeNotFound.
	BeginPayment(ctx context.Context, rid, user string) (*Payment, Decided, error)
	// Outcome takes what the provider is known to have decided: T3b, T4, T7, or T9; a capture that fits nothing is kept as
	// PaymentCaptured for T8. EventID "" is the poller's. A status that changes nothing is fine: captured is final but for a
	// refund, and whatever comes late is ignored. Amount and currency that differ, of a capture: the payment is to be refunded.
	// PayRefunded of a live payment is as PayVoid to its reservation, and ends as PaymentRefunded; of one to be refunded, as
	// Refunded; of one that is applied, nothing (the match tells). CodeUnknownPayment if there is no such payment.
	Outcome(ctx context.Context, eventID string, p *ProviderPayment) (*PaymentOutcome, error)
	// SeenEvent reports whether this event was taken already.
	SeenEvent(ctx context.Context, eventID string) (bool, error)
	// PruneEvents forgets events older than age, the oldest first, at most limit; but none of a payment that is live or that anything is
	// still owed to. One that comes again after that meets what its payment has become, and changes nothing.
	PruneEvents(ctx context.Context, age time.Duration, limit int) (int64, error)
	// ApplyCapture is T8's T4: a captured payment pays for the reservation that was made for it (Origin); if that has ended or was
	// rejected, the payment is to be refunded.
	ApplyCapture(ctx context.Context, intentKey string) (*PaymentOutcome, error)
	// RefuseCapture is T8's end without a unit: the payment is to be refunded, and the derived rid gets a tombstone.
	RefuseCapture(ctx context.Context, intentKey, reason string) (*PaymentOutcome, error)
	// Refunded marks a refund as made.
	Refunded(ctx context.Context, intentKey string) error
	Payment(ctx context.Context, intentKey string) (*Payment, error)
	PaymentsOf(ctx context.Context, rid string) ([]Payment, error)
	// OpenPayments pages through what the poller has to look at, longest unchanged first: payments of one state that have not
	// changed for age. Of PaymentCaptured only those that are not applied.
	OpenPayments(ctx context.Context, state PaymentState, age time.Duration, cursor string, limit int) (page []Payment, next string, err error)
	// PaymentsSince pages through payments by change, for the match.
	PaymentsSince(ctx context.Context, since time.Time, cursor string, limit int) (page []Payment, next string, err error)
	// PaidSince pages, by change, through reservations that any table says are paid: confirmed, or with a paid order, or settled as
	// sold, or with a payment applied to them. The third side of the match.
	PaidSince(ctx context.Context, since time.Time, cursor string, limit int) (page []Paid, next string, err error)
	// MatchSince is what Matched or MatchAgain noted last: whoever matches next, and has not matched before, has to look at what has
	// changed since. Before there is such a time, it is when the oldest sale was created, or now.
	MatchSince(ctx context.Context) (time.Time, error)
	// Matched notes that a match has come to its end, and from when on the next has to look, if MatchSince still is what it was when the
	// match began. noted is false, and nothing changes, if it is not: somebody else has matched, or has asked to look again.
	Matched(ctx context.Context, was, from time.Time) (noted bool, err error)
	// MatchAgain asks whoever matches to look at what has changed since this time, or since the oldest sale if that is later, or since what
	// is noted if that is earlier. MatchSince is another one after it, by at least a microsecond.
	MatchAgain(ctx context.Context, since time.Time) error
}

// Paid is a reservation as each of the tables has it that say what was paid.
type Paid struct {
	Reservation Reservation
	// OrderPaid tells that its order is paid.
	OrderPaid bool
	// LedgerSold is the quantity that the ledger has settled as sold, 0: none.
	LedgerSold int64
	// IntentKey is the payment applied to it, "": none.
	IntentKey    string
	PaymentState PaymentState
}

// PaymentOutcome is what came of it.
type PaymentOutcome struct {
	Payment Payment
	// Decided are the reservations that moved, at most one, or none.
	Decided []Decided
	Key     Key
	// Reservation is the one the payment was begun for.
	Reservation Reservation
	// Rival tells that this capture has just paid for the reservation while another attempt to pay for it is live, which is to be
	// voided: an attempt that had failed, or was void, has gone through after all.
	Rival bool
}

// DerivedRID is the rid under which T8 acquires again for a capture: of the intent's key, so that it is the same whoever repeats it.
func DerivedRID(intentKey string) string { return "re." + shortHash(intentKey) }

// IntentKey names an attempt to pay for a reservation.
func IntentKey(rid string, attempt int64) string { return rid + ":" + itoa(attempt) }
