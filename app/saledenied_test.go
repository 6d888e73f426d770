package app

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

func TestAskedOf(t *testing.T) {
	mug := flashsale.Key{Sale: "spring", SKU: "mug"}
	for path, want := range map[string]engine.TurnedAway{
		"/spring":                                {Key: flashsale.Key{Sale: "spring"}, Detail: "sale"},
		"/spring/orders":                         {Key: flashsale.Key{Sale: "spring"}, Detail: "orders"},
		"/spring/skus/mug/token":                 {Key: mug, Detail: "token"},
		"/spring/skus/mug/reservations":          {Key: mug, Detail: "reservation"},
		"/spring/skus/mug/reservations/r":        {Key: mug, Detail: "result"},
		"/spring/skus/mug/reservations/r/events": {Key: mug, Detail: "events"},
		"/spring/skus/mug/reservations/r/ticket": {Key: mug, Detail: "ticket"},
		"/spring/skus/mug/reservations/r/pay":    {Key: mug, Detail: "pay"},
		"/spring/skus/mug/reservations/r/cancel": {Key: mug, Detail: "cancel"},
	} {
		if got, ok := askedOf("/_headgate/sales" + path); !ok || got != want {
			t.Errorf("%s: %+v, %t, want %+v", path, got, ok, want)
		}
	}
	for _, path := range []string{
		"", "/", "/_headgate/sales", "/_headgate/sales/~/page.js", "/_headgate/sales/~", "/_headgate/salesX/spring", "/spring/skus/mug/token",
		"/_headgate/sales/spring/skus", "/_headgate/sales/spring/skus/mug", "/_headgate/sales/spring/skus/mug/token/x",
		"/_headgate/sales/spring/skus/mug/reservations/r/else", "/_headgate/sales/spring/skus/mug/reservations/r/pay/x", "/_headgate/sales/spring/else",
	} {
		if got, ok := askedOf(path); ok && got.Detail != "" && got.Key.SKU != "" || ok && strings.Contains(path, "~") {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestStoryOfTheDenied: who was turned away by a limit before coming to the sale finds that in the story, and nobody else's.
func TestStoryOfTheDenied(t *testing.T) {
	t.Parallel()
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:"})
	defer s.close()
	s.sell(1)
	for range 3 {
		s.token("bob")
	}
	for range 2 {
		if r := s.as("bob", "POST", mug+"/token", ""); r.status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", r.status, r.text)
		}
	}
	story := func(user string) *reply { return s.operate("GET", "/spring/story?user="+user, "") }
	first := func(r *reply) map[string]any {
		refusals, _ := r.doc["refusals"].(map[string]any)
		of, _ := refusals["of"].([]any)
		if len(of) != 1 {
			return nil
		}
		one, _ := of[0].(map[string]any)
		return one
	}
	r := s.until("the story of bob", func() *reply { return story("bob") }, func(r *reply) bool { return first(r)["count"] == 2.0 })
	one := first(r)
	if one["rule"] != "tries" || one["code"] != "limited" || one["detail"] != "token" || one["sku"] != "mug" || !strings.Contains(r.text, `"fleet":true`) {
		t.Errorf("got %s", r.text)
	}
	if retry, _ := one["retry_after_ms"].(float64); retry < 1 || retry > 3_600_000 {
		t.Errorf("to come back after %v ms", retry)
	}
	if r := story("ann"); first(r) != nil || !strings.Contains(r.text, `"of":[]`) {
		t.Errorf("of ann: %s", r.text)
	}
}

// TestAsideTime: what is done aside gets a share of the time, and a little at once.
func TestAsideTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsideTime()
		spend := func(each, every, total time.Duration) (n int) {
			for until := time.Now().Add(total); time.Now().Before(until); time.Sleep(every) {
				if began, ok := a.begin(); ok {
					time.Sleep(each)
					a.end(began)
					n++
				}
			}
			return n
		}
		if n := spend(time.Millisecond, time.Second, 10*time.Second); n != 10 {
			t.Errorf("of 10 that take little, %d had time", n)
		}
		// A 20th of 10 s is 500 ms, and 5 ms at once.
		if n := spend(time.Millisecond, time.Microsecond, 10*time.Second); n < 500 || n > 510 {
			t.Errorf("%d ms were spent in 10 s", n)
		}
		time.Sleep(time.Hour) // nothing is saved up
		if n := spend(time.Millisecond, time.Microsecond, 100*time.Millisecond); n < 9 || n > 12 {
			t.Errorf("%d ms were spent in 100 ms after an hour", n)
		}
	})
}
