package demo

import (
	"context"
	"net/http"
	"time"

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
