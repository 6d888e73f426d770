package redisstock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/redis/rueidis"
)

// The states of an ask. A caller may leave while it is queued or sent; who changes the state first decides.
const (
	askQueued int32 = iota
	askSent
	askDone
	askLeft
)

// ask is one reserve call on its way to Redis. It owns all that it needs, since its caller may leave before it is sent.
type ask struct {
	flashsale.Ask
	text  string // as res has it
	state atomic.Int32
	done  chan struct{}
	timer *time.Timer

	// The answer, written before done gets its value.
	answer flashsale.Answer
	err    error
}

func newAsk() *ask {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &ask{done: make(chan struct{}, 1), timer: t}
}

// Reserve implements [flashsale.Stock].
func (s *Stock) Reserve(ctx context.Context, key flashsale.Key, epoch int64, asked *flashsale.Ask) (flashsale.Answer, error) {
	if err := checkAsk(key, epoch, asked); err != nil {
		return flashsale.Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return flashsale.Answer{}, notBegun(err)
	}
	a := s.asks.Get().(*ask)
	a.Ask, a.err = *asked, nil
	t := text{quantity: asked.Quantity, user: asked.User, body: asked.Body, known: true, origin: asked.Origin}
	a.text = t.string()
	a.state.Store(askQueued)
	if err := s.submit(laneKey{key, epoch}, a); err != nil {
		s.asks.Put(a)
		return flashsale.Answer{}, err
	}
	if err := a.await(ctx, s.cfg.Timeout); err != nil {
		return flashsale.Answer{}, err
	}
	answer, err := a.answer, a.err
	a.Ask, a.answer, a.text = flashsale.Ask{}, flashsale.Answer{}, ""
	s.asks.Put(a)
	return answer, err
}

func checkAsk(key flashsale.Key, epoch int64, a *flashsale.Ask) error {
	if a.Quantity < 1 || a.Quantity > flashsale.MaxTotal {
		return failf(flashsale.CodeInvalidQuantity, nil, "%d units of %s; ask for 1 to %d", a.Quantity, key, flashsale.MaxTotal)
	}
	if err := checkKey(key, epoch); err != nil {
		return err
	}
	if err := flashsale.CheckID("redisstock: the rid", a.RID); err != nil {
		return err
	}
	if err := flashsale.CheckUser(a.User); err != nil {
		return err
	}
	if len(a.Body) > maxBody || len(a.Origin) > 2*flashsale.MaxID {
		return failf(flashsale.CodeInvalidArgument, nil, "a body of %d bytes and an origin of %d; at most %d and %d are kept", len(a.Body), len(a.Origin), maxBody, 2*flashsale.MaxID)
	}
	return nil
}

// await waits for the answer. With an error of its own the ask is not the caller's any more.
func (a *ask) await(ctx context.Context, timeout time.Duration) error {
	a.timer.Reset(timeout)
	var own error
	select {
	case <-a.done:
		a.timer.Stop()
		return nil
	case <-ctx.Done():
		own = ctx.Err()
		a.timer.Stop()
	case <-a.timer.C:
	}
	for {
		state := a.state.Load()
		if state == askDone { // the answer is on its way
			<-a.done
			return nil
		}
		if a.state.CompareAndSwap(state, askLeft) {
			if state == askQueued {
				return notBegun(own)
			}
			return noAnswer(own)
		}
	}
}

// finish gives the ask its answer, unless its caller has left.
func (a *ask) finish(from int32, err error) {
	if a.state.CompareAndSwap(from, askDone) {
		a.err = err
		a.done <- struct{}{}
	}
}

// Bounds of what RetryAfter suggests when busy.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// reserved is the head of an answer of reserve.lua, and what its asks are answered by.
type reserved struct {
	now, available, seq, depth, rate, next, opens int64
	status, letters                               string
	extras                                        []rueidis.RedisMessage
}

func parseReserved(all []rueidis.RedisMessage) (r reserved, ok bool) {
	if len(all) < 9 {
		return r, false
	}
	for i, to := range []*int64{&r.now, &r.available, &r.seq, &r.depth, &r.rate, &r.next} {
		n, err := all[i].AsInt64()
		if err != nil {
			return r, false
		}
		*to = n
	}
	var errs [3]error
	r.status, errs[0] = all[6].ToString()
	r.opens, errs[1] = all[7].AsInt64()
	r.letters, errs[2] = all[8].ToString()
	r.extras = all[9:]
	return r, errs == [3]error{}
}

// extra returns the next of them.
func (r *reserved) extra() (string, bool) {
	if len(r.extras) == 0 {
		return "", false
	}
	text, err := r.extras[0].ToString()
	r.extras = r.extras[1:]
	return text, err == nil
}

// read answers an ask by its letter. Asks come in the order of the batch, since each changes what is available for the next.
func (r *reserved) read(letter byte, key flashsale.Key, a *flashsale.Ask) (answer flashsale.Answer, ok bool) {
	ok = true
	switch letter {
	case 'A':
		r.available -= a.Quantity
		r.seq++
		answer.Accepted = true
		answer.Entry = flashsale.Entry{
			RID: a.RID, User: a.User, Quantity: a.Quantity, State: flashsale.Pending,
			At: fromMicros(r.now), Deadline: fromMicros(r.now).Add(flashsale.PendingFor),
		}
	case 'K':
		raw, has := r.extra()
		answer, ok = known(key, a, raw)
		ok = ok && has
	case 'T':
		answer.Code = flashsale.CodeTokenExpired
	case 'C':
		answer.Code, answer.Detail = flashsale.CodeNotOpen, r.status
	case 'N':
		answer.Code, answer.Detail = flashsale.CodeNotOpen, "not_yet"
		answer.RetryAfter = time.Duration(r.opens-r.now) * time.Microsecond
	case 'E':
		answer.Code, answer.Detail = flashsale.CodeNotOpen, "ended"
	case 'B':
		answer.Code, answer.RetryAfter = flashsale.CodeBusy, r.retryAfter()
	case 'L':
		raw, has := r.extra()
		answer.Code, answer.Holds, ok = flashsale.CodePurchaseLimit, parseHolds(raw), has
	case 'S':
		answer.Code = flashsale.CodeSoldOut
	default:
		ok = false
	}
	answer.Available, answer.Seq = r.available, r.seq
	return answer, ok
}

// known answers again what a rid was answered before. What came from SQL has no hash: it is made of what the reservation says.
func known(key flashsale.Key, a *flashsale.Ask, raw string) (answer flashsale.Answer, ok bool) {
	e, t, ok := parseEntry(a.RID, raw)
	if !ok {
		return answer, false
	}
	if !t.known {
		t.body = flashsale.BodyHash(key, t.user, t.quantity)
	}
	if t.body != a.Body {
		return flashsale.Answer{Code: flashsale.CodeConflict}, true
	}
	return flashsale.Answer{Known: true, Entry: e}, true
}

// retryAfter is about how long it takes until the queue has room.
func (r *reserved) retryAfter() time.Duration {
	rate := r.rate
	if r.next != 0 {
		rate = r.next
	}
	if rate < 1 {
		return maxRetry
	}
	over := max(r.depth-rate*int64(flashsale.BacklogFor/time.Second), 0)
	return min(max(time.Duration(over/rate)*time.Second, minRetry), maxRetry)
}
