package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// storyRefusals bounds the refusals that a shopper is told of to have had.
	storyRefusals = 500
	// storyTime bounds how long the log of refusals is looked through for them.
	storyTime = 3 * time.Second
	// clockMargin is how far the clocks of instances and of the log may be apart: what is checked before a sale opens.
	clockMargin = time.Second
)

// Refusal is what a shopper was told in place of a reservation, once or several times.
type Refusal struct {
	// Key is what the shopper asked for; its SKU is "" where it was the sale alone.
	Key flashsale.Key
	// Code is the error's, Detail says more of CodeNotOpen: "not_yet", "ended", or the status.
	Code   flashsale.Code
	Detail string
	// Rule is "" if it was the sale that refused. Else it names the rule, or the list, of the policy that turned the request away before it
	// came to the sale; Code is the verdict's then, and Detail what was asked for.
	Rule string
	// Quantity is what the last call asked for, RetryAfter what it was told, 0 for nothing.
	Quantity   int64
	RetryAfter time.Duration
	// Count is how often the user was told so, from First to Last, by the clocks of those that told.
	Count       int64
	First, Last time.Time
}

// Refusals are those of one user.
type Refusals struct {
	// Instance has been asked.
	Instance string
	// Fleet tells that those by all instances are here, as the log of refusals has them: what others have refused within the last second or
	// two may be missing, and the last second of one that was killed. Without it they are those that this instance remembers.
	Fleet bool
	// Since is how far back they reach: every refusal of this user after it is among them. There may be earlier ones too.
	Since time.Time
	// Dropped counts the refusals of all users that nobody knows any more: of the fleet within the log, else of this instance.
	Dropped int64
	// Missing says, in a sentence each, why some may not be here that should be; trimming, which Since tells of, is no such reason.
	Missing []string
	// Of are the refusals, the latest first: one for each sku and reason, at most 500.
	Of []Refusal
}

// Refusals tells what a user was refused, of a sale or ("") of all, by any instance if there is a log of refusals, else by this one.
// Refusals of skus that nobody knows are not kept. It takes 3 seconds at most, and tells what it has by then.
func (e *Engine) Refusals(ctx context.Context, sale, user string) Refusals {
	own := e.refusals.of(user)
	own.Instance = e.cfg.Instance
	if e.refusalLog.log != nil {
		e.addFleet(ctx, user, &own)
	}
	if sale != "" {
		own.Of = slices.DeleteFunc(own.Of, func(one Refusal) bool { return one.Key.Sale != sale })
	}
	slices.SortFunc(own.Of, laterFirst)
	if n := len(own.Of); n > storyRefusals {
		own.Since = latest(own.Since, own.Of[storyRefusals].Last)
		own.Missing = append(own.Missing, fmt.Sprintf("there are %d more kinds of refusals, which are older", n-storyRefusals))
		own.Of = own.Of[:storyRefusals]
	}
	return own
}

func laterFirst(a, b Refusal) int {
	return cmp.Or(b.Last.Compare(a.Last), b.First.Compare(a.First), cmp.Compare(a.Key.String(), b.Key.String()), cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Detail, b.Detail), cmp.Compare(a.Rule, b.Rule))
}

// noteRefusal keeps why a reserve call has failed. It allocates nothing once the journal has grown.
func (e *Engine) noteRefusal(r *ReserveRequest, a *ReserveAnswer, err error) {
	known, ok := e.skus.look(r.Key)
	if err == nil || !ok {
		return // what clients make up fills no journal
	}
	kind := refusalKind{key: known.state.Key, code: flashsale.CodeOf(err), detail: a.Detail}
	e.refusals.note(r.User, kind, refusalTold{quantity: r.Quantity, retry: a.RetryAfter, at: e.cfg.Now()})
}

// TurnedAway is a request of a shopper that a policy has denied before it came to the sale.
type TurnedAway struct {
	// Key is what it asked for; its SKU is "" if that was the sale alone.
	Key flashsale.Key
	// User is who asked, as the caller has made sure.
	User string
	// Rule names what has denied it, Code is the word for why, Detail what was asked for, at most 255 bytes each. They are kept: they must not lie
	// in the memory of a request, and there should be few of them.
	Rule, Code, Detail string
	// RetryAfter is what the shopper was told, 0 for nothing.
	RetryAfter time.Duration
}

// NoteTurnedAway keeps a denial for the story of a shopper, if this instance has heard of the sku, or sale. It allocates nothing and waits
// for nothing.
func (e *Engine) NoteTurnedAway(t *TurnedAway) {
	key, ok := e.skus.name(t.Key)
	if !ok || flashsale.CheckUser(t.User) != nil {
		return
	}
	kind := refusalKind{key: key, code: flashsale.Code(t.Code), detail: t.Detail, rule: t.Rule}
	e.refusals.note(t.User, kind, refusalTold{retry: t.RetryAfter, at: e.cfg.Now()})
}

// MissTurnedAway says that a denial was not looked at, since there were too many: stories tell that some are missing. One of a sku or sale
// that this instance has not heard of would not have been kept, so none is missing.
func (e *Engine) MissTurnedAway(key flashsale.Key) {
	if _, ok := e.skus.name(key); ok {
		e.refusals.lose(1, e.cfg.Now())
	}
}
