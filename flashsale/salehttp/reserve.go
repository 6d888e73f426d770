package salehttp

import (
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// comesBack is when it is worth asking again for what is sold out or paused, and may be had again.
const comesBack = 5 * time.Second

// secretBody is what a shopper is given to show again.
type secretBody struct {
	Token     string `json:"token,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	ExpiresAt string `json:"expires_at"`
	Now       string `json:"now"`
}

// token is POST …/{sku}/token.
func (a *answer) token() {
	if !a.bare() || !a.shown() {
		return
	}
	token, expires, err := a.h.sales.Token(a.r.Context(), engine.TokenRequest{Key: a.key, User: a.shopper.User, Device: a.shopper.Device})
	if err != nil {
		a.refused(err, &engine.ReserveAnswer{})
		return
	}
	a.json(http.StatusCreated, "application/json", &secretBody{Token: token, ExpiresAt: stamp(expires), Now: a.now()})
}

// askBody asks for units.
type askBody struct {
	Token    *string `json:"token"`
	Quantity *int64  `json:"quantity"`
}

// reserve is POST …/{sku}/reservations.
func (a *answer) reserve() {
	var asked askBody
	f := a.fields(&asked, "token", "quantity")
	switch {
	case f != nil:
	case asked.Token == nil:
		f = a.missing("token")
	case asked.Quantity == nil:
		f = a.missing("quantity")
	}
	if f != nil {
		a.problem(f)
		return
	}
	if !a.shown() {
		return
	}
	answered, err := a.h.sales.Reserve(a.r.Context(), engine.ReserveRequest{
		Token: *asked.Token, Key: a.key, User: a.shopper.User, Device: a.shopper.Device, Quantity: *asked.Quantity,
	})
	if err != nil {
		a.refused(err, &answered)
		return
	}
	where := "Location"
	if answered.Decided() {
		where = "Content-Location"
	}
	a.w.Header().Set(where, a.addressOf(answered.RID))
	a.stands(&answered.Result)
}

func (a *answer) addressOf(rid string) string {
	return Prefix + "/" + a.key.Sale + "/skus/" + a.key.SKU + "/reservations/" + rid
}

// refused answers why there is no token or no reservation, with what helps to go on.
func (a *answer) refused(err error, answered *engine.ReserveAnswer) {
	f := a.faultOf(err)
	f.after = answered.RetryAfter
	switch f.code {
	case flashsale.CodeNotOpen:
		a.explainNotOpen(f, answered.Detail)
	case flashsale.CodeSoldOut:
		f.more.Stock = string(a.signal())
		if f.more.Stock != string(engine.StockGone) {
			f.after = max(f.after, comesBack)
		}
	case flashsale.CodePurchaseLimit:
		f.more.Holds = resultsOf(answered.Holds)
	}
	a.problem(f)
}

// signal says whether what is sold out can come back.
func (a *answer) signal() engine.StockSignal {
	sale, err := a.h.sales.Shown(a.r.Context(), a.key.Sale)
	if err == nil {
		if sku := sale.SKU(a.key.SKU); sku != nil && sku.Stock == engine.StockGone {
			return engine.StockGone
		}
	}
	return engine.StockAllHeld
}

// explainNotOpen says why a sku is not on sale, and when it will be.
func (a *answer) explainNotOpen(f *fault, detail string) {
	sale, err := a.h.sales.Shown(a.r.Context(), a.key.Sale)
	if err != nil {
		f.more.Reason = detail
		return
	}
	now := a.h.cfg.Now()
	if sku := sale.SKU(a.key.SKU); detail == "" && sku != nil {
		switch {
		case sku.Status != flashsale.Open:
			detail = string(sku.Status)
		case now.Before(sale.OpensAt):
			detail = "not_yet"
		case !now.Before(sale.ClosesAt):
			detail = "ended"
		}
	}
	f.more.Reason = detail
	switch detail {
	case "not_yet":
		f.more.OpensAt = stamp(sale.OpensAt)
		f.after = max(f.after, sale.OpensAt.Sub(now), time.Second)
	case string(flashsale.Paused):
		f.after = max(f.after, comesBack)
	case "": // it has just been opened, and what is shown is older
		f.after = max(f.after, time.Second)
	default:
		f.never = true
	}
}
