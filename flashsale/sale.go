package flashsale

import "time"

// Key names one sku of one sale.
type Key struct{ Sale, SKU string }

// String returns "sale/sku".
func (k Key) String() string { return k.Sale + "/" + k.SKU }

// Sale is what an operator creates. What it says does not change afterwards, but for totals (by top-up and withdrawal), rates
// and statuses.
type Sale struct {
	ID, Title string
	// Currency is an ISO 4217 code.
	Currency string
	// OpensAt and ClosesAt bound the time in which units can be reserved: from OpensAt on, and before ClosesAt. Zone is the IANA
	// name of the zone they are shown in, "" for UTC.
	OpensAt, ClosesAt time.Time
	Zone              string
	// Hold is how long a reserved unit waits for its payment to begin. Default [DefaultHold].
	Hold time.Duration
	// PayTime is how long at least a payment may take once begun: granted once for each reservation. Default [DefaultPayTime].
	PayTime time.Duration
	// Grace is how much longer than it was told a shopper's reservation is kept. Default [DefaultGrace].
	Grace time.Duration
	// Rate is how many reservations of each sku SQL is given in a second at most, 1 to [MaxRate]. Default [DefaultRate].
	Rate int64
	SKUs []SKU
}

// SKU is one thing that a sale sells.
type SKU struct {
	ID, Title string
	// Total is how many units there are, 0 to [MaxTotal].
	Total int64
	// PurchaseLimit is how many of them one user may hold and have bought together, 1 to [MaxPurchaseLimit]. Default 1.
	PurchaseLimit int64
	// Price is that of one unit, in the smallest unit of the currency, 0 to [MaxPrice].
	Price int64
}

// Defaults of a Sale.
const (
	DefaultHold    = 15 * time.Minute
	DefaultPayTime = 5 * time.Minute
	DefaultGrace   = 10 * time.Second
	DefaultRate    = 1000
)

// Bounds.
const (
	MaxTotal         = 1_000_000_000
	MaxPurchaseLimit = 1_000_000
	MaxPrice         = 1_000_000_000_000
	MaxRate          = 1_000_000
	MaxSKUs          = 200
	MaxID            = 64  // bytes of the id of a sale, a sku, a reservation or an operation: letters, digits and . _ -
	MaxUser          = 255 // bytes of a user, of any kind
	MaxReason        = 500 // bytes of a reason
)

// The times of the design.
const (
	// PendingFor is how long a reservation may be pending, by the clock of the Stock; then the sweeper refuses it.
	PendingFor = 90 * time.Second
	// EventsFor is how long an event of the provider is remembered, so that it is taken once. Providers sign anew what they send
	// again, for some days.
	EventsFor = 30 * 24 * time.Hour
	// BacklogFor is how long the queue of a sku may be, in time at its rate. Beyond that a reserve call is refused as busy.
	BacklogFor = 45 * time.Second
	// Retention is how long what has ended stays known to the Stock, so that a repeated call is answered again as it was.
	// Tokens live much shorter.
	Retention = 24 * time.Hour
)

// Status is where a sku of a sale stands.
type Status string

// The statuses. T1 goes on while a sku is paused or draining; only T0 needs it to be open.
const (
	Draft    Status = "draft"
	Open     Status = "open"
	Paused   Status = "paused"
	Draining Status = "draining"
	Closed   Status = "closed"
)

// statusMoves says which status may follow which.
var statusMoves = map[Status][]Status{
	Draft:    {Open},
	Open:     {Paused, Draining},
	Paused:   {Open, Draining},
	Draining: {Closed},
	Closed:   nil,
}

// CanBecome reports whether a status may follow another. Closed also needs that the sku is quiescent.
func (s Status) CanBecome(next Status) bool {
	for _, to := range statusMoves[s] {
		if to == next {
			return true
		}
	}
	return false
}

// Decides reports whether T1 may reserve under this status.
func (s Status) Decides() bool { return s == Open || s == Paused || s == Draining }

// Settings are what the Stock must know of a sku beside its counters. The one with the higher version holds.
type Settings struct {
	// Version grows with every change, in SQL.
	Version           int64
	Status            Status
	OpensAt, ClosesAt time.Time
	PurchaseLimit     int64
	// Rate bounds the queue, and how fast it is pulled: jobs a second. A lower one takes effect once what waits fits it
	// (BacklogFor); until then nothing new is admitted.
	Rate int64
}

// SKUState is a sku as SQL has it.
type SKUState struct {
	Key   Key
	Title string
	// Total ≥ Reserved + Sold. Reserved counts what is reserved and confirming.
	Total, Reserved, Sold int64
	// Epoch names the generation of the Stock's keys; Rebuilding tells that they are not there yet.
	Epoch      int64
	Rebuilding bool
	// Retired tells that the keys of this epoch were removed for good: the sku is closed, and has been quiet for longer than Retention.
	Retired bool
	// StoreRun is the run of the Stock (see StockView) that the keys of this epoch were loaded into.
	StoreRun string
	// Seq is the highest sequence number of the Stock that was stored with a batch of this epoch.
	Seq      int64
	Settings Settings
	Price    int64
	Currency string
	Hold, PayTime,
	Grace time.Duration
}

// Available is what SQL has left.
func (s *SKUState) Available() int64 { return s.Total - s.Reserved - s.Sold }
