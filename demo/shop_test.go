package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func plenty(context.Context) string { return "plenty" }

func ask(shop *Shop, method, path, user, body string) int {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set(userHeader, user)
	w := httptest.NewRecorder()
	shop.Handler().ServeHTTP(w, r)
	return w.Code
}

// TestShop buys as a person does, with every mistake on the way.
func TestShop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shop := newShop(plenty, 1, newFlights())
		const proof = `{"phone":"5","code":"CODE"}`
		for i, step := range []struct {
			method, path, user, body string
			want                     int
		}{
			{"GET", "/", "", "", http.StatusOK},
			{"GET", "/product", "", "", http.StatusOK},
			{"GET", "/nothing", "", "", http.StatusNotFound},
			{"POST", "/login", "", "{", http.StatusBadRequest},
			{"POST", "/login", "", `{"user":"user-1","password":"guess"}`, http.StatusUnauthorized},
			{"POST", "/login", "", `{"user":"","password":"secret-of-"}`, http.StatusUnauthorized},
			{"POST", "/login", "", `{"user":"` + strings.Repeat("x", 5000) + `"}`, http.StatusBadRequest},
			{"POST", "/confirm", "user-1", proof, http.StatusUnauthorized},
			{"POST", "/login", "", `{"user":"user-1","password":"secret-of-user-1"}`, http.StatusOK},
			{"POST", "/login", "", `{"user":"bot-1","password":"secret-of-bot-1"}`, http.StatusOK},
			{"POST", "/sms", "user-1", "", http.StatusBadRequest},
			{"POST", "/sms?phone=5", "user-1", "", http.StatusOK},
			{"POST", "/confirm", "user-1", "[]", http.StatusBadRequest},
			{"POST", "/confirm", "user-1", `{"phone":"5","code":"1"}`, http.StatusForbidden},
			{"POST", "/confirm", "user-1", `{"phone":"6","code":""}`, http.StatusForbidden},
			{"POST", "/confirm", "user-1", proof, http.StatusOK},
			{"POST", "/login", "", `{"user":"user-1","password":"secret-of-user-1"}`, http.StatusOK},
		} {
			body := strings.Replace(step.body, "CODE", shop.readSMS("5"), 1)
			if got := ask(shop, step.method, step.path, step.user, body); got != step.want {
				t.Errorf("step %d, %s %s: got %d, want %d", i, step.method, step.path, got, step.want)
			}
		}
		for user, want := range map[string]bool{"user-1": true, "bot-1": false, "user-2": false, "": false} {
			if shop.mayBuy(user) != want {
				t.Errorf("may %q buy: %v, want %v", user, !want, want)
			}
		}
		if shop.textsSent(Shopper) != 1 || shop.textsSent(Bot) != 0 {
			t.Errorf("%d and %d SMS were sent, want 1 and 0", shop.textsSent(Shopper), shop.textsSent(Bot))
		}
	})
}

// TestShopTakesItsTime: work is bounded, and is noted for the gateway.
func TestShopTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fl := newFlights()
		shop := newShop(plenty, 1, fl)
		for range 2000 {
			f := fl.begin()
			r := httptest.NewRequest(http.MethodPost, "/confirm", strings.NewReader("{}"))
			r.Header.Set(flightHeader, f.id)
			start := time.Now()
			shop.Handler().ServeHTTP(httptest.NewRecorder(), r)
			took := time.Since(start)
			if took <= 0 || took > slowest {
				t.Fatalf("the shop worked for %s, want up to %s", took, slowest)
			}
			if noted := time.Duration(f.worked.Load()); noted != took {
				t.Fatalf("the shop noted %s, and took %s", noted, took)
			}
			fl.end(f)
		}
	})
}
