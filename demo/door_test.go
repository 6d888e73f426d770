package demo

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate-io/headgate/flashsale/salehttp"
)

func nobody(*http.Request) (salehttp.Shopper, error) { return salehttp.Shopper{}, errors.New("nobody") }

// TestDoor: who somebody is, the door says; a client cannot, nor from where it comes.
func TestDoor(t *testing.T) {
	t.Parallel()
	fl := newFlights()
	shop := newShop(plenty, 1, fl)
	cookie, guest, ok := shop.sessions.begin()
	if !ok {
		t.Fatal("no session")
	}
	gone, _, _ := shop.sessions.begin()
	shop.sessions.end(gone)
	flight := fl.begin()
	over := fl.begin()
	fl.end(over)
	var user, from string
	d := newDoor(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user, from = r.Header.Get(userHeader), r.Header.Get("X-Forwarded-For")
	}), shop, fl)
	for name, c := range map[string]struct {
		flight, cookie, user, from string
	}{
		"the crowd":          {flight.id, "", "user-1", "198.18.0.1"},
		"a flight of before": {over.id, "", "", ""},
		"a guessed flight":   {"1", "", "", ""},
		"a stranger":         {"", "", "", ""},
		"a guest":            {"", cookie, guest, ""},
		"a guest of before":  {"", gone, "", ""},
		"another cookie":     {"", guest, "", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(userHeader, "user-1")
		r.Header.Set("X-Forwarded-For", "198.18.0.1")
		if c.flight != "" {
			r.Header.Set(flightHeader, c.flight)
		}
		if c.cookie != "" {
			r.AddCookie(&http.Cookie{Name: sessionCookie, Value: c.cookie})
		}
		if d.ServeHTTP(httptest.NewRecorder(), r); user != c.user || from != c.from {
			t.Errorf("%s: the user is %q from %q, want %q from %q", name, user, from, c.user, c.from)
		}
	}
}

// TestSignIn: a person becomes a guest, and nobody else; not from a page of another site, and not without end.
func TestSignIn(t *testing.T) {
	t.Parallel()
	shop := newShop(plenty, 1, newFlights())
	do := func(path, site, cookie string) *http.Response {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header.Set("Sec-Fetch-Site", site)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: cookie})
		w := httptest.NewRecorder()
		shop.Handler().ServeHTTP(w, r)
		return w.Result()
	}
	if r := do("/guest", "cross-site", ""); r.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %d", r.StatusCode)
	}
	for _, header := range []string{"Sec-Fetch-Site", "Origin"} {
		r := httptest.NewRequest(http.MethodPost, "/guest", nil)
		r.Header[header] = []string{"same-origin", "cross-site"}
		w := httptest.NewRecorder()
		if shop.Handler().ServeHTTP(w, r); w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 {
			t.Errorf("with two lines of %s: %d, and cookies %v", header, w.Code, w.Result().Cookies())
		}
	}
	in := do("/guest?lang=zh", "same-origin", "")
	if in.StatusCode != http.StatusSeeOther || in.Header.Get("Location") != "/?lang=zh" {
		t.Fatalf("%d to %q", in.StatusCode, in.Header.Get("Location"))
	}
	c := in.Cookies()[0]
	user := shop.sessions.user(c.Value)
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || !shop.mayBuy(user) || kindOfUser(user) != Shopper || guestOf(user) == "" {
		t.Errorf("%q has %+v", user, c)
	}
	if out := do("/leave?lang=//example.com", "same-origin", c.Value); out.StatusCode != http.StatusSeeOther || out.Header.Get("Location") != "/" || shop.sessions.user(c.Value) != "" {
		t.Errorf("%d to %q", out.StatusCode, out.Header.Get("Location"))
	}
	for range maxGuests {
		shop.sessions.begin()
	}
	if r := do("/guest", "same-origin", ""); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more than %d: %d", maxGuests, r.StatusCode)
	}
}

func TestPrefersHTML(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "application/json, text/html": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, "text/html, application/json;q=0.5": true,
	} {
		if got := prefersHTML(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}
