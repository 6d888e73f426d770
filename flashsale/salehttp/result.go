package salehttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale/engine"
)

// pollAfter is when a pending result is worth another look.
const pollAfter = time.Second

// resultBody is where a reservation stands.
type resultBody struct {
	RID      string `json:"rid"`
	Sale     string `json:"sale"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	State    string `json:"state"`
	Version  int64  `json:"version"`
	Reason   string `json:"reason,omitempty"`
	Until    string `json:"until,omitempty"`
	OrderID  string `json:"order_id,omitempty"`
	// Amount is nil as long as SQL has not said it.
	Amount    *int64 `json:"amount,omitempty"`
	Currency  string `json:"currency,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	ChangedAt string `json:"changed_at,omitempty"`
	// URL is where to pay, in the answer to pay alone.
	URL string `json:"url,omitempty"`
	Now string `json:"now,omitempty"`
}

func resultOf(r *engine.Result) resultBody {
	b := resultBody{
		RID: r.RID, Sale: r.Key.Sale, SKU: r.Key.SKU, Quantity: r.Quantity, State: r.State.String(), Version: r.Version, Reason: r.Reason,
		OrderID: r.OrderID, Currency: r.Currency, CreatedAt: stamp(r.CreatedAt), ChangedAt: stamp(r.ChangedAt),
	}
	if !r.State.Terminal() {
		b.Until = stamp(r.Until)
	}
	if r.Currency != "" {
		b.Amount = &r.Amount
	}
	return b
}

// result is GET …/{rid}.
func (a *answer) result() {
	if !a.shown() {
		return
	}
	r, err := a.h.sales.Result(a.r.Context(), a.key, a.rid, a.shopper.User)
	if err != nil {
		a.failed(err)
		return
	}
	a.stands(&r)
}

// stands answers where a reservation stands: 202 while that is not decided.
func (a *answer) stands(r *engine.Result) {
	body := resultOf(r)
	body.Now = a.now()
	status := http.StatusOK
	if !r.Decided() {
		status = http.StatusAccepted
		a.w.Header().Set("Retry-After", strconv.FormatInt(a.h.seconds(pollAfter), 10))
	}
	a.json(status, "application/json", &body)
}

type ordersBody struct {
	Orders []resultBody `json:"orders"`
	Now    string       `json:"now"`
}

// orders is GET …/{sale}/orders.
func (a *answer) orders() {
	if !a.shown() {
		return
	}
	list, err := a.h.sales.Orders(a.r.Context(), a.key.Sale, a.shopper.User)
	if err != nil {
		a.failed(err)
		return
	}
	body := ordersBody{Orders: resultsOf(list), Now: a.now()}
	a.json(http.StatusOK, "application/json", &body)
}

func resultsOf(list []engine.Result) []resultBody {
	bodies := make([]resultBody, len(list))
	for i := range list {
		bodies[i] = resultOf(&list[i])
	}
	return bodies
}
