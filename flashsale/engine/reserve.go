package engine

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// repeatAfter is how long a T0 whose answer was lost waits before it is asked again, once.
	repeatAfter = 10 * time.Millisecond
	// retryAfter is what callers are told who meet a fault.
	retryAfter = time.Second
)

// ReserveRequest spends an order token.
type ReserveRequest struct {
	Token string
	Key   flashsale.Key
	// User and Device as in the TokenRequest.
	User, Device string
	// Quantity is 1 to the sku's purchase limit.
	Quantity int64
}

// ReserveAnswer is what came of it. It is meaningful beside an error too: RetryAfter, Detail and Holds say more of a refusal.
type ReserveAnswer struct {
	// Result is where the reservation stands: a new one is pending, and the Result of its RID tells when it is decided.
	Result
	// Known tells that this token had been spent already: the answer is that of before.
	Known bool
	// Detail says more of CodeNotOpen: "not_yet", "ended", or the status.
	Detail string
	// RetryAfter is when to ask again, 0: never.
	RetryAfter time.Duration
	// Holds are, at CodePurchaseLimit, the reservations that fill it.
	Holds []Result
}

// Reserve is T0: it takes units for a shopper, to be decided by SQL. The same call again has the same answer, whatever became of the
// first one. Refusals and faults are errors, by code:
//
//   - CodeInvalidArgument, CodeInvalidToken, CodeUnknownSale, CodeUnknownSKU, CodeInvalidQuantity, CodeTokenExpired, CodeConflict (this
//     token was spent on another quantity): asking again does not help;
//   - CodeNotOpen, CodePurchaseLimit, CodeSoldOut: no unit now, and the token is not spent; units may come back;
//   - CodeBusy, CodeRebuilding, CodeUnavailable: ask again with the same token after RetryAfter. After CodeUnavailable the units may
//     have been taken.
func (e *Engine) Reserve(ctx context.Context, r ReserveRequest) (ReserveAnswer, error) {
	began := e.cfg.Now()
	answer, err := e.reserve(ctx, &r)
	e.noteRefusal(&r, &answer, err)
	outcome := "accepted"
	switch {
	case err != nil:
		outcome = string(flashsale.CodeOf(err))
	case answer.Known:
		outcome = "known"
	}
	e.observer.Reserved(e.nameOf(r.Key), outcome, e.cfg.Now().Sub(began))
	return answer, err
}

// nameOf names a sku for observers: "" if it is none that is known, so that what clients write fills no metric.
func (e *Engine) nameOf(key flashsale.Key) string {
	if _, ok := e.skus.look(key); !ok {
		return ""
	}
	return key.String()
}

func (e *Engine) reserve(ctx context.Context, r *ReserveRequest) (ReserveAnswer, error) {
	if err := checkShopper(r.Key, r.User, r.Device); err != nil {
		return ReserveAnswer{}, err
	}
	token, err := e.cfg.Keys.Verify(r.Token, flashsale.TokenScope{Key: r.Key, User: r.User, Device: r.Device})
	if err != nil {
		return ReserveAnswer{}, err
	}
	s, err := e.skus.get(ctx, r.Key)
	if err != nil {
		return faulty(err), err
	}
	if limit := s.Settings.PurchaseLimit; r.Quantity < 1 || r.Quantity > limit {
		return ReserveAnswer{}, errorf(flashsale.CodeInvalidQuantity, "%s: a quantity of %d; give 1 to %d", r.Key, r.Quantity, limit)
	}
	ask := flashsale.Ask{RID: token.RID, User: r.User, Quantity: r.Quantity, OnlyKnown: !e.cfg.Now().Before(token.ExpiresAt)}
	if status := e.shut(ctx, s); status != "" {
		return e.reserveShut(ctx, r.Key, &ask, status)
	}
	if m := e.soldOut.get(r.Key); m != nil {
		v, err := e.recall(ctx, m, s.Epoch, &ask)
		if err != nil || v != askStock {
			return e.recalled(ctx, m, &ask, v, err)
		}
	}
	return e.reserveIn(ctx, r.Key, &ask)
}

// shut is the status of a sku that SQL says is not open, "" if it is open or SQL does not answer now. The Stock says so too, but for one
// that has lost it in a failover: until the watcher sees that, a sale that was paused or is over would go on there.
func (e *Engine) shut(ctx context.Context, s *flashsale.SKUState) flashsale.Status {
	if s.Settings.Status == flashsale.Open {
		return ""
	}
	s, err := e.skus.recent(ctx, s.Key)
	if err != nil || s.Settings.Status == flashsale.Open {
		return ""
	}
	return s.Settings.Status
}

// reserveShut answers a call for what is not open: what is known is answered as it was.
func (e *Engine) reserveShut(ctx context.Context, key flashsale.Key, ask *flashsale.Ask, status flashsale.Status) (ReserveAnswer, error) {
	if ask.OnlyKnown {
		return e.reserveIn(ctx, key, ask)
	}
	ask.OnlyKnown = true
	ask.Body = flashsale.BodyHash(key, ask.User, ask.Quantity)
	a, err := e.take(ctx, key, ask)
	switch {
	case err != nil:
		return faulty(err), err
	case a.Code == flashsale.CodeTokenExpired:
		return ReserveAnswer{Detail: string(status)}, notOpen(key, string(status))
	}
	return e.answerOf(ctx, key, ask, &a)
}

// reserveIn asks the Stock.
func (e *Engine) reserveIn(ctx context.Context, key flashsale.Key, ask *flashsale.Ask) (ReserveAnswer, error) {
	ask.Body = flashsale.BodyHash(key, ask.User, ask.Quantity)
	a, err := e.take(ctx, key, ask)
	if err != nil {
		return faulty(err), err
	}
	if a.Code == flashsale.CodeSoldOut {
		e.noteSoldOut(key)
	}
	return e.answerOf(ctx, key, ask, &a)
}

// faulty is the answer beside an error that is no refusal.
func faulty(err error) ReserveAnswer {
	if retriable(err) {
		return ReserveAnswer{RetryAfter: jittered(retryAfter)}
	}
	return ReserveAnswer{}
}

// retriable reports whether the same call may succeed later.
func retriable(err error) bool {
	switch flashsale.CodeOf(err) {
	case flashsale.CodeUnavailable, flashsale.CodeRebuilding, flashsale.CodeStaleEpoch, flashsale.CodeBusy:
		return true
	}
	return false
}

// take is a T0 in whatever epoch there is, asked once more if its answer was lost: the Stock knows the rid then. Who decides jobs
// in this process is woken.
func (e *Engine) take(ctx context.Context, key flashsale.Key, ask *flashsale.Ask) (a flashsale.Answer, err error) {
	once := func() error {
		err := e.inEpoch(ctx, key, func(epoch int64) (err error) {
			a, err = e.stock.Reserve(ctx, key, epoch, ask)
			return err
		})
		if isRetired(err) {
			a, err = answerOfRetired(ask), nil
		}
		return err
	}
	lost := false
	if err = once(); flashsale.CodeOf(err) == flashsale.CodeUnavailable && pause(ctx, e.random.jittered(repeatAfter)) {
		lost, err = true, once()
	}
	if err == nil && (a.Accepted || lost && a.Known && a.Entry.State == flashsale.Pending) {
		e.board.wake(key)
	}
	return a, err
}

// answerOf makes an answer of the Stock's.
func (e *Engine) answerOf(ctx context.Context, key flashsale.Key, ask *flashsale.Ask, a *flashsale.Answer) (ReserveAnswer, error) {
	switch {
	case a.Accepted:
		return ReserveAnswer{Result: resultOfEntry(key, &a.Entry)}, nil
	case a.Known:
		result, err := e.detailed(ctx, key, &a.Entry)
		if err != nil {
			return faulty(err), err
		}
		return ReserveAnswer{Known: true, Result: result}, nil
	}
	switch a.Code {
	case flashsale.CodeTokenExpired:
		return e.expired(ctx, key, ask)
	case flashsale.CodePurchaseLimit:
		return e.atLimit(ctx, key, a.Holds), errorf(a.Code, "%s: with %d more this user would hold and have bought more than one may", key, ask.Quantity)
	case flashsale.CodeNotOpen:
		return ReserveAnswer{Detail: a.Detail, RetryAfter: a.RetryAfter}, notOpen(key, a.Detail)
	case flashsale.CodeBusy:
		return ReserveAnswer{RetryAfter: jittered(max(a.RetryAfter, retryAfter))}, errorf(a.Code, "%s: too many are waiting; ask again", key)
	case flashsale.CodeSoldOut:
		return ReserveAnswer{}, errorf(a.Code, "%s: there is nothing left now; units that are not paid come back", key)
	case flashsale.CodeConflict:
		return ReserveAnswer{}, errorf(a.Code, "%s: this order token was spent on another quantity", key)
	}
	return ReserveAnswer{}, errorf(flashsale.CodeInternal, "%s: the stock refuses with %q, which means nothing here", key, a.Code)
}

// detailed is where a reservation of the Stock stands, with what SQL alone knows of it; without, if SQL does not answer and the Stock says that
// it is decided.
func (e *Engine) detailed(ctx context.Context, key flashsale.Key, entry *flashsale.Entry) (Result, error) {
	if entry.State == flashsale.Pending {
		return e.resultOfPending(ctx, key, entry)
	}
	if row, found, err := e.rows.get(ctx, entry.RID); err == nil && found {
		return e.resultOfRow(row), nil
	}
	return resultOfEntry(key, entry), nil
}

// expired answers a call with an expired token of which the Stock knows nothing (any more): SQL may.
func (e *Engine) expired(ctx context.Context, key flashsale.Key, ask *flashsale.Ask) (ReserveAnswer, error) {
	row, found, err := e.rows.get(ctx, ask.RID)
	switch {
	case err != nil:
		return faulty(err), err
	case !found:
		return ReserveAnswer{}, errorf(flashsale.CodeTokenExpired, "the order token has expired, and nothing was reserved with it; get another one")
	case flashsale.BodyHash(row.Key, row.User, row.Quantity) != ask.Body:
		return ReserveAnswer{}, errorf(flashsale.CodeConflict, "%s: this order token was spent on another quantity", key)
	}
	return ReserveAnswer{Known: true, Result: e.resultOfRow(row)}, nil
}

// atLimit gives a shopper at the purchase limit the reservations that they hold.
func (e *Engine) atLimit(ctx context.Context, key flashsale.Key, rids []string) (answer ReserveAnswer) {
	if len(rids) == 0 {
		return answer
	}
	entries, err := e.find(ctx, key, rids)
	if err != nil {
		return answer
	}
	rows, err := e.rows.all(ctx, rids...)
	for i := range entries {
		switch row := rows[entries[i].RID]; {
		case entries[i].State == flashsale.None:
		case err != nil || row == nil:
			answer.Holds = append(answer.Holds, resultOfEntry(key, &entries[i]))
		default:
			answer.Holds = append(answer.Holds, e.resultOfRow(row))
		}
	}
	return answer
}
