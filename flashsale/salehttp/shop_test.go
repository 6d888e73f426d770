package salehttp

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestFromTheClickToThePaidOrder is what a shop's page does.
func TestFromTheClickToThePaidOrder(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 20, limit: 2})
	s.get(Prefix, "").is(200, "").has("now", "2026-11-11T12:00:00.000Z")
	sale := s.get(Prefix+"/eleven", "").is(200, "").has("zone", "Asia/Shanghai").has("opens_at", "2026-11-11T12:00:00.000Z")
	if c := sale.header.Get("Cache-Control"); c != "public, max-age=1" {
		t.Errorf("a sale may be kept: %s", c)
	}
	got := s.post(s.path("/token"), "u", "{}").is(201, "").has("expires_at", "2026-11-11T12:02:00.000Z")
	body := reserveBody(got.text("token"), 2)
	first := s.post(s.path("/reservations"), "u", body).is(202, "").has("state", "pending").has("until", "2026-11-11T12:01:30.000Z")
	where := first.header.Get("Location")
	if again := s.post(s.path("/reservations"), "u", body).is(202, ""); again.header.Get("Location") != where {
		t.Errorf("a double-click leads to %s and %s", where, again.header.Get("Location"))
	}
	if wait := s.get(where, "u").is(202, "").header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After: %s", wait)
	}
	s.post(where+"/pay", "u", "").is(409, "invalid_state").has("retry_after", 1.0)
	s.consume()
	s.get(where, "u").is(200, "").has("state", "reserved").has("amount", 1000.0).has("until", "2026-11-11T12:15:00.000Z")
	known := s.post(s.path("/reservations"), "u", body).is(200, "").has("state", "reserved")
	if known.header.Get("Content-Location") != where {
		t.Errorf("the answer again is of %s", known.header.Get("Content-Location"))
	}
	pay := s.post(where+"/pay", "u", "").is(200, "").has("state", "confirming")
	if pay.text("url") == "" {
		t.Errorf("there is nowhere to pay: %s", pay.body)
	}
	s.Must(s.Bank.Pay(flashsale.IntentKey(pay.text("rid"), 1), flashsale.PayCaptured))
	s.Clock.Pass(time.Minute)
	_, err := s.Engine.PollOnce(t.Context())
	s.Must(err)
	s.get(where, "u").is(200, "").has("state", "confirmed")
	s.post(where+"/cancel", "u", "").is(409, "invalid_state")
	if orders := s.get(Prefix+"/eleven/orders", "u").is(200, "").member("orders").([]any); len(orders) != 1 {
		t.Errorf("orders: %v", orders)
	}
	if orders := s.get(Prefix+"/eleven/orders", "v").is(200, "").member("orders").([]any); len(orders) != 0 {
		t.Errorf("another's orders: %v", orders)
	}
}
