package flashsale

import (
	"context"
	"time"
)

// Orders is the truth, in SQL. Every method is one transaction, and repeating it is the same as calling it once. Times are those of the
// database's clock. Implementations are safe for concurrent use.
type Orders interface {
	Sales
	Decisions
	PaymentBook
	Outbox
	Leases
	Operations
	Rebuilds
	// Durable tells, with an error, that commits may be lost by a crash of the database.
	Durable(ctx context.Context) error
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	Close() error
}

// Sales are the sales and their skus.
type Sales interface {
	// CreateSale stores a sale with all its skus, as drafts, at epoch 1 and rebuilding (so that they are loaded). The same sale again is
	// fine; another one under its id is CodeExists. Where a sale of this id was dropped, epochs and versions of settings begin after its.
	CreateSale(ctx context.Context, s *Sale) error
	// DropSale removes a sale, with what was done to it, and notes who wanted it and why. CodeInvalidState if a sku of it was ever opened, or
	// anything was ever reserved. The same drop again is fine, also if there is another sale of this id meanwhile; CodeConflict if the id
	// of the operation says something else.
	DropSale(ctx context.Context, d *Drop) error
	// Dropped lists skus of sales that were dropped at least so long ago and of which Removed has not been told, in one order and from after
	// this one.
	Dropped(ctx context.Context, age time.Duration, after DroppedSKU, limit int) ([]DroppedSKU, error)
	// Removed notes that the Stock has nothing of a dropped sku any more.
	Removed(ctx context.Context, d *DroppedSKU) error
	Sale(ctx context.Context, id string) (*Sale, error)
	// SaleIDs lists sales, newest first.
	SaleIDs(ctx context.Context, limit int) ([]string, error)
	// SalesAfter pages through sales, newest first, with all their skus: the first page with after "", the next one with the id of the last sale.
	// CodeUnknownSale if there is no such sale.
	SalesAfter(ctx context.Context, after string, limit int) ([]Sale, []SKUState, error)
	SKU(ctx context.Context, key Key) (*SKUState, error)
	// SKUs are all skus of all sales that are not closed and quiet for longer than Retention.
	SKUs(ctx context.Context) ([]SKUState, error)
	// Retirable lists skus that SKUs does not list any more and that are not retired, in the order of their keys and from after this one.
	Retirable(ctx context.Context, after Key, limit int) ([]SKUState, error)
	// Retire notes that the Stock has nothing of a key in this epoch any more. CodeStaleEpoch if the sku has another one meanwhile;
	// CodeInvalidState if SKUs lists it. A rebuild undoes it, since it has a later epoch.
	Retire(ctx context.Context, key Key, epoch int64) error
}

// Drop says that a sale which was never opened is to go: ID makes it happen once, Reason and By say why and who wants it.
type Drop struct{ ID, Sale, Reason, By string }

// DroppedSKU is a sku of a sale that was dropped by this operation, and its last epoch.
type DroppedSKU struct {
	Operation string
	Key       Key
	Epoch     int64
}

// Decisions are the transitions of reservations.
type Decisions interface {
	// Decide is T1 for a batch, in its order; a job whose rid has a row is answered with that. CodeStaleEpoch if the batch's epoch
	// is not the sku's, CodeRebuilding while it is being rebuilt: nothing was decided.
	Decide(ctx context.Context, b *Batch) ([]Decided, error)
	// Tombstone is T2 for reservations past their deadline.
	Tombstone(ctx context.Context, key Key, pending []Entry) ([]Decided, error)
	// Cancel is T5; CodeInvalidState while confirming, or after an end other than Cancelled. User "" is an operator.
	Cancel(ctx context.Context, rid, user, reason string) (Decided, error)
	// Expire is T6; CodeInvalidState if it is not reserved or its time is not over.
	Expire(ctx context.Context, rid string) (Decided, error)
	// Expiring lists what the sweeper has to look at: reserved ones past their time and grace (T6), and confirming ones past
	// their time (T7), oldest first, at most limit of each: a provider that is down must not hold up the reserved ones.
	Expiring(ctx context.Context, limit int) ([]Reservation, error)

	// Reservation returns a row, CodeNotFound if there is none.
	Reservation(ctx context.Context, rid string) (*Reservation, error)
	// Reservations returns the rows that there are of these rids.
	Reservations(ctx context.Context, rids []string) ([]Reservation, error)
	// OfUser returns a user's rows of a sale, newest first.
	OfUser(ctx context.Context, sale, user string, limit int) ([]Reservation, error)
}

// Batch is what one call of Decide decides.
type Batch struct {
	Key   Key
	Epoch int64
	Jobs  []Job
	// Drain is set by the rebuilder of this epoch alone: jobs of older epochs, decided while rebuilding and under any status. Their
	// sequence numbers are not this epoch's and are not stored.
	Drain bool
}

// Outbox are the rows that tell of each version of each reservation, written in the transaction that makes it.
type Outbox interface {
	// Unsent lists rows that a lane has not delivered, in the order of ids and from after this one, of at least this age; of LaneStock
	// only those whose sku is not being rebuilt. An id can be seen later than a higher one: begin again at 0 from time to time.
	Unsent(ctx context.Context, lane Lane, age time.Duration, after int64, limit int) ([]Event, error)
	// UnsentOf lists what LaneStock has not delivered of a key, rebuilt or not, in the order of ids and from after this one: what a
	// rebuild applies after its load.
	UnsentOf(ctx context.Context, key Key, after int64, limit int) ([]Event, error)
	// Sent marks rows as delivered. For LaneStock only those whose sku still has the epoch that they went to, and is not being rebuilt.
	Sent(ctx context.Context, lane Lane, epoch int64, ids []int64) error
	// UnsentCount counts, for a key, what LaneStock has not delivered.
	UnsentCount(ctx context.Context, key Key) (int64, error)
	// PruneOutbox removes, of the next limit rows older than age, those that all lanes have delivered. It goes on behind them at the next
	// call, and begins again at the end, so that rows which wait hide no others and no call looks at more.
	PruneOutbox(ctx context.Context, age time.Duration, limit int) (int64, error)
}

// Lane is one of the two independent deliveries of an outbox row.
type Lane string

// The lanes.
const (
	LaneStock Lane = "stock" // the effect on the Stock
	LaneRelay Lane = "relay" // the event for other services
)

// Event is a row of the outbox.
type Event struct {
	ID int64
	// RID and Version make the id of the message, "rid:version"; RID is its partition key.
	RID      string
	Version  int64
	Key      Key
	User     string
	Quantity int64
	State    State
	Reason   string
	OrderID  string
	Amount   int64
	Currency string
	At       time.Time
}

// Leases make one of several instances do a job.
type Leases interface {
	// Lease takes or renews a lease for ttl. Fence is higher for each new holder. Held is false while another has it.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (fence int64, held bool, err error)
	// Release gives a lease back, if this holder has it.
	Release(ctx context.Context, name, holder string) error
}

// OperationKind is what an operator can do to a sku.
type OperationKind string

// The kinds.
const (
	OpTopUp    OperationKind = "top_up"
	OpWithdraw OperationKind = "withdraw"
	OpStatus   OperationKind = "status"
	OpRate     OperationKind = "rate"
	OpRebuild  OperationKind = "rebuild" // of the Stock from SQL; done once the sku's epoch is higher than the operation's
)

// Operation is a row that says what an operator wants, so that it is finished whoever dies.
type Operation struct {
	ID     string
	Key    Key
	Kind   OperationKind
	Delta  int64  // of OpTopUp and OpWithdraw: units, above 0
	Status Status // of OpStatus
	Rate   int64  // of OpRate
	// Reason is required; By names who.
	Reason, By string
	// State: "begun" (a withdrawal before its step in the Stock and in SQL), "committed" (SQL has it, the Stock may not), "done", "refused".
	State OperationState
	// Epoch is the one that the step in the Stock must be made in.
	Epoch     int64
	Detail    string // why it was refused
	CreatedAt time.Time
	ChangedAt time.Time
}

// OperationState is how far an operation is.
type OperationState string

// The states of an operation.
const (
	OpBegun     OperationState = "begun"
	OpCommitted OperationState = "committed"
	OpDone      OperationState = "done"
	OpRefused   OperationState = "refused"
)

// Operations are what operators do.
type Operations interface {
	// BeginOperation stores an operation and makes its step in SQL, if it comes first: a top-up, a status, a rate and a
	// rebuild are committed, a withdrawal has begun. The same id again returns what there is (CodeConflict if it says something else).
	// CodeInvalidState if the status cannot follow; Closed also needs an outbox without unsent rows of LaneStock.
	BeginOperation(ctx context.Context, op *Operation) (*Operation, error)
	// CommitWithdrawal is the step in SQL of a withdrawal whose step in the Stock was made in this epoch. If the sku's epoch is
	// another one meanwhile, the operation gets that one and is still begun: repeat the step in the Stock.
	CommitWithdrawal(ctx context.Context, id string, epoch int64) (*Operation, error)
	// FinishOperation ends an operation. OpDone: one that is committed, or done already. OpRefused, with a detail: a withdrawal that
	// has begun and was refused in this epoch; CodeStaleEpoch if it has another one meanwhile, in which it may have been done.
	FinishOperation(ctx context.Context, id string, epoch int64, state OperationState, detail string) error
	// OpenOperations pages through those that are begun or committed, oldest first: begin with cursor "", until the next one is "".
	OpenOperations(ctx context.Context, cursor string, limit int) (page []Operation, next string, err error)
	// OpenCount counts those of a key.
	OpenCount(ctx context.Context, key Key) (int64, error)
	// OperationsOf lists those of a key, newest first.
	OperationsOf(ctx context.Context, key Key, limit int) ([]Operation, error)
}

// Rebuilds are the steps in SQL of a rebuild, and what it is checked by.
type Rebuilds interface {
	// BeginRebuild raises the epoch of a sku and marks it as rebuilding, if the lease still has this fence (else CodeFenced).
	// A rebuild that was begun and not ended is begun anew.
	BeginRebuild(ctx context.Context, key Key, lease string, fence int64) (epoch int64, err error)
	// Snapshot calls f with parts of what the epoch's keys have to hold, all of one moment, the last with Last set. CodeStaleEpoch
	// if the epoch is not the sku's. Entries: all that are not terminal, and what has ended within Retention. Adjusted: top-ups that are
	// committed and not done.
	Snapshot(ctx context.Context, key Key, epoch int64, f func(part *LoadPart) error) error
	// EndRebuild ends the rebuild of this epoch, CodeStaleEpoch if there is a later one.
	EndRebuild(ctx context.Context, key Key, epoch int64, storeRun string) error
	// Books returns sums of a sku from rows, buyers and ledger, all of one moment.
	Books(ctx context.Context, key Key) (*Books, error)
}

// Books are sums of SQL, from its several tables, of one moment.
type Books struct {
	State SKUState
	// ByState sums quantities of reservations, Rows counts them.
	ByState map[State]int64
	Rows    map[State]int64
	// Buyers sums what buyers hold and have bought; OverLimit counts those beyond the purchase limit.
	Buyers, OverLimit int64
	// Ledger sums by phase: what was reserved, and of that settled as sold or given back; topped up and withdrawn.
	LedgerReserved, LedgerSold, LedgerReleased, LedgerTopUp, LedgerWithdrawn, LedgerInitial int64
	// DoubleSettled counts rids that are settled more than once (the schema forbids it).
	DoubleSettled int64
	// OrdersPaid and OrdersOpen count orders; Unsent rows of LaneStock.
	OrdersPaid, OrdersOpen, Unsent int64
	// CapturedLoose counts captured payments that are neither applied nor refunded nor to be refunded.
	CapturedLoose int64
}
