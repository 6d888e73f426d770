package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// lookups bounds the look-ups of shoppers that a store has at a time, lookupBatch how many reservations come with one, and lookupKeys of how
	// many skus the Stock is asked together.
	lookups, lookupBatch, lookupKeys = 4, 256, 8
	// maxOrders bounds the list of a user's orders.
	maxOrders = 100
	// firstPoll and lastPoll bound the time between two looks of Await at what another instance decides.
	firstPoll, lastPoll = 50 * time.Millisecond, time.Second
)

// Result is where a reservation stands.
type Result struct {
	RID      string
	Key      flashsale.Key
	Quantity int64
	// State is Pending while SQL has not decided: nobody may be told "yours" before it is Reserved.
	State   flashsale.State
	Version int64
	// Reason says why it was rejected, cancelled or expired.
	Reason string
	// Until is, of a pending one, the time by which it is decided; of a reserved or confirming one, the time until which it can be paid,
	// zero if SQL could not be asked.
	Until    time.Time
	OrderID  string
	Amount   int64
	Currency string
	// CreatedAt is zero of a pending one.
	CreatedAt, ChangedAt time.Time
}

// Decided reports whether SQL has decided.
func (r *Result) Decided() bool { return r.State > flashsale.Pending }

func resultOfEntry(key flashsale.Key, entry *flashsale.Entry) Result {
	r := Result{RID: entry.RID, Key: key, Quantity: entry.Quantity, State: entry.State, Version: entry.Version, ChangedAt: entry.At}
	if entry.State == flashsale.Pending {
		r.Until = entry.Deadline
	}
	return r
}

// resultOfRow is what SQL says, which whoever asks this instance is told from now on, or what came after it.
func (e *Engine) resultOfRow(row *flashsale.Reservation) Result {
	e.told.note(row.RID)
	return Result{
		RID: row.RID, Key: row.Key, Quantity: row.Quantity, State: row.State, Version: row.Version, Reason: row.Reason, Until: row.Until,
		OrderID: row.OrderID, Amount: row.Amount, Currency: row.Currency, CreatedAt: row.CreatedAt, ChangedAt: row.ChangedAt,
	}
}

// reservationID names a reservation of a sku.
type reservationID struct {
	key flashsale.Key
	rid string
}

type entryAnswer struct {
	entry flashsale.Entry
	err   error
}

// readEntries is how look-ups of shoppers reach the Stock, several at a time. A sku that fails does not fail the others, nor one whose node does
// not answer keep them waiting in a row.
func (e *Engine) readEntries(ctx context.Context, ids []reservationID) (map[reservationID]entryAnswer, error) {
	rids := map[flashsale.Key][]string{}
	for _, id := range ids {
		rids[id.key] = append(rids[id.key], id.rid)
	}
	keys := slices.Collect(maps.Keys(rids))
	answers := make(map[reservationID]entryAnswer, len(ids))
	var mu sync.Mutex
	_ = e.allOf(len(keys), lookupKeys, "looking up reservations", func(i int) error {
		entries, err := e.find(ctx, keys[i], rids[keys[i]])
		mu.Lock()
		defer mu.Unlock()
		for j, rid := range rids[keys[i]] {
			answer := entryAnswer{err: err}
			if err == nil && j < len(entries) {
				answer.entry = entries[j]
			}
			answers[reservationID{keys[i], rid}] = answer
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	return answers, nil
}

// find asks the Stock in whatever epoch there is. A retired one knows nobody, and SQL everybody.
func (e *Engine) find(ctx context.Context, key flashsale.Key, rids []string) (entries []flashsale.Entry, err error) {
	err = e.inEpoch(ctx, key, func(epoch int64) (err error) {
		entries, err = e.stock.Find(ctx, key, epoch, rids)
		return err
	})
	if isRetired(err) {
		return make([]flashsale.Entry, len(rids)), nil
	}
	return entries, err
}

// Result tells where a user's reservation stands. CodeNotFound if there is none of this user: "not reserved, try again". While a store does
// not answer that would have to be asked, CodeRebuilding or CodeUnavailable. Once an instance has told that a reservation is decided it does
// not say again that it is pending; another instance may for as long as the Stock does not follow SQL, a moment as a rule.
func (e *Engine) Result(ctx context.Context, key flashsale.Key, rid, user string) (Result, error) {
	if err := checkKey(key); err != nil {
		return Result{}, err
	}
	if flashsale.CheckID("", rid) != nil {
		return Result{}, notReserved()
	}
	answer, found, err := e.entries.get(ctx, reservationID{key, rid})
	switch {
	case err == nil && found:
		err = answer.err
	case err == nil:
		err = errorf(flashsale.CodeInternal, "%s: the stock does not say where a reservation stands", key)
	}
	entry := &answer.entry
	switch {
	case err != nil && !retriable(err):
		return Result{}, err
	case err == nil && entry.State == flashsale.Pending && entry.User == user:
		return e.resultOfPending(ctx, key, entry)
	}
	// What is another's costs the same calls as what is not there, so that time does not tell them apart.
	return e.resultOfSQL(ctx, reservationID{key, rid}, user, err)
}

// resultOfPending tells of a reservation that is pending in the Stock, unless this instance has said already that it is decided. Then SQL
// says how; the error is SQL's.
func (e *Engine) resultOfPending(ctx context.Context, key flashsale.Key, entry *flashsale.Entry) (Result, error) {
	if !e.told.has(entry.RID) {
		return resultOfEntry(key, entry), nil
	}
	row, found, err := e.rows.get(ctx, entry.RID)
	switch {
	case err != nil:
		return Result{}, err
	case !found: // the mark is another's
		return resultOfEntry(key, entry), nil
	}
	return e.resultOfRow(row), nil
}

// resultOfSQL is what SQL says. StockErr tells that the Stock, which might know a pending one, could not be asked.
func (e *Engine) resultOfSQL(ctx context.Context, id reservationID, user string, stockErr error) (Result, error) {
	row, found, err := e.rows.get(ctx, id.rid)
	switch {
	case err != nil:
		return Result{}, err
	case found && row.User == user && row.Key == id.key:
		return e.resultOfRow(row), nil
	case stockErr != nil:
		return Result{}, stockErr
	}
	return Result{}, notReserved()
}

func notReserved() error { return errorf(flashsale.CodeNotFound, "not reserved, try again") }

// Await is Result as soon as it is decided, or not to be found. It looks again in growing intervals, and is told at once of what this
// process decides. When ctx ends, it returns what was known last, and CodeUnavailable; CodeBusy if too many wait.
func (e *Engine) Await(ctx context.Context, key flashsale.Key, rid, user string) (Result, error) {
	id := reservationID{key, rid}
	told, leave, ok := e.waiters.join(id)
	if !ok {
		return Result{}, errorf(flashsale.CodeBusy, "too many calls wait for their results; ask for this one later")
	}
	defer leave()
	last, err := e.Result(ctx, key, rid, user)
	for wait := firstPoll; !last.Decided() && (err == nil || retriable(err)); wait = min(wait*3/2, lastPoll) {
		next := time.NewTimer(e.random.jittered(wait))
		var result Result
		select {
		case <-told:
			result, err = e.resultOfSQL(ctx, id, user, nil)
		case <-next.C:
			result, err = e.Result(ctx, key, rid, user)
		case <-ctx.Done():
			err = interrupted(ctx)
		}
		next.Stop()
		if err == nil {
			last = result
		}
		if ctx.Err() != nil && !last.Decided() {
			return last, interrupted(ctx)
		}
	}
	return last, err
}

// Orders returns what a user has reserved of a sale, as far as SQL has decided, newest first, at most 100.
func (e *Engine) Orders(ctx context.Context, sale, user string) ([]Result, error) {
	if err := flashsale.CheckID("the id of the sale", sale); err != nil {
		return nil, err
	}
	if err := flashsale.CheckUser(user); err != nil {
		return nil, err
	}
	rows, err := e.orders.OfUser(ctx, sale, user, maxOrders)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		_, err := e.orders.Sale(ctx, sale)
		return nil, err
	}
	list := make([]Result, len(rows))
	for i := range rows {
		list[i] = e.resultOfRow(&rows[i])
	}
	return list, nil
}
