package salehttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// failing is sales of which one call goes wrong.
type failing struct {
	Sales
	orders func() ([]engine.Result, error)
}

func (f failing) Orders(context.Context, string, string) ([]engine.Result, error) { return f.orders() }

// provoked has a way to each code that a shopper, or the provider, can be answered with.
var provoked = map[flashsale.Code]func(s *shop) *reply{
	codeNoRoute: func(s *shop) *reply { return s.get(Prefix+"/eleven/x", "u") },
	codeMethod:  func(s *shop) *reply { return s.do(ask{method: "DELETE", path: s.path("/token"), user: "u"}) },
	codeCrossOrigin: func(s *shop) *reply {
		return s.do(ask{method: "POST", path: s.path("/token"), user: "u", header: map[string]string{"Sec-Fetch-Site": "cross-site"}})
	},
	codeUnauthenticated: func(s *shop) *reply { return s.post(s.path("/token"), "", "") },
	codeMediaType: func(s *shop) *reply {
		return s.do(ask{method: "POST", path: s.path("/token"), user: "u", body: "{}", header: map[string]string{"Content-Type": "text/plain"}})
	},
	codeTooLarge:    func(s *shop) *reply { return s.post(s.path("/token"), "u", string(make([]byte, maxBody+1))) },
	codeBodyTimeout: func(s *shop) *reply { return s.broken(s.path("/token"), os.ErrDeadlineExceeded) },
	codeTooManyStreams: func(s *shop) *reply {
		for range s.h.cfg.MaxStreamsPerUser {
			s.h.streams.enter("u")
		}
		return s.get(s.reserved("u")+"/events", "u")
	},
	codeInvalidTicket:         func(s *shop) *reply { return s.get(s.reserved("u")+"/events?ticket=k1.forged", "") },
	flashsale.CodeUnknownSale: func(s *shop) *reply { return s.get(Prefix+"/twelve", "") },
	flashsale.CodeUnknownSKU:  func(s *shop) *reply { return s.post(Prefix+"/eleven/skus/x/token", "u", "") },
	flashsale.CodeNotFound:    func(s *shop) *reply { return s.get(s.path("/reservations/nothing"), "u") },
	flashsale.CodeUnknownPayment: func(s *shop) *reply {
		return s.webhook("e1", "none:1", "captured", 500, "EUR")
	},
	flashsale.CodeInvalidArgument: func(s *shop) *reply { return s.post(s.path("/reservations"), "u", "{}") },
	flashsale.CodeInvalidQuantity: func(s *shop) *reply {
		return s.post(s.path("/reservations"), "u", reserveBody(s.token("u"), 3))
	},
	flashsale.CodeConflict: func(s *shop) *reply {
		token := s.token("u")
		s.post(s.path("/reservations"), "u", reserveBody(token, 1)).is(202, "")
		return s.post(s.path("/reservations"), "u", reserveBody(token, 2))
	},
	flashsale.CodeInvalidToken: func(s *shop) *reply {
		return s.post(s.path("/reservations"), "v", reserveBody(s.token("u"), 1))
	},
	flashsale.CodeTokenExpired: func(s *shop) *reply {
		token := s.token("u")
		s.Clock.Pass(2 * time.Minute)
		return s.post(s.path("/reservations"), "u", reserveBody(token, 1))
	},
	flashsale.CodeNotOpen: func(s *shop) *reply {
		s.Clock.Pass(24 * time.Hour)
		return s.post(s.path("/token"), "u", "")
	},
	flashsale.CodePurchaseLimit: func(s *shop) *reply {
		s.pending("u")
		s.pending("u")
		return s.post(s.path("/reservations"), "u", reserveBody(s.token("u"), 1))
	},
	flashsale.CodeSoldOut: func(s *shop) *reply {
		for _, user := range []string{"a", "b", "c"} {
			s.pending(user)
		}
		return s.post(s.path("/reservations"), "u", reserveBody(s.token("u"), 1))
	},
	flashsale.CodeInvalidState: func(s *shop) *reply { return s.post(s.pending("u")+"/pay", "u", "") },
	flashsale.CodePastDeadline: func(s *shop) *reply {
		path := s.reserved("u")
		s.Clock.Pass(15 * time.Minute)
		return s.post(path+"/pay", "u", "")
	},
	flashsale.CodeBusy:        func(s *shop) *reply { return s.faulty("stock.Reserve", flashsale.CodeBusy) },
	flashsale.CodeRebuilding:  func(s *shop) *reply { return s.faulty("stock.Reserve", flashsale.CodeRebuilding) },
	flashsale.CodeUnavailable: func(s *shop) *reply { return s.faulty("stock.Reserve", flashsale.CodeUnavailable) },
	flashsale.CodeClosed: func(s *shop) *reply {
		path := s.reserved("u")
		_ = s.h.Close()
		return s.get(path+"/events", "u")
	},
	flashsale.CodeInvalidSignature: func(s *shop) *reply {
		return s.do(ask{method: "POST", path: Prefix + "/~/webhook", body: `{"id":"e1"}`, header: map[string]string{"Webhook-Signature": "t=1,v1=00"}})
	},
	flashsale.CodeAmountMismatch: func(s *shop) *reply {
		return s.webhook("e1", s.paying("u"), "captured", price+1, "EUR")
	},
	flashsale.CodeCurrencyMismatch: func(s *shop) *reply {
		return s.webhook("e1", s.paying("u"), "captured", price, "USD")
	},
	flashsale.CodeInternal: func(s *shop) *reply { return s.answering("something new") },
}

// faulty reserves while a port fails.
func (s *shop) faulty(call string, code flashsale.Code) *reply {
	s.Helper()
	token := s.token("u")
	s.fail(call, code)
	return s.post(s.path("/reservations"), "u", reserveBody(token, 1))
}

// answering asks for orders while the sales answer with a code.
func (s *shop) answering(code flashsale.Code) *reply {
	s.Helper()
	s.h = s.handler(func(c *Config) {
		c.Sales = failing{s.Engine, func() ([]engine.Result, error) { return nil, &flashsale.Error{Code: code, Message: "secret words"} }}
	})
	w := s.do(ask{method: "GET", path: Prefix + "/eleven/orders", user: "u", header: map[string]string{"X-Undocumented": "1"}})
	return w
}

// paying begins to pay, and returns the key of the intent.
func (s *shop) paying(user string) string {
	s.Helper()
	return flashsale.IntentKey(s.post(s.reserved(user)+"/pay", user, "").is(200, "").text("rid"), 1)
}

// TestEveryCode: each comes with its status, in plain words of both languages, with an id, and with Retry-After where that helps.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	for code, to := range answers {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			provoke := provoked[code]
			if provoke == nil {
				t.Fatal("nothing provokes this code")
			}
			s := openShop(t, plan{total: 3, limit: 2})
			got := provoke(s).is(to.status, code).has("title", to.title.en).has("detail", to.text.en)
			checkProblem(t, got, "en")
			// The same in Chinese, wherever it comes from.
			w := httptest.NewRecorder()
			r := s.request(ask{method: "GET", path: Prefix, header: map[string]string{"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}})
			(&answer{h: s.h, w: w, r: r}).problem(&fault{code: code})
			got = (&reply{t: t, status: w.Code, header: w.Header(), body: w.Body.Bytes()}).is(to.status, code).has("title", to.title.zh).has("detail", to.text.zh)
			checkProblem(t, got, "zh")
			if to.title.zh == to.title.en || to.text.zh == to.text.en {
				t.Error("it is not translated")
			}
		})
	}
	for code := range provoked {
		if _, known := answers[code]; !known {
			t.Errorf("%s is provoked, and not in the table", code)
		}
	}
}

func checkProblem(t *testing.T, got *reply, lang string) {
	t.Helper()
	if id := got.header.Get("Headgate-Id"); id == "" || got.text("id") != id {
		t.Errorf("the id is %q in the header and %q in the body", id, got.text("id"))
	}
	if l := got.header.Get("Content-Language"); l != lang {
		t.Errorf("the language is %q, want %q", l, lang)
	}
	if c := got.header.Get("Cache-Control"); c != "no-store" {
		t.Errorf("a problem may be kept: %q", c)
	}
	header, inBody := got.header.Get("Retry-After"), ""
	if n, ok := got.member("retry_after").(float64); ok {
		inBody = strconv.Itoa(int(n))
	}
	if header != inBody || got.status == http.StatusServiceUnavailable && header == "" {
		t.Errorf("Retry-After is %q, and %q in the body", header, inBody)
	}
}

// TestProblemsSayWhatHelps: the members that some codes have.
func TestProblemsSayWhatHelps(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 2, limit: 1, opens: time.Hour})
	s.post(s.path("/token"), "u", "").is(409, "not_open").has("reason", "not_yet").has("opens_at", "2026-11-11T13:00:00.000Z").has("retry_after", 3600.0)
	s.Clock.Pass(time.Hour)
	mine := s.pending("u")
	limit := s.post(s.path("/reservations"), "u", reserveBody(s.token("u"), 1)).is(409, "purchase_limit").has("retry_after", nil)
	if holds := limit.member("holds").([]any); len(holds) != 1 || Prefix+"/eleven/skus/phone/reservations/"+holds[0].(map[string]any)["rid"].(string) != mine {
		t.Errorf("what fills the limit: %v", holds)
	}
	s.pending("v")
	token := s.token("w")
	s.post(s.path("/reservations"), "w", reserveBody(token, 1)).is(409, "sold_out").has("stock", "all_held").has("retry_after", 5.0)

	s.command((*engine.Engine).PauseSale, "eleven")
	s.Clock.Pass(time.Second) // what is remembered of sold out is a moment old at most
	s.post(s.path("/reservations"), "w", reserveBody(token, 1)).is(409, "not_open").has("reason", "paused").has("retry_after", 5.0)
	s.command((*engine.Engine).DrainSale, "eleven")
	s.post(s.path("/reservations"), "w", reserveBody(token, 1)).is(409, "not_open").has("reason", "draining").has("retry_after", nil)
}

// TestSoldOutForGood: nobody is told to come back for what is sold.
func TestSoldOutForGood(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 1})
	late := s.token("v")
	s.Must(s.Bank.Pay(s.paying("u"), flashsale.PayCaptured))
	s.Clock.Pass(time.Minute)
	_, err := s.Engine.PollOnce(t.Context())
	s.Must(err)
	eventually(t, func() bool { // what is shown is a second old
		return s.post(s.path("/reservations"), "v", reserveBody(late, 1)).is(409, "sold_out").text("stock") == "gone"
	})
	s.post(s.path("/reservations"), "v", reserveBody(late, 1)).is(409, "sold_out").has("retry_after", nil)
	if sale := s.get(Prefix+"/eleven", "").is(200, ""); sale.member("skus").([]any)[0].(map[string]any)["stock"] != "gone" {
		t.Errorf("%s", sale.body)
	}
}

// TestRetryAfterSpreads: whole seconds, never less than asked for, and not the same for all.
func TestRetryAfterSpreads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait     time.Duration
		min, max int64
	}{{0, 1, 2}, {time.Nanosecond, 1, 2}, {time.Second, 1, 2}, {1001 * time.Millisecond, 2, 3}, {10 * time.Second, 10, 15}} {
		for _, x := range []float64{0, 0.5, 0.999999} {
			h := &Handler{cfg: Config{Random: func() float64 { return x }}}
			got := h.seconds(c.wait)
			if got < c.min || got > c.max || x == 0 && got != c.min || x > 0.9 && got != c.max {
				t.Errorf("%s at %f: %d, want %d to %d", c.wait, x, got, c.min, c.max)
			}
		}
	}
}
