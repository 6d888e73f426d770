package flashsale

import (
	"context"
	"time"
)

// Stock takes units in memory, ahead of SQL, and holds the queue of what SQL has to decide. Every call is one atomic step for one
// key. It is called with the epoch that the caller knows; if the Stock's pointer says another one, or none, nothing runs and the
// error's code is CodeStaleEpoch; if the keys of the epoch are not loaded yet, CodeRebuilding. An error without an answer
// (CodeUnavailable) may have run: every call can be repeated, and runs once. Implementations are safe for concurrent use.
type Stock interface {
	// Reserve is T0. A refusal is an Answer; it leaves no trace.
	Reserve(ctx context.Context, key Key, epoch int64, ask *Ask) (Answer, error)
	// Apply follows SQL, and acknowledges jobs, in one step. Results come in the order of the effects. An entry that has ended does
	// not change any more. Acknowledging what is not in the queue is fine.
	Apply(ctx context.Context, key Key, epoch int64, effects []Effect, acks []string) ([]Applied, error)
	// Adjust is the Stock's step of a top-up or withdrawal: once for each id.
	Adjust(ctx context.Context, key Key, epoch int64, id string, delta int64) (AdjustResult, error)
	// Configure puts settings in force if their version is higher than that of what is there.
	Configure(ctx context.Context, key Key, epoch int64, s *Settings) error

	// Find returns what the Stock knows of reservations; of one it does not know, an Entry in state None.
	Find(ctx context.Context, key Key, epoch int64, rids []string) ([]Entry, error)
	// Holds returns the rids that a user holds or has bought, pending ones too: the latest 16 at most, the oldest of them first.
	Holds(ctx context.Context, key Key, epoch int64, user string) ([]string, error)
	// Due returns pending reservations past their deadline (it is not after the Stock's clock), oldest first, at most limit.
	Due(ctx context.Context, key Key, epoch int64, limit int) ([]Entry, error)
	// Entries walks through all reservations: about limit at a time, beginning with cursor "", until the next cursor is "". What
	// does not change meanwhile is seen at least once.
	Entries(ctx context.Context, key Key, epoch int64, cursor string, limit int) (page []Entry, next string, err error)
	// Forget removes those of the reservations that ended more than Retention ago by the Stock's clock.
	Forget(ctx context.Context, key Key, epoch int64, rids []string) (int, error)
	// Lull tells who is known, and for how long nobody else is given more than a number of units: see [Lull]. It changes nothing
	// but that; what T0 takes for an Origin is taken in a lull too.
	Lull(ctx context.Context, key Key, epoch int64, ask LullAsk) (Lull, error)
	// View returns the figures. It needs no epoch.
	View(ctx context.Context, key Key) (StockView, error)
	Close() error
}

// Ask is a call of T0.
type Ask struct {
	RID  string
	User string
	// Quantity is 1 to MaxTotal, else the error's code is CodeInvalidQuantity.
	Quantity int64
	// Body is the hash of what the caller asks for ([BodyHash]), at most 32 bytes: a known rid with another one is a conflict, also if
	// the rid came from SQL and the hash must be made of its entry.
	Body string
	// OnlyKnown asks for what is known alone: the token has expired. An unknown rid is refused with CodeTokenExpired.
	OnlyKnown bool
	// Origin as in Reservation: T0 of T8, which has no token.
	Origin string
}

// Answer is that of T0.
type Answer struct {
	// Accepted tells that this call has taken the units, Known that the rid was there already (Entry tells as what). If neither,
	// Code is why: CodeConflict, CodeTokenExpired, CodeNotOpen, CodePurchaseLimit, CodeSoldOut, CodeBusy, in the order in which they
	// are looked at: Known and Conflict and TokenExpired before NotOpen, before Busy, before PurchaseLimit, before SoldOut. Busy is a
	// queue that is at its bound ([BacklogFor]) or has to shrink for a lower rate, or whose oldest job, pulled or not, is older than
	// half of PendingFor: SQL does not keep up. Dead letters do not count.
	Accepted, Known bool
	Code            Code
	// Detail says more of CodeNotOpen: "not_yet", "ended", or the status.
	Detail string
	// Entry is the reservation, if Accepted or Known.
	Entry Entry
	// Holds are the rids that the user holds or has bought, at CodePurchaseLimit: at most 16.
	Holds []string
	// RetryAfter is a suggestion, at CodeBusy and before the opening.
	RetryAfter time.Duration
	// Available and Seq are those after this call, for whoever caches "sold out".
	Available, Seq int64
}

// Applied is what became of an Effect.
type Applied uint8

// What becomes of an Effect.
const (
	// AppliedMoved: the entry was older and has followed.
	AppliedMoved Applied = iota
	// AppliedOld: the entry has this version or a later one. Nothing changed.
	AppliedOld
	// AppliedStored: the rid was unknown and its reservation has ended without a sale: stored, nothing moved.
	AppliedStored
	// AppliedLost: the rid is unknown and SQL holds units for it: the Stock has lost data. Nothing changed; rebuild.
	AppliedLost
)

// AdjustResult is what became of a top-up (delta above 0) or a withdrawal (below 0).
type AdjustResult struct {
	// Done tells that the units were added or taken away, now or by an earlier call with this id. If not, a withdrawal asked for
	// more than Available, and nothing changed; it stays refused under its id in this epoch, so that whoever finishes the
	// operation and whoever repeats its step have seen the same.
	Done      bool
	Available int64
}

// StockView are the figures of a key in the Stock.
type StockView struct {
	// Epoch is that of the pointer, 0: there is none. Loaded tells that the epoch has its keys.
	Epoch  int64
	Loaded bool
	// Run names the process of the store: another one may have lost data.
	Run string
	// Total = Available + Held + Sold.
	Total, Available, Held, Sold int64
	// Seq grows with every change of the key.
	Seq      int64
	Settings Settings
	// NextRate is a lower rate that waits to take effect, 0: none.
	NextRate int64
	// Now is the Stock's clock.
	Now   time.Time
	Queue QueueView
}

// QueueView are the figures of the queue of a key.
type QueueView struct {
	// Depth counts jobs that are not acknowledged, Pulled those of them that a consumer has.
	Depth, Pulled int64
	// Dead counts dead letters.
	Dead int64
	// Oldest is the age of the oldest job, by the Stock's clock.
	Oldest time.Duration
	// Pending counts reservations in state Pending.
	Pending int64
}

// Queue is the consumer's side of what T0 appends to. The implementation of Stock has it.
type Queue interface {
	// Pull hands out jobs to a consumer, oldest first, at most max and at the rate of the settings, over all consumers together:
	// those that a consumer, the same or another, has had for longer than reclaim come first, and count towards the rate too. It
	// does not wait.
	Pull(ctx context.Context, key Key, epoch int64, consumer string, limit int, reclaim time.Duration) ([]Job, error)
	// Bury moves a job to the dead letters, with a reason. Its reservation stays pending until the sweeper refuses it.
	Bury(ctx context.Context, key Key, epoch int64, job *Job, reason string) error
	// Dead lists dead letters, oldest first, at most limit.
	Dead(ctx context.Context, key Key, epoch int64, limit int) ([]DeadJob, error)
	// Revive appends dead letters, by their IDs in Dead, to the queue again, as of now: their At is new, their Deadline is not. Those
	// that are past their deadline, or not pending any more, are dropped. It returns how many were put back.
	Revive(ctx context.Context, key Key, epoch int64, ids []string) (int, error)
}

// DeadJob is a job that could not be decided.
type DeadJob struct {
	Job
	Reason string
	DiedAt time.Time
}

// Loader rebuilds the keys of a key after a loss. The implementation of Stock has it.
type Loader interface {
	// Point makes an epoch the current one, if it is higher than the pointer and than any epoch with keys, else CodeStaleEpoch;
	// pointing to the current one again is fine while it is not loaded. It returns the older epochs that have keys.
	Point(ctx context.Context, key Key, epoch int64) (older []int64, err error)
	// Drain reads the queue of an older epoch, in its order, from after the job with this id ("": from the beginning), whether
	// pulled or not; dead letters are not in it.
	Drain(ctx context.Context, key Key, epoch, older int64, after string, limit int) ([]Job, error)
	// Load puts a part of a snapshot into the keys of the current epoch, as long as it is not loaded. The part with Last set
	// makes the epoch live, with no status: until Configure Reserve's error is CodeRebuilding, not a refusal that would be final. Once
	// it is loaded a part changes nothing and is fine: it is a repeated one.
	Load(ctx context.Context, key Key, epoch int64, part *LoadPart) error
	// Drop removes what there is of an older epoch.
	Drop(ctx context.Context, key Key, epoch, older int64) error
	// Remove removes all that there is of a key, its pointer and older epochs too, if this epoch is the current one or there is none:
	// it is then as if there had never been anything. Removing nothing is fine.
	Remove(ctx context.Context, key Key, epoch int64) error
}

// LoadPart is a part of a snapshot.
type LoadPart struct {
	Entries []Entry
	Buyers  []Buyer
	// Adjusted are ids of top-ups that the counters have in them already.
	Adjusted []string
	// Last tells that this is the last part; the counters come with it.
	Last                  bool
	Total, Reserved, Sold int64
	Settings              Settings
}

// Buyer is what a user holds and has bought of a sku, together.
type Buyer struct {
	User     string
	Quantity int64
	RIDs     []string // the latest 16 at most, the oldest of them first: it is the first that gives way to another
}
