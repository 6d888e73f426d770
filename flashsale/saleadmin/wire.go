package saleadmin

import "time"

// The documents of the API. Times are RFC 3339 in UTC to the millisecond, amounts in the smallest unit of the sale's currency, durations
// either text such as "15m0s", or milliseconds where the name ends in _ms.

// SaleSpec is what a sale is created with.
type SaleSpec struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	// Currency is an ISO 4217 code.
	Currency string `json:"currency"`
	// Zone is the IANA name of the zone of the times, default UTC.
	Zone string `json:"zone,omitempty"`
	// OpensAt and ClosesAt are RFC 3339, or "2026-11-11T20:00:00", the time that clocks in the zone show.
	OpensAt  string `json:"opens_at"`
	ClosesAt string `json:"closes_at"`
	// Hold, PayTime and Grace are such as "15m". Defaults 15m, 5m, 10s.
	Hold    string `json:"hold,omitempty"`
	PayTime string `json:"pay_time,omitempty"`
	Grace   string `json:"grace,omitempty"`
	// Rate is how many reservations of each sku SQL is given in a second at most. Default 1000.
	Rate int64     `json:"rate,omitempty"`
	SKUs []SKUSpec `json:"skus"`
}

// SKUSpec is a sku of a SaleSpec.
type SKUSpec struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	Total int64  `json:"total"`
	// PurchaseLimit is how many one user may have. Default 1.
	PurchaseLimit int64 `json:"purchase_limit,omitempty"`
	// Price is that of one unit.
	Price int64 `json:"price"`
}

// CreateOrder asks for a sale.
type CreateOrder struct {
	Reason string   `json:"reason"`
	Sale   SaleSpec `json:"sale"`
}

// StatusOrder asks for another status, of one sku or ("") of all of the sale.
type StatusOrder struct {
	Reason string `json:"reason"`
	SKU    string `json:"sku,omitempty"`
}

// OpenOrder asks to open. Force opens what the check before it refuses; it needs the role admin.
type OpenOrder struct {
	Reason string `json:"reason"`
	SKU    string `json:"sku,omitempty"`
	Force  bool   `json:"force,omitempty"`
}

// RateOrder asks for another rate, of one sku or ("") of each of the sale.
type RateOrder struct {
	Reason string `json:"reason"`
	SKU    string `json:"sku,omitempty"`
	Rate   int64  `json:"rate"`
}

// UnitsOrder asks for more or fewer units of a sku.
type UnitsOrder struct {
	Reason string `json:"reason"`
	Units  int64  `json:"units"`
}

// ReviveOrder asks for dead letters to be decided once more, at most 1000, by their ids.
type ReviveOrder struct {
	Reason string   `json:"reason"`
	IDs    []string `json:"ids"`
}

// MatchOrder asks for a match of all that has changed since a time, RFC 3339. Default: 24 hours ago.
type MatchOrder struct {
	Reason string `json:"reason"`
	Since  string `json:"since,omitempty"`
}

// Change is the answer to a change: what became of it, for each sku.
type Change struct {
	// OperationID is that of the Idempotency-Key, or the one it was given.
	OperationID string      `json:"operation_id"`
	Operations  []Operation `json:"operations"`
	// Findings are those of the check before an opening.
	Findings []Finding `json:"findings,omitempty"`
}

// Operation is a row that says what an operator wants. Its state is begun or committed (it is being finished), done, or refused.
type Operation struct {
	ID        string    `json:"id"`
	Sale      string    `json:"sale"`
	SKU       string    `json:"sku"`
	Kind      string    `json:"kind"`
	Units     int64     `json:"units,omitempty"`
	Status    string    `json:"status,omitempty"`
	Rate      int64     `json:"rate,omitempty"`
	Reason    string    `json:"reason"`
	By        string    `json:"by"`
	State     string    `json:"state"`
	Detail    string    `json:"detail,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// Finding is something that is not as it should be before a sale opens. Severity is stops or warns.
type Finding struct {
	Severity string `json:"severity"`
	Check    string `json:"check"`
	SKU      string `json:"sku,omitempty"`
	Text     string `json:"text"`
}

// List are the sales, newest first.
type List struct {
	Sales []Summary `json:"sales"`
	// More tells that there are older ones.
	More bool `json:"more"`
}

// Summary is a sale in a list. Its counters are those of SQL, over all skus.
type Summary struct {
	ID       string    `json:"id"`
	Title    string    `json:"title,omitempty"`
	Zone     string    `json:"zone"`
	OpensAt  time.Time `json:"opens_at"`
	ClosesAt time.Time `json:"closes_at"`
	SKUs     int       `json:"skus"`
	// Statuses counts skus by status.
	Statuses map[string]int `json:"statuses"`
	Total    int64          `json:"total"`
	Reserved int64          `json:"reserved"`
	Sold     int64          `json:"sold"`
}

// Created is the answer to a sale that was created.
type Created struct {
	OperationID string `json:"operation_id"`
	Sale        Sale   `json:"sale"`
}

// Sale is a sale and where it stands.
type Sale struct {
	ID       string    `json:"id"`
	Title    string    `json:"title,omitempty"`
	Currency string    `json:"currency"`
	Zone     string    `json:"zone"`
	OpensAt  time.Time `json:"opens_at"`
	ClosesAt time.Time `json:"closes_at"`
	Hold     string    `json:"hold"`
	PayTime  string    `json:"pay_time"`
	Grace    string    `json:"grace"`
	SKUs     []SKU     `json:"skus"`
	// Instance has answered, and Alarms are those that it knows of.
	Instance string  `json:"instance"`
	Alarms   []Alarm `json:"alarms"`
	// Operations are the latest of each sku, newest first.
	Operations []Operation `json:"operations"`
}

// SKU is a sku and where it stands in both stores.
type SKU struct {
	ID            string `json:"id"`
	Title         string `json:"title,omitempty"`
	Price         int64  `json:"price"`
	PurchaseLimit int64  `json:"purchase_limit"`
	Status        string `json:"status"`
	// Rate is in force in SQL, StockRate in the Stock: a lower one waits until what is in the queue fits it.
	Rate      int64 `json:"rate"`
	StockRate int64 `json:"stock_rate,omitempty"`
	// UnderWay says what is being done, "" if nothing is.
	UnderWay string `json:"under_way,omitempty"`
	SQL      SQL    `json:"sql"`
	// Stock and Queue are missing where the stock does not answer; StockError says why.
	Stock      *Stock `json:"stock,omitempty"`
	Queue      *Queue `json:"queue,omitempty"`
	StockError string `json:"stock_error,omitempty"`
}

// SQL are the counters of the truth. Total = Available + Reserved + Sold.
type SQL struct {
	Total      int64 `json:"total"`
	Available  int64 `json:"available"`
	Reserved   int64 `json:"reserved"`
	Sold       int64 `json:"sold"`
	Epoch      int64 `json:"epoch"`
	Rebuilding bool  `json:"rebuilding"`
	// Unsent counts what the stock has not followed yet.
	Unsent int64 `json:"unsent"`
}

// Stock are the counters of the stock. Total = Available + Held + Sold.
type Stock struct {
	Total     int64  `json:"total"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Sold      int64  `json:"sold"`
	Epoch     int64  `json:"epoch"`
	Loaded    bool   `json:"loaded"`
	Status    string `json:"status"`
}

// Queue are the figures of what waits to be decided.
type Queue struct {
	Depth    int64 `json:"depth"`
	Pulled   int64 `json:"pulled"`
	Pending  int64 `json:"pending"`
	Dead     int64 `json:"dead"`
	OldestMs int64 `json:"oldest_ms"`
}

// Alarm is one that is on. SKU is "sale/sku", "" if it is about all.
type Alarm struct {
	Kind  string    `json:"kind"`
	SKU   string    `json:"sku,omitempty"`
	Value float64   `json:"value"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// Story is all that is known of a shopper in a sale.
type Story struct {
	Sale string `json:"sale"`
	// User, or where that is not UTF-8 UserBase64.
	User       string `json:"user,omitempty"`
	UserBase64 []byte `json:"user_base64,omitempty"`
	// Reservations are the newest first, at most 200; one that was refused by SQL is among them, with the reason.
	Reservations []Reservation `json:"reservations"`
	// Refusals are those that have left no row.
	Refusals Refusals `json:"refusals"`
}

// Reservation is one of a story.
type Reservation struct {
	RID        string     `json:"rid"`
	SKU        string     `json:"sku"`
	Quantity   int64      `json:"quantity"`
	State      string     `json:"state"`
	Reason     string     `json:"reason,omitempty"`
	Version    int64      `json:"version"`
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
	DeadLetters []DeadLetter `json:"dead_letters"`
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

// Report says whether the stores agree.
type Report struct {
	Instance string `json:"instance"`
	// Reconciliation is the last pass of this instance over the sale, missing if it has made none.
	Reconciliation *Reconciliation `json:"reconciliation,omitempty"`
	Audits         []Audit         `json:"audits"`
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
