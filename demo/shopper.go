package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"time"
)

const (
	botAccount  = "bot-"
	maxCodeAsks = 3 // how often a shopper asks for a code before giving up
	mostRetries = 4 // how often a shopper comes back after a denial
)

// shopper is one person: an address, a device, an account and a temper.
type shopper struct {
	client  *client
	sale    saleCalls
	shop    *Shop
	dice    chance
	pace    time.Duration // the median time between two pages
	me      call
	account string
	phone   string
	hasty   bool // does not read what a page says about waiting, and clicks again
	quick   float64
}

func newShopper(n int, w *world) *shopper {
	dice := newChance(w.seed, uint64(n))
	return &shopper{
		client: w.client, sale: w.sale, shop: w.shop, dice: dice, pace: w.pace, quick: w.quick,
		account: fmt.Sprintf("user-%d", n),
		phone:   fmt.Sprintf("%d", 13_800_000_000+n),
		hasty:   dice.happens(0.15),
		me:      call{kind: Shopper, address: addressIn(shopperNet, n), device: fmt.Sprintf("phone-%d", n)},
	}
}

// visit is what a person does from coming to leaving.
func (s *shopper) visit(ctx context.Context, w *world) {
	if !pause(ctx, s.dice.between(0, w.arrive)) {
		return
	}
	for range 1 + s.dice.r.IntN(3) {
		if !s.look(ctx) {
			return
		}
	}
	if !s.login(ctx) {
		return
	}
	if !s.proveNumber(ctx) {
		return
	}
	s.buy(ctx, w)
	for s.rest(ctx) {
	}
}

// restful is how much longer people wait on a page that they have read.
const restful = 4

// rest has another look at the page, after a while.
func (s *shopper) rest(ctx context.Context) bool {
	return pause(ctx, s.dice.lognormal(restful*s.pace, 0.5, 2*restful*s.pace)) && s.look(ctx)
}

// think waits as long as a person does between two pages.
func (s *shopper) think(ctx context.Context) bool {
	return pause(ctx, s.dice.lognormal(s.pace, 0.8, 10*s.pace))
}

// look opens the product page and reads it.
func (s *shopper) look(ctx context.Context) bool {
	s.try(ctx, s.request(http.MethodGet, "/product", nil))
	return s.think(ctx)
}

// await looks at the page now and then until the sale opens.
func (s *shopper) await(ctx context.Context, opens time.Time) bool {
	for time.Until(opens) > restful*s.pace {
		if !s.rest(ctx) {
			return false
		}
	}
	return pause(ctx, time.Until(opens))
}

// login signs in; now and then a person mistypes first.
func (s *shopper) login(ctx context.Context) bool {
	password := passwordOf(s.account)
	for _, typed := range []string{password + "?", password} {
		if typed != password && !s.dice.happens(0.08) {
			continue
		}
		r, ok := s.try(ctx, s.request(http.MethodPost, "/login", credentials{User: s.account, Password: typed}))
		if !ok {
			return false
		}
		if r.status == http.StatusOK {
			s.me.user = s.account
		}
	}
	return s.me.user != "" && s.think(ctx)
}

// proveNumber has a code sent, reads it, and types it in.
func (s *shopper) proveNumber(ctx context.Context) bool {
	code, ok := s.askCode(ctx)
	if !ok {
		return false
	}
	r, ok := s.try(ctx, s.request(http.MethodPost, "/confirm", proof{Phone: s.phone, Code: code}))
	return ok && r.status == http.StatusOK && s.think(ctx)
}

// askCode has a code sent and reads it.
func (s *shopper) askCode(ctx context.Context) (string, bool) {
	for range maxCodeAsks {
		r, ok := s.try(ctx, s.request(http.MethodPost, "/sms?phone="+s.phone, nil))
		if ok && s.hasty && s.dice.happens(0.5) { // presses "send again" before it can have come
			s.client.send(s.request(http.MethodPost, "/sms?phone="+s.phone, nil))
		}
		if !ok || !s.think(ctx) {
			return "", false
		}
		if r.status == http.StatusOK {
			return s.shop.readSMS(s.phone), true
		}
	}
	return "", false
}

// try sends a request and, when it is denied or the shop asks to come again, comes back: after the time that the answer asks for, or at once for those
// who do not read. It reports false when the visit is over.
func (s *shopper) try(ctx context.Context, q call) (reply, bool) {
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return reply{}, false
		}
		r := s.client.send(q)
		if r.fate == served && r.status != http.StatusServiceUnavailable || attempt == mostRetries {
			return r, ctx.Err() == nil
		}
		wait := s.dice.pareto(s.pace/4, 1.5, 5*s.pace)
		if !s.hasty {
			wait += r.retryAfter
		}
		if !pause(ctx, wait) {
			return r, false
		}
	}
}

func (s *shopper) request(method, path string, body any) call {
	q := s.me
	q.method, q.path = method, path
	if body != nil {
		q.body = asJSON(body)
	}
	return q
}

// asJSON encodes the few structs of this package, which cannot fail.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// The crowd's addresses come from the range that RFC 2544 sets aside for measurements.
var (
	shopperNet = netip.AddrFrom4([4]byte{198, 18, 0, 0})
	botNet     = netip.AddrFrom4([4]byte{198, 19, 0, 0})
)

// addressIn returns the nth address of a network of 65536.
func addressIn(network netip.Addr, n int) string {
	a := network.As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a).String()
}
