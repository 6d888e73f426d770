package invariants

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// counter is where bad input comes in: a sale with ann, who has spent a token, and bob, who is paying.
type counter struct {
	*world
	spent, fresh, expired string
	bob, intent           string
}

// reserve asks with what ann would ask for, but for what a case changes.
func (c *counter) reserve(change func(r *engine.ReserveRequest)) error {
	r := request(c.fresh, "ann", 1)
	change(&r)
	_, err := c.engine(0).Reserve(c.Context(), r)
	return err
}

// hook is a webhook about bob's payment, but for what a case changes.
type hook struct {
	intent   string
	amount   int64
	currency string
	status   string
	secret   []byte
	at       time.Time
	// spoil changes what is sent after it was signed.
	spoil func(header http.Header, body []byte) []byte
}

func (c *counter) hook(change func(h *hook)) error {
	h := hook{intent: c.intent, amount: price, currency: currency, status: "captured", secret: secretOfBank, at: c.clock.Now()}
	change(&h)
	body := fmt.Appendf(nil, `{"id":"event","data":{"intent":%q,"status":%q,"amount":%d,"currency":%q}}`, h.intent, h.status, h.amount, h.currency)
	header := http.Header{simpay.SignatureHeader: {simpay.Sign([][]byte{h.secret}, h.at, body)}}
	if h.spoil != nil {
		body = h.spoil(header, body)
	}
	return c.engine(0).Webhook(c.Context(), header, body)
}

// flipped is a token of which one letter in the middle of a part is another one.
func flipped(token string, part int) string {
	parts := strings.Split(token, ".")
	b := []byte(parts[part])
	if at := len(b) / 2; b[at] == 'A' {
		b[at] = 'B'
	} else {
		b[at] = 'A'
	}
	parts[part] = string(b)
	return strings.Join(parts, ".")
}

// foreign is a token that the sale's own keys have signed, for something else.
func (c *counter) foreign(change func(s *flashsale.TokenScope)) string {
	scope := flashsale.TokenScope{Key: phone, User: "ann"}
	change(&scope)
	token, err := c.keys.Issue(c.random(), scope, c.clock.Now().Add(time.Minute))
	c.must(err)
	return token
}

// badInput is each input, with the code of its error.
var badInput = map[string]struct {
	want flashsale.Code
	send func(c *counter) error
}{
	"an unknown sale": {flashsale.CodeUnknownSale, func(c *counter) error {
		key := flashsale.Key{Sale: "twelve", SKU: "phone"}
		token := c.foreign(func(s *flashsale.TokenScope) { s.Key = key })
		return c.reserve(func(r *engine.ReserveRequest) { r.Key, r.Token = key, token })
	}},
	"an unknown sku": {flashsale.CodeUnknownSKU, func(c *counter) error {
		key := flashsale.Key{Sale: "eleven", SKU: "radio"}
		token := c.foreign(func(s *flashsale.TokenScope) { s.Key = key })
		return c.reserve(func(r *engine.ReserveRequest) { r.Key, r.Token = key, token })
	}},
	"a token for an unknown sale": {flashsale.CodeUnknownSale, func(c *counter) error {
		_, _, err := c.engine(0).Token(c.Context(), engine.TokenRequest{Key: flashsale.Key{Sale: "twelve", SKU: "phone"}, User: "ann"})
		return err
	}},
	"a token for an unknown sku": {flashsale.CodeUnknownSKU, func(c *counter) error {
		_, _, err := c.engine(0).Token(c.Context(), engine.TokenRequest{Key: flashsale.Key{Sale: "eleven", SKU: "radio"}, User: "ann"})
		return err
	}},
	"a sale that no sale can be called": {flashsale.CodeInvalidArgument, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Key.Sale = "ele}ven:*" })
	}},
	"no user": {flashsale.CodeInvalidArgument, func(c *counter) error { return c.reserve(func(r *engine.ReserveRequest) { r.User = "" }) }},
	"a long user": {flashsale.CodeInvalidArgument, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.User = strings.Repeat("u", 256) })
	}},
	"a negative quantity": {flashsale.CodeInvalidQuantity, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Quantity = -1 })
	}},
	"no quantity": {flashsale.CodeInvalidQuantity, func(c *counter) error { return c.reserve(func(r *engine.ReserveRequest) { r.Quantity = 0 }) }},
	"one too many": {flashsale.CodeInvalidQuantity, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Quantity = c.limit + 1 })
	}},
	"a huge quantity": {flashsale.CodeInvalidQuantity, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Quantity = 1<<63 - 1 })
	}},
	"the least quantity": {flashsale.CodeInvalidQuantity, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Quantity = -1 << 63 })
	}},
	"more than the user may have": {flashsale.CodePurchaseLimit, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Quantity = c.limit })
	}},
	"no token":                        {flashsale.CodeInvalidToken, func(c *counter) error { return c.reserve(func(r *engine.ReserveRequest) { r.Token = "" }) }},
	"a token with another key's id":   {flashsale.CodeInvalidToken, func(c *counter) error { return c.forged("z" + c.fresh) }},
	"a token with another nonce":      {flashsale.CodeInvalidToken, func(c *counter) error { return c.forged(flipped(c.fresh, 1)) }},
	"a token with another signature":  {flashsale.CodeInvalidToken, func(c *counter) error { return c.forged(flipped(c.fresh, 2)) }},
	"a token of a megabyte":           {flashsale.CodeInvalidToken, func(c *counter) error { return c.forged(strings.Repeat("k", 1<<20)) }},
	"a token signed by another's key": {flashsale.CodeInvalidToken, func(c *counter) error { return c.forged(c.byAnotherKey()) }},
	"a token of another user": {flashsale.CodeInvalidToken, func(c *counter) error {
		return c.forged(c.foreign(func(s *flashsale.TokenScope) { s.User = "bob" }))
	}},
	"a token for another sku": {flashsale.CodeInvalidToken, func(c *counter) error {
		return c.forged(c.foreign(func(s *flashsale.TokenScope) { s.Key.SKU = "radio" }))
	}},
	"a token for another sale": {flashsale.CodeInvalidToken, func(c *counter) error {
		return c.forged(c.foreign(func(s *flashsale.TokenScope) { s.Key.Sale = "twelve" }))
	}},
	"a token for another device": {flashsale.CodeInvalidToken, func(c *counter) error {
		return c.forged(c.foreign(func(s *flashsale.TokenScope) { s.Device = "phone of ann" }))
	}},
	"an expired token": {flashsale.CodeTokenExpired, func(c *counter) error { return c.forged(c.expired) }},
	"a spent token":    {"", func(c *counter) error { return c.forged(c.spent) }},
	"a spent token, and another quantity": {flashsale.CodeConflict, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Token, r.Quantity = c.spent, 2 })
	}},
	"a spent token of another user": {flashsale.CodeInvalidToken, func(c *counter) error {
		return c.reserve(func(r *engine.ReserveRequest) { r.Token, r.User = c.spent, "bob" })
	}},
	"another's result": {flashsale.CodeNotFound, func(c *counter) error {
		_, err := c.engine(0).Result(c.Context(), phone, c.bob, "ann")
		return err
	}},
	"paying for another":      {flashsale.CodeNotFound, func(c *counter) error { _, err := c.engine(0).Pay(c.Context(), c.bob, "ann"); return err }},
	"cancelling for another":  {flashsale.CodeNotFound, func(c *counter) error { _, err := c.engine(0).Cancel(c.Context(), c.bob, "ann"); return err }},
	"paying for nothing":      {flashsale.CodeNotFound, func(c *counter) error { _, err := c.engine(0).Pay(c.Context(), "nothing", "ann"); return err }},
	"paying for no id at all": {flashsale.CodeInvalidArgument, func(c *counter) error { _, err := c.engine(0).Pay(c.Context(), "' OR 1=1 --", "ann"); return err }},

	"a webhook without a signature": {flashsale.CodeInvalidSignature, func(c *counter) error {
		return c.hook(func(h *hook) { h.spoil = func(header http.Header, body []byte) []byte { clear(header); return body } })
	}},
	"a webhook with a wrong signature": {flashsale.CodeInvalidSignature, func(c *counter) error {
		return c.hook(func(h *hook) { h.secret = []byte("another secret that signs webhooks") })
	}},
	"a webhook that was changed": {flashsale.CodeInvalidSignature, func(c *counter) error {
		return c.hook(func(h *hook) {
			h.spoil = func(_ http.Header, body []byte) []byte { return slices.Concat(body, []byte(" ")) }
		})
	}},
	"a webhook that is old": {flashsale.CodeInvalidSignature, func(c *counter) error {
		return c.hook(func(h *hook) { h.at = h.at.Add(-time.Hour) })
	}},
	"a webhook of tomorrow": {flashsale.CodeInvalidSignature, func(c *counter) error {
		return c.hook(func(h *hook) { h.at = h.at.Add(24 * time.Hour) })
	}},
	"a webhook of a megabyte": {flashsale.CodeInvalidArgument, func(c *counter) error {
		return c.hook(func(h *hook) { h.currency = strings.Repeat("C", 1<<20) })
	}},
	"a webhook with another amount": {flashsale.CodeAmountMismatch, func(c *counter) error {
		return c.hook(func(h *hook) { h.amount = 1 })
	}},
	"a webhook with no amount": {flashsale.CodeAmountMismatch, func(c *counter) error { return c.hook(func(h *hook) { h.amount = -price }) }},
	"a webhook with another currency": {flashsale.CodeCurrencyMismatch, func(c *counter) error {
		return c.hook(func(h *hook) { h.currency = "EUR" })
	}},
	"a webhook about no payment of ours": {flashsale.CodeUnknownPayment, func(c *counter) error {
		return c.hook(func(h *hook) { h.intent = "somebody-else:1" })
	}},
	"a webhook about no payment": {flashsale.CodeInvalidArgument, func(c *counter) error { return c.hook(func(h *hook) { h.intent = "" }) }},
	"a webhook with a status of its own": {flashsale.CodeInvalidArgument, func(c *counter) error {
		return c.hook(func(h *hook) { h.status = "paid twice over" })
	}},

	"a top-up of nothing": {flashsale.CodeInvalidArgument, func(c *counter) error { _, err := c.engine(0).TopUp(c.Context(), c.command("o"), 0); return err }},
	"a top-up below zero": {flashsale.CodeInvalidArgument, func(c *counter) error { _, err := c.engine(0).TopUp(c.Context(), c.command("o"), -5); return err }},
	"a withdrawal without a reason": {flashsale.CodeInvalidArgument, func(c *counter) error {
		command := c.command("o")
		command.Reason = ""
		_, err := c.engine(0).Withdraw(c.Context(), command, 1)
		return err
	}},
	"an operation that was another one": {flashsale.CodeConflict, func(c *counter) error {
		_, err := c.engine(0).TopUp(c.Context(), c.command("had"), 99)
		return err
	}},
	"the same sale with other units": {flashsale.CodeExists, func(c *counter) error {
		sale, err := c.sql.Sale(c.Context(), phone.Sale)
		c.must(err)
		sale.SKUs[0].Total++
		return c.engine(0).CreateSale(c.Context(), sale)
	}},
}

// forged asks with a token.
func (c *counter) forged(token string) error {
	return c.reserve(func(r *engine.ReserveRequest) { r.Token = token })
}

func (c *counter) byAnotherKey() string {
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: slices.Repeat([]byte{1}, flashsale.MinKeyBytes)})
	c.must(err)
	token, err := keys.Issue(c.random(), flashsale.TokenScope{Key: phone, User: "ann"}, c.clock.Now().Add(time.Minute))
	c.must(err)
	return token
}

// TestBadInput: each has its error, by code, that quotes no secret and no token; and not a row of SQL and not a byte of the Stock is
// another one.
func TestBadInput(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 10, limit: 3})
		c := &counter{world: w, spent: w.token("ann"), expired: w.token("ann")}
		w.clock.advance(flashsale.MaxTokenLife - time.Minute)
		_, err := w.engine(0).Reserve(t.Context(), request(c.spent, "ann", 1))
		w.must(err)
		_, err = w.engine(0).TopUp(t.Context(), w.command("had"), 1)
		w.must(err)
		w.consume()
		c.bob = w.reserve("bob", 1)
		c.intent = w.pay(c.bob, "bob")
		w.clock.advance(time.Minute)
		c.fresh = w.token("ann")
		sql, stock, bytes := w.dumpSQL(), w.dumpStock(), w.store.dump()
		for name, input := range badInput {
			err := input.send(c)
			w.wantCode(name, err, input.want)
			if err != nil && (strings.Contains(err.Error(), c.fresh) || strings.Contains(err.Error(), c.spent)) {
				t.Errorf("%s: the error quotes a token: %.200s", name, err)
			}
			d := differences(sql, w.dumpSQL()) + differences(stock, w.dumpStock()) + differences(bytes, w.store.dump())
			if d != "" {
				t.Fatalf("%s has changed something:\n%.4000s", name, d)
			}
		}
		// What is good goes through, after all of that: the token that was tried so often, and bob's payment.
		if _, err := w.engine(0).Reserve(t.Context(), request(c.fresh, "ann", 1)); err != nil {
			t.Errorf("the fresh token: %v", err)
		}
		w.capture(c.intent)
		w.bankSteps()
		w.is(c.bob, flashsale.Confirmed)
		w.consume()
		w.sound()
	})
}
