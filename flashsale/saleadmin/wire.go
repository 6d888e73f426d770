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

// DropOrder asks that a sale which was never opened be removed.
type DropOrder struct {
	Reason string `json:"reason"`
}

// Dropped is the answer to a DropOrder.
type Dropped struct {
	OperationID string `json:"operation_id"`
	Sale        string `json:"sale"`
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
	// Next is the cursor of the next page, of older ones; left out after the last.
	Next string `json:"next,omitempty"`
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
	// SKUCount is how many skus there are; SKUs is a page of them, and Next the cursor of the next one, left out after the last.
	SKUCount int    `json:"sku_count"`
	SKUs     []SKU  `json:"skus"`
	Next     string `json:"next,omitempty"`
	// Instance has answered, and Alarms are those that it knows of.
	Instance string  `json:"instance"`
	Alarms   []Alarm `json:"alarms"`
	// Operations are the latest of each sku of the page, newest first.
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
