package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestTokenOnlyWhileOnSale(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status        flashsale.Status
		opens, closes time.Duration // from now
		want          flashsale.Code
		says          string
	}{
		"open":                  {flashsale.Open, -time.Hour, time.Hour, "", ""},
		"opens now":             {flashsale.Open, 0, time.Hour, "", ""},
		"1 ms before":           {flashsale.Open, time.Millisecond, time.Hour, flashsale.CodeNotOpen, "it will be from 2000-01-01T00:00:00Z on"},
		"closes in 1 ms":        {flashsale.Open, -time.Hour, time.Millisecond, "", ""},
		"closes now":            {flashsale.Open, -time.Hour, 0, flashsale.CodeNotOpen, "not on sale any more"},
		"draft":                 {flashsale.Draft, -time.Hour, time.Hour, flashsale.CodeNotOpen, "it is draft"},
		"paused":                {flashsale.Paused, -time.Hour, time.Hour, flashsale.CodeNotOpen, "it is paused"},
		"draining":              {flashsale.Draining, -time.Hour, time.Hour, flashsale.CodeNotOpen, "it is draining"},
		"closed before it ends": {flashsale.Closed, -time.Hour, time.Hour, flashsale.CodeNotOpen, "it is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				s := openShop(t, shopPlan{total: 1, status: c.status, opens: now.Add(c.opens), closes: now.Add(c.closes)})
				token, expires, err := s.engine.Token(t.Context(), TokenRequest{Key: phone, User: "u"})
				wantCode(t, "a token", err, c.want)
				if err == nil && (token == "" || expires.Sub(now) != 2*time.Minute) {
					t.Errorf("the token %q lives for %s, want 2m", token, expires.Sub(now))
				}
				if err != nil && (token != "" || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("a token %q beside an error, %q without %q", token, err, c.says)
				}
			})
		})
	}
}

// TestTokenAfterTheOpening: an instance does not remember a refusal for long, and those who come too early cost SQL little.
func TestTokenAfterTheOpening(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1, status: flashsale.Draft})
		_, _, err := s.engine.Token(t.Context(), TokenRequest{Key: phone, User: "u"})
		wantCode(t, "a draft", err, flashsale.CodeNotOpen)
		for range 1000 {
			_, _, err = s.engine.Token(t.Context(), TokenRequest{Key: phone, User: "u"})
			wantCode(t, "a draft still", err, flashsale.CodeNotOpen)
		}
		if n := s.faults.count("orders.SKU"); n != 1 {
			t.Errorf("SQL was asked %d times", n)
		}
		s.book.change(phone, func(s *flashsale.SKUState) { s.Settings.Status, s.Settings.Version = flashsale.Open, 2 })
		time.Sleep(refusalAge)
		s.token("u")
		s.book.change(phone, func(s *flashsale.SKUState) { s.Settings.Status, s.Settings.Version = flashsale.Paused, 3 })
		time.Sleep(skuAge)
		_, _, err = s.engine.Token(t.Context(), TokenRequest{Key: phone, User: "u"})
		wantCode(t, "paused a second ago", err, flashsale.CodeNotOpen)
	})
}

// TestTokenWithoutSQL: what was read is good for tokens while SQL is away.
func TestTokenWithoutSQL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1})
		s.token("u")
		time.Sleep(time.Minute)
		s.faults.set(lose(-1, "orders.SKU"), nil)
		s.token("u")
	})
}

func TestTokenBadInput(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 1})
	for name, c := range map[string]struct {
		r    TokenRequest
		want flashsale.Code
	}{
		"unknown sale":  {TokenRequest{Key: flashsale.Key{Sale: "twelve", SKU: "phone-0"}, User: "u"}, flashsale.CodeUnknownSale},
		"unknown sku":   {TokenRequest{Key: flashsale.Key{Sale: "eleven", SKU: "phone-9"}, User: "u"}, flashsale.CodeUnknownSKU},
		"empty sku":     {TokenRequest{Key: flashsale.Key{Sale: "eleven"}, User: "u"}, flashsale.CodeInvalidArgument},
		"sku with {":    {TokenRequest{Key: flashsale.Key{Sale: "eleven", SKU: "a}{b"}, User: "u"}, flashsale.CodeInvalidArgument},
		"no user":       {TokenRequest{Key: phone}, flashsale.CodeInvalidArgument},
		"long user":     {TokenRequest{Key: phone, User: strings.Repeat("u", 256)}, flashsale.CodeInvalidArgument},
		"long device":   {TokenRequest{Key: phone, User: "u", Device: strings.Repeat("d", 256)}, flashsale.CodeInvalidArgument},
		"user of bytes": {TokenRequest{Key: phone, User: "\x00\xff "}, ""},
	} {
		_, _, err := s.engine.Token(t.Context(), c.r)
		wantCode(t, name, err, c.want)
	}
}

func TestTokenLifeIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1, config: func(c *Config) { c.TokenLife = time.Hour }})
		_, expires, err := s.engine.Token(t.Context(), TokenRequest{Key: phone, User: "u"})
		if err != nil || time.Until(expires) != flashsale.MaxTokenLife {
			t.Errorf("it lives for %s (%v), want %s", time.Until(expires), err, flashsale.MaxTokenLife)
		}
	})
}

// constant is a source of one byte.
type constant byte

func (c constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}

// TestPausesComeFromConfigRand: who gives an engine its randomness decides how long it pauses.
func TestPausesComeFromConfigRand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source constant
		want   time.Duration
	}{{0, 75 * time.Millisecond}, {255, 75*time.Millisecond + time.Duration(uint64(1<<64-1)%(50_000_001))}} {
		r := &lockedReader{from: c.source}
		if got := r.jittered(100 * time.Millisecond); got != c.want {
			t.Errorf("a source of %d: a pause of %s, want %s", c.source, got, c.want)
		}
	}
}
