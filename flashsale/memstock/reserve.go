package memstock

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// The times of the design, in microseconds.
const (
	pendingFor  = int64(flashsale.PendingFor / time.Microsecond)
	retention   = int64(flashsale.Retention / time.Microsecond)
	backlogSecs = int64(flashsale.BacklogFor / time.Second)
)

// Bounds of what RetryAfter suggests when busy.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// Reserve implements [flashsale.Stock].
func (s *Stock) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (flashsale.Answer, error) {
	if ask.Quantity < 1 || ask.Quantity > flashsale.MaxTotal {
		return flashsale.Answer{}, failf(flashsale.CodeInvalidQuantity, "%d units of %s; ask for 1 to %d", ask.Quantity, key, flashsale.MaxTotal)
	}
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return flashsale.Answer{}, err
	}
	defer k.unlock()
	if k.settings.Status == "" {
		return flashsale.Answer{}, noSettings(key)
	}
	answer := k.reserve(ask, s.now())
	answer.Available, answer.Seq = k.available, k.seq
	return answer, nil
}

func noSettings(key flashsale.Key) error {
	return failf(flashsale.CodeRebuilding, "the stock of %s is loaded and has no settings yet; ask again", key)
}

func (k *keys) reserve(ask *flashsale.Ask, now int64) flashsale.Answer {
	if e := k.entries[ask.RID]; e != nil {
		return k.known(e, ask)
	}
	b := k.buyers[ask.User]
	if refusal := k.refuse(ask, &b, now); refusal.Code != "" {
		return refusal
	}
	return flashsale.Answer{Accepted: true, Entry: k.take(ask, b, now).public()}
}

// known answers again what a rid was answered before. One that came from SQL has no hash: it is made of what the reservation says.
func (k *keys) known(e *entry, ask *flashsale.Ask) flashsale.Answer {
	body := e.body
	if e.fromSQL {
		body = flashsale.BodyHash(k.key, e.user, e.quantity)
	}
	if body != ask.Body {
		return flashsale.Answer{Code: flashsale.CodeConflict}
	}
	return flashsale.Answer{Known: true, Entry: e.public()}
}

// refuse says why an unknown rid of a buyer gets nothing; an answer without a code refuses nothing. The order is the contract's.
func (k *keys) refuse(ask *flashsale.Ask, b *buyer, now int64) flashsale.Answer {
	if ask.OnlyKnown {
		return flashsale.Answer{Code: flashsale.CodeTokenExpired}
	}
	if detail, open := k.open(now); !open {
		a := flashsale.Answer{Code: flashsale.CodeNotOpen, Detail: detail}
		if detail == "not_yet" {
			a.RetryAfter = time.Duration(k.opens-now) * time.Microsecond
		}
		return a
	}
	if k.busy(now) {
		return flashsale.Answer{Code: flashsale.CodeBusy, RetryAfter: k.retryAfter()}
	}
	if b.quantity+ask.Quantity > k.settings.PurchaseLimit {
		return flashsale.Answer{Code: flashsale.CodePurchaseLimit, Holds: b.rids()}
	}
	if ask.Quantity > k.available || ask.Origin == "" && k.lulled(now) && ask.Quantity > k.above {
		return flashsale.Answer{Code: flashsale.CodeSoldOut}
	}
	return flashsale.Answer{}
}

// open reports whether units can be reserved now, and if not, why.
func (k *keys) open(now int64) (detail string, open bool) {
	switch {
	case k.settings.Status != flashsale.Open:
		return string(k.settings.Status), false
	case now < k.opens:
		return "not_yet", false
	case now >= k.closes:
		return "ended", false
	}
	return "", true
}

// busy reports whether nothing new may be admitted: the queue is at its bound or must shrink first, SQL does not keep up, or the
// memory is at its bound.
func (k *keys) busy(now int64) bool {
	return k.nextRate != 0 || k.queue.depth() >= k.settings.Rate*backlogSecs || k.queue.age(now) > pendingFor/2 ||
		k.stock.reservations.Load() >= int64(k.stock.cfg.MaxReservations)
}

// retryAfter is about how long it takes until the queue has room.
func (k *keys) retryAfter() time.Duration {
	rate := k.settings.Rate
	if k.nextRate != 0 {
		rate = k.nextRate
	}
	if rate < 1 {
		return maxRetry
	}
	over := max(k.queue.depth()-rate*backlogSecs, 0)
	return min(max(time.Duration(over/rate)*time.Second, minRetry), maxRetry)
}

// take is the effect of T0, for a user who was this buyer before.
func (k *keys) take(ask *flashsale.Ask, b buyer, now int64) *entry {
	k.seq++
	e := &entry{
		rid: ask.RID, user: ask.User, body: ask.Body, origin: ask.Origin, quantity: ask.Quantity,
		state: flashsale.Pending, at: now, deadline: now + pendingFor, seq: k.seq,
	}
	k.available -= e.quantity
	k.held += e.quantity
	b.add(e.rid, e.quantity)
	k.buyers[e.user] = b
	k.insert(e)
	k.due.add(e)
	k.queue.add(e, now)
	return e
}
