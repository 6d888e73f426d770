package demo

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// decider notes what the policy says about each request of the crowd, and how long it took to say it.
type decider struct {
	httpverdict.Decider
	meter   *meter
	flights *flights
}

// Decide implements [httpverdict.Decider].
func (d *decider) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	start := time.Now()
	v := d.Decider.Decide(ctx, r)
	d.meter.decided.record(time.Since(start))
	if v.Allowed() {
		return v
	}
	if f := d.flights.get(r.Header.Get(flightHeader)); f != nil {
		rule := v.Rule
		if rule == "" {
			rule = v.Code
		}
		f.denied.Store(&rule)
	}
	return v
}

// Needs implements [httpverdict.Needer] for the policy.
func (d *decider) Needs() []httpverdict.Need {
	if n, ok := d.Decider.(httpverdict.Needer); ok {
		return n.Needs()
	}
	return nil
}

// valuer is a Decider that can say what a dimension of its policy is for a request, as *app.Guard and *policy.Engine can.
type valuer interface {
	Value(ctx context.Context, r *httpverdict.Request, dimension string) (string, bool)
}

// identity finds out who buys: the user whom the policy believes, if the shop has let them in.
func identity(d *decider, shop *Shop) salehttp.Identity {
	asked, _ := d.Decider.(valuer)
	return func(r *http.Request) (salehttp.Shopper, error) {
		j, ok := gateway.JudgedOf(r.Context())
		if !ok || asked == nil {
			return salehttp.Shopper{}, errors.New("nobody says who this is")
		}
		user, ok := asked.Value(r.Context(), j.Request, app.DefaultSaleUser)
		if !ok || !shop.mayBuy(user) {
			return salehttp.Shopper{}, errors.New("the shop has not let this user in")
		}
		device, _ := asked.Value(r.Context(), j.Request, "device")
		if len(device) > flashsale.MaxUser { // nobody's here
			device = ""
		}
		return salehttp.Shopper{User: user, Device: device}, nil
	}
}

// timed wraps the sale as the shop is: its answers are the shop's, and how long it works on them is noted.
func timed(sale http.Handler, fl *flights) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w.Header().Set(shopHeader, "1")
		sale.ServeHTTP(w, r)
		fl.worked(r.Header.Get(flightHeader), time.Since(start))
	})
}

// measured wraps the gateway's handler and measures what it adds to a request that the shop served: the time in the
// gateway, deciding and the whole trip to the shop and back included, less the time that the shop itself worked.
func measured(gateway http.Handler, m *meter, fl *flights) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := fl.get(r.Header.Get(flightHeader))
		start := time.Now()
		gateway.ServeHTTP(w, r)
		took := time.Since(start)
		if f == nil {
			return
		}
		if worked := f.worked.Load(); worked > 0 {
			m.added.record(took - time.Duration(worked))
		}
	})
}
