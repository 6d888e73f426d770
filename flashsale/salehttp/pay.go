package salehttp

import (
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// own finds the reservation of the path, which a payment or a cancellation is for: it is this shopper's, of this sku, and decided.
func (a *answer) own() bool {
	if !a.bare() || !a.shown() {
		return false
	}
	r, err := a.h.sales.Result(a.r.Context(), a.key, a.rid, a.shopper.User)
	switch {
	case err != nil:
		a.failed(err)
	case !r.Decided():
		a.problem(&fault{code: flashsale.CodeInvalidState, after: pollAfter})
	default:
		return true
	}
	return false
}

// pay is POST …/{rid}/pay.
func (a *answer) pay() {
	if !a.own() {
		return
	}
	paying, err := a.h.sales.Pay(a.r.Context(), a.rid, a.shopper.User)
	if err != nil {
		a.failed(err)
		return
	}
	body := resultOf(&paying.Result)
	body.URL, body.Now = paying.URL, a.now()
	a.json(http.StatusOK, "application/json", &body)
}

// cancel is POST …/{rid}/cancel.
func (a *answer) cancel() {
	if !a.own() {
		return
	}
	r, err := a.h.sales.Cancel(a.r.Context(), a.rid, a.shopper.User)
	if err != nil {
		a.failed(err)
		return
	}
	a.stands(&r)
}

// webhook is POST …/~/webhook: a message of the payment provider, of whatever type, whose signature says who has sent it.
func (a *answer) webhook() {
	body, f := a.read(maxWebhook)
	if f != nil {
		a.problem(f)
		return
	}
	if err := a.h.sales.Webhook(a.r.Context(), a.r.Header, body); flashsale.CodeOf(err) == flashsale.CodeInvalidArgument {
		a.problem(a.invalid(wholeBody, phrase{"It is no message about a payment.", "内容不是支付消息。"}))
		return
	} else if err != nil {
		a.failed(err)
		return
	}
	a.w.Header().Set("Cache-Control", "no-store")
	a.status(http.StatusNoContent)
}

// ticket is POST …/{rid}/ticket: the right to follow one's own reservation once, where a page cannot send what says who it is.
func (a *answer) ticket() {
	if !a.bare() || !a.shown() {
		return
	}
	if _, err := a.h.sales.Result(a.r.Context(), a.key, a.rid, a.shopper.User); err != nil {
		a.failed(err)
		return
	}
	expires := a.h.cfg.Now().Add(ticketLife).Truncate(time.Millisecond)
	text, err := a.h.tickets.issue(ticketScope{a.key, a.rid}, a.shopper.User, expires)
	if err != nil {
		a.failed(err)
		return
	}
	a.json(http.StatusCreated, "application/json", &secretBody{Ticket: text, ExpiresAt: stamp(expires), Now: a.now()})
}

var _ Sales = (*engine.Engine)(nil)
