package demo

import (
	"net/http"
)

// door stands before the gateway, as the proxy of a real shop does: it says who has signed in, and from where a request comes, and lets
// nobody say that of themselves. The crowd, whose proxy it is not, is known by its flights.
type door struct {
	gate    http.Handler
	shop    *Shop
	flights *flights
}

func newDoor(gate http.Handler, shop *Shop, fl *flights) http.Handler { return &door{gate, shop, fl} }

// notBelieved are headers that a client could say something with that only a proxy may.
var notBelieved = [...]string{userHeader, flightHeader, "X-Forwarded-For", "Forwarded"}

// ServeHTTP implements [http.Handler].
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.flights.get(r.Header.Get(flightHeader)) == nil {
		for _, name := range notBelieved {
			r.Header.Del(name)
		}
		if c, err := r.Cookie(sessionCookie); err == nil {
			if user := d.shop.sessions.user(c.Value); user != "" {
				r.Header.Set(userHeader, user)
			}
		}
	}
	d.gate.ServeHTTP(w, r)
}
