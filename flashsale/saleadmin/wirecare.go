package saleadmin

import "time"

// The documents of what is looked at when something is wrong.

// Story is all that is known of a shopper in a sale.
type Story struct {
	Sale string `json:"sale"`
	// Zone is that of the sale, in which its operators read times.
	Zone string `json:"zone"`
	// User, or where that is not UTF-8 UserBase64.
	User       string `json:"user,omitempty"`
	UserBase64 []byte `json:"user_base64,omitempty"`
	// Reservations are the newest first: those that are pending, and at most 200 of SQL; one that was refused by SQL is among them, with the reason.
	Reservations []Reservation `json:"reservations"`
	// StockError says why what is pending is not known, of all skus or of some.
	StockError string `json:"stock_error,omitempty"`
	// Refusals are those that have left no row.
	Refusals Refusals `json:"refusals"`
}

// Reservation is one of a story.
type Reservation struct {
	RID      string `json:"rid"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Version  int64  `json:"version"`
	// Until is when it has to be paid, of a pending one when it is decided at the latest.
	Until      *time.Time `json:"until,omitempty"`
	PayGranted bool       `json:"pay_granted"`
	OrderID    string     `json:"order_id,omitempty"`
	Amount     int64      `json:"amount"`
	Currency   string     `json:"currency,omitempty"`
	// Origin is the payment that it was made for, after the one that was paid for had ended.
	Origin    string     `json:"origin,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ChangedAt time.Time  `json:"changed_at"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Payments  []Payment  `json:"payments"`
}

// Payment is an attempt to pay.
type Payment struct {
	IntentKey string    `json:"intent_key"`
	Attempt   int64     `json:"attempt"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	State     string    `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	AppliedTo string    `json:"applied_to,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
}

// Refusals are what the shopper was refused, by all instances where Fleet says so, else by the one that answers.
type Refusals struct {
	Instance string `json:"instance"`
	Fleet    bool   `json:"fleet"`
	// Since is how far back they reach: everything after it is there. Dropped counts what is nowhere any more, of all shoppers.
	Since   time.Time `json:"since"`
	Dropped int64     `json:"dropped"`
	// Missing says, in a sentence each, why some may not be there.
	Missing []string  `json:"missing"`
	Of      []Refusal `json:"of"`
}

// Refusal is what the shopper was told, Count times from First to Last. With a Rule it was that rule, or list, of the policy that turned the
// request away; Detail says then what was asked for, and SKU is empty if that was the sale alone.
type Refusal struct {
	SKU          string    `json:"sku"`
	Code         string    `json:"code"`
	Detail       string    `json:"detail,omitempty"`
	Rule         string    `json:"rule,omitempty"`
	Quantity     int64     `json:"quantity,omitempty"`
	RetryAfterMs int64     `json:"retry_after_ms,omitempty"`
	Count        int64     `json:"count"`
	First        time.Time `json:"first"`
	Last         time.Time `json:"last"`
}

// DeadLetters are jobs that could not be decided, oldest first.
type DeadLetters struct {
	// Zone is that of the sale, in which its operators read times.
	Zone        string       `json:"zone"`
	DeadLetters []DeadLetter `json:"dead_letters"`
	// More tells that there are younger ones: revive these first, or ask for more of them.
	More bool `json:"more"`
}

// DeadLetter is one of them. After its deadline its reservation is refused, and it cannot be revived.
type DeadLetter struct {
	ID         string    `json:"id"`
	RID        string    `json:"rid"`
	User       string    `json:"user,omitempty"`
	UserBase64 []byte    `json:"user_base64,omitempty"`
	Quantity   int64     `json:"quantity"`
	Reason     string    `json:"reason"`
	Deliveries int64     `json:"deliveries"`
	At         time.Time `json:"at"`
	Deadline   time.Time `json:"deadline"`
	DiedAt     time.Time `json:"died_at"`
}

// Revived is the answer to a ReviveOrder. Those past their deadline are not among the revived.
type Revived struct {
	OperationID string `json:"operation_id"`
	Revived     int    `json:"revived"`
}

// Preflight is what the check before an opening says. OK tells that nothing stops it.
type Preflight struct {
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// Report says whether the stores agree, of a page of skus.
type Report struct {
	// Zone is that of the sale, in which its operators read times.
	Zone     string `json:"zone"`
	Instance string `json:"instance"`
	// Reconciliation is the last pass of this instance over the sale, missing if it has made none.
	Reconciliation *Reconciliation `json:"reconciliation,omitempty"`
	Audits         []Audit         `json:"audits"`
	// Next is the cursor of the next page, left out after the last.
	Next string `json:"next,omitempty"`
}

// Reconciliation is what a pass of the reconciler has found.
type Reconciliation struct {
	At   time.Time       `json:"at"`
	SKUs []ReconciledSKU `json:"skus"`
}

// ReconciledSKU is the part of one sku.
type ReconciledSKU struct {
	SKU      string `json:"sku"`
	Skipped  string `json:"skipped,omitempty"`
	Compared int    `json:"compared"`
	Replayed int    `json:"replayed"`
	// Ahead are reservations of which the stock knows more than SQL, Missing those that it has lost: at most 16 of each.
	Ahead   []string `json:"ahead,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Drift says how the counters differ, "" if they do not.
	Drift string `json:"drift,omitempty"`
}

// Audit says whether a sku keeps what the sale promises.
type Audit struct {
	SKU string    `json:"sku"`
	At  time.Time `json:"at"`
	OK  bool      `json:"ok"`
	// UnderWay says what was under way, "" if nothing was; Still that the stock did not change meanwhile. Equality of the stores is judged only then.
	UnderWay string   `json:"under_way,omitempty"`
	Still    bool     `json:"still"`
	Broken   []Broken `json:"broken"`
	// Reservations counts those of SQL by state.
	Reservations map[string]int64 `json:"reservations"`
	OrdersPaid   int64            `json:"orders_paid"`
	OrdersOpen   int64            `json:"orders_open"`
	// CapturedLoose counts captured payments that are neither applied nor to be refunded yet.
	CapturedLoose int64 `json:"captured_loose"`
}

// Broken is an invariant that does not hold.
type Broken struct {
	Invariant string `json:"invariant"`
	Text      string `json:"text"`
}

// Match is what a match of provider, payments and orders has found.
type Match struct {
	OperationID string       `json:"operation_id"`
	OK          bool         `json:"ok"`
	Since       time.Time    `json:"since"`
	Provider    int          `json:"provider"`
	Payments    int          `json:"payments"`
	Paid        int          `json:"paid"`
	Repaired    int          `json:"repaired"`
	Differences []Difference `json:"differences"`
	Omitted     int          `json:"omitted"`
}

// Difference is one thing on which the sides do not agree.
type Difference struct {
	Kind      string `json:"kind"`
	IntentKey string `json:"intent_key,omitempty"`
	RID       string `json:"rid,omitempty"`
	OrderID   string `json:"order_id,omitempty"`
	Detail    string `json:"detail"`
	Again     bool   `json:"again"`
}

// Plans are the dry run of a rebuild.
type Plans struct {
	Plans []Plan `json:"plans"`
	// Next is the cursor of the next page, left out after the last.
	Next string `json:"next,omitempty"`
}

// Plan says what a rebuild of a sku would do. Why says what tells of a loss, "" if nothing does.
type Plan struct {
	SKU   string `json:"sku"`
	Why   string `json:"why,omitempty"`
	From  int64  `json:"from_epoch"`
	To    int64  `json:"to_epoch"`
	Stock Stock  `json:"stock"`
	SQL   SQL    `json:"sql"`
	// Jobs would be decided first, Dead letters dropped; the others would be loaded, and Unsent rows followed after it.
	Jobs    int64 `json:"jobs"`
	Dead    int64 `json:"dead"`
	Entries int   `json:"entries"`
	Buyers  int   `json:"buyers"`
	TopUps  int   `json:"top_ups"`
}
