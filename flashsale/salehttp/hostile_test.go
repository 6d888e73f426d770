package salehttp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// TestForeignTokens: a token is good for one user, device, sale and sku, and whoever else has it changes nothing.
func TestForeignTokens(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10, limit: 2})
	s.create(flashsale.Key{Sale: "twelve", SKU: "phone"}, &plan{total: 10})
	token := s.token("u")
	before := s.view()
	s.post(s.path("/reservations"), "v", reserveBody(token, 1)).is(403, "invalid_token")
	s.do(ask{method: "POST", path: s.path("/reservations"), user: "u", body: reserveBody(token, 1), header: map[string]string{"X-Device": "d"}}).is(403, "invalid_token")
	s.post(Prefix+"/twelve/skus/phone/reservations", "u", reserveBody(token, 1)).is(403, "invalid_token")
	if after := s.view(); after != before {
		t.Errorf("the stock was %+v, and is %+v", before, after)
	}

	path := s.post(s.path("/reservations"), "u", reserveBody(token, 1)).is(202, "").header.Get("Location")
	held := s.view()
	s.post(s.path("/reservations"), "u", reserveBody(token, 2)).is(422, "conflict")
	if after := s.view(); after != held {
		t.Errorf("a replay with another quantity changes the stock: %+v, %+v", held, after)
	}
	s.consume()
	s.post(s.path("/reservations"), "u", reserveBody(token, 2)).is(422, "conflict")
	s.Clock.Pass(10 * time.Minute)
	s.post(s.path("/reservations"), "u", reserveBody(token, 2)).is(422, "conflict")
	if got := s.post(s.path("/reservations"), "u", reserveBody(token, 1)).is(200, "").has("state", "reserved"); got.header.Get("Content-Location") != path {
		t.Errorf("the expired token leads to %s", got.header.Get("Content-Location"))
	}
}

// TestWebhookAgain: a message that comes again is taken again and does nothing, as providers repeat them; one that was kept to be sent later is refused.
func TestWebhookAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	intent := s.paying("u")
	body := fmt.Sprintf(`{"id":"e1","data":{"intent":%q,"status":"captured","amount":%d,"currency":"EUR"}}`, intent, price)
	message := ask{method: "POST", path: Prefix + "/~/webhook", body: body, header: map[string]string{simpay.SignatureHeader: simpay.Sign([][]byte{[]byte(secret)}, s.Clock.Now(), []byte(body))}}
	s.do(message).is(204, "")
	before := s.view()
	if before.Sold != 1 {
		t.Fatalf("%+v", before)
	}
	s.do(message).is(204, "")
	changed := message
	changed.body = strings.Replace(body, "captured", "failed", 1)
	s.do(changed).is(401, "invalid_signature")
	s.Clock.Pass(6 * time.Minute)
	s.do(message).is(401, "invalid_signature")
	if after := s.view(); after != before {
		t.Errorf("the stock was %+v, and is %+v", before, after)
	}
	if orders := s.get(Prefix+"/eleven/orders", "u").is(200, ""); strings.Count(string(orders.body), `"confirmed"`) != 1 {
		t.Errorf("%s", orders.body)
	}
}

// TestDoubleClicks: however often and however fast, it is one reservation.
func TestDoubleClicks(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10, limit: 5})
	body := reserveBody(s.token("u"), 1)
	where := make([]string, 50)
	var all sync.WaitGroup
	for i := range where {
		all.Go(func() { where[i] = s.post(s.path("/reservations"), "u", body).is(202, "").header.Get("Location") })
	}
	all.Wait()
	if len(slices.Compact(where)) != 1 || s.view().Held != 1 {
		t.Errorf("%v, and held are %d", where, s.view().Held)
	}
}

// TestForeignReservations: another's is answered exactly like none, after the same calls, on every route and in every state.
func TestForeignReservations(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10, limit: 5})
	s.create(flashsale.Key{Sale: "twelve", SKU: "phone"}, &plan{total: 10})
	for state, path := range map[string]string{"reserved": s.reserved("u"), "pending": s.pending("u"), "none": s.path("/reservations/AAAAAAAAAAAAAAAAAAAAAA")} {
		other := strings.Replace(path, "/eleven/", "/twelve/", 1)
		for _, route := range []ask{{method: "GET"}, {method: "GET", path: "/events"}, {method: "POST", path: "/ticket"}, {method: "POST", path: "/pay"}, {method: "POST", path: "/cancel"}} {
			var first string
			for _, k := range []ask{{path: path, user: "v"}, {path: other, user: "u"}, {path: s.path("/reservations/none"), user: "v"}} {
				k.method, k.path = route.method, k.path+route.path
				var calls []string
				s.Gate.Before = func(_ context.Context, call string) error {
					calls = append(calls, call)
					return nil
				}
				got := s.do(k).is(404, "not_found")
				s.Gate.Before = nil
				id := got.header.Get("Headgate-Id")
				got.header.Del("Headgate-Id")
				text := fmt.Sprint(got.header, strings.ReplaceAll(string(got.body), id, "ID"), slices.DeleteFunc(calls, isShelf))
				if first == "" {
					first = text
				}
				if text != first {
					t.Errorf("%s, %s %s:\n%s\n%s", state, k.method, k.path, text, first)
				}
			}
		}
	}
}

// isShelf reports whether a call is for what is shown, once a second.
func isShelf(call string) bool {
	return call == "orders.SKUs" || call == "orders.SaleIDs" || call == "orders.SKU"
}

func TestPaths(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	for _, path := range []string{
		"/", "/_headgate/sale", "/_headgate/salesx", Prefix + "/", Prefix + "//", Prefix + "/eleven/", Prefix + "/~", Prefix + "/~/x", Prefix + "/~/orders", Prefix + "/eleven/skus", Prefix + "/eleven/skus/phone",
		Prefix + "/eleven/skus//token", Prefix + "/eleven/skus/~/token", Prefix + "/eleven/skus/phone/token/", Prefix + "/x/../eleven", Prefix + "/./eleven/skus",
	} {
		s.get(path, "u").is(404, "no_such_path")
	}
	for path, code := range map[string]flashsale.Code{
		Prefix + "/%65leven": "unknown_sale", Prefix + "/eleven%2Forders": "unknown_sale", Prefix + "/eleven;a=1": "unknown_sale", Prefix + "/" + strings.Repeat("x", 65): "unknown_sale", Prefix + "/..": "unknown_sale", Prefix + "/a%00": "unknown_sale",
		Prefix + "/a:b/orders": "unknown_sale", Prefix + "/eleven/skus/pho%20ne/reservations/r": "unknown_sku", s.path("/reservations/a%2Fb"): "not_found",
	} {
		s.get(path, "u").is(404, code)
	}
	for _, r := range s.h.routes {
		path := strings.NewReplacer("{sale}", "eleven", "{sku}", "phone", "{rid}", "r").Replace(r.path)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "get", "X"} {
			if r.methods[method] == nil {
				if got := s.do(ask{method: method, path: path, user: "u"}); got.status != 405 || got.header.Get("Allow") != r.allow {
					t.Errorf("%s %s: %d, Allow %q", method, path, got.status, got.header.Get("Allow"))
				}
			}
		}
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	path := s.reserved("u")
	for _, at := range []string{Prefix, Prefix + "/eleven", Prefix + "/eleven/orders", Prefix + "/~/openapi.json", Prefix + "/none", path, path + "x"} {
		get, head := s.get(at, "u"), s.do(ask{method: "HEAD", path: at, user: "u"})
		get.header.Del("Headgate-Id")
		head.header.Del("Headgate-Id")
		if len(head.body) != 0 || head.status != get.status || !maps.EqualFunc(get.header, head.header, slices.Equal) {
			t.Errorf("%s: %d %v, and GET %d %v", at, head.status, head.header, get.status, get.header)
		}
	}
	head := s.do(ask{method: "HEAD", path: path + "/events", user: "u"}).is(200, "")
	if head.header.Get("Content-Type") != "text/event-stream" || s.h.streams.open() != 0 {
		t.Errorf("HEAD of events: %v, %d streams", head.header, s.h.streams.open())
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	for _, user := range []string{"", "broken", strings.Repeat("u", 256)} {
		for _, route := range s.h.routes {
			if !route.identity && !strings.HasSuffix(route.path, "/events") {
				continue
			}
			path := strings.NewReplacer("{sale}", "eleven", "{sku}", "phone", "{rid}", "r").Replace(route.path)
			for method := range route.methods {
				if method == "HEAD" {
					continue
				}
				if got := s.do(ask{method: method, path: path, user: user}).is(401, "unauthenticated"); got.header.Get("Www-Authenticate") == "" {
					t.Error("a 401 says how")
				}
			}
		}
	}
	s.post(s.path("/token"), "\xff\xfe", "").is(201, "")
}

// TestCrossOrigin: pages of other sites send nothing and read nothing; those of configured origins do.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10, config: func(c *Config) { c.Origins = []string{"https://shop.example.com"} }})
	for _, c := range []struct {
		origin, site string
		status       int
	}{
		{"", "", 201}, {"", "same-origin", 201}, {"", "none", 201}, {"http://example.com", "same-origin", 201}, {"https://shop.example.com", "cross-site", 201}, {"https://shop.example.com", "same-site", 201},
		{"https://evil.example.net", "cross-site", 403}, {"null", "cross-site", 403}, {"https://shop.example.com.evil.example.net", "cross-site", 403}, {"https://evil.example.net", "", 403}, {"null", "", 403},
	} {
		header := map[string]string{}
		if c.origin != "" {
			header["Origin"] = c.origin
		}
		if c.site != "" {
			header["Sec-Fetch-Site"] = c.site
		}
		got := s.do(ask{method: "POST", path: s.path("/token"), user: "u", header: header}).is(c.status, "")
		trusted := c.origin == "https://shop.example.com"
		if allowed := got.header.Get("Access-Control-Allow-Origin"); trusted != (allowed == c.origin && c.origin != "") || !trusted && allowed != "" {
			t.Errorf("%+v: Access-Control-Allow-Origin %q", c, allowed)
		}
		if !slices.Contains(got.header["Vary"], "Origin") {
			t.Errorf("%+v: Vary %q", c, got.header["Vary"])
		}
	}
	preflight := map[string]string{"Origin": "https://shop.example.com", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
	got := s.do(ask{method: "OPTIONS", path: s.path("/reservations"), header: preflight}).is(204, "")
	if h := got.header; h.Get("Access-Control-Allow-Methods") != "OPTIONS, POST" || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "Content-Type") || h.Get("Access-Control-Allow-Credentials") != "true" {
		t.Errorf("the preflight is answered %v", h)
	}
	preflight["Origin"] = "https://evil.example.net"
	if h := s.do(ask{method: "OPTIONS", path: s.path("/reservations"), header: preflight}).is(204, "").header; h.Get("Access-Control-Allow-Origin")+h.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("another origin's preflight is answered %v", h)
	}
	s.do(ask{method: "OPTIONS", path: Prefix + "/a/b"}).is(404, "no_such_path")
}

// TestPanics: a fault inside is answered as one, and says nothing of itself outside.
func TestPanics(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	s.h = s.handler(func(c *Config) {
		c.Sales = failing{s.Engine, func() ([]engine.Result, error) { panic("secret words") }}
	})
	if got := s.get(Prefix+"/eleven/orders", "u").is(500, "internal"); strings.Contains(string(got.body), "secret") || !strings.Contains(s.log.String(), "secret words") {
		t.Errorf("%s, logged: %s", got.body, &s.log)
	}
	s.h = s.handler(func(c *Config) {
		c.Sales = failing{s.Engine, func() ([]engine.Result, error) { panic(http.ErrAbortHandler) }}
	})
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v", p)
		}
	}()
	s.h.ServeHTTP(httptest.NewRecorder(), s.request(ask{method: "GET", path: Prefix + "/eleven/orders", user: "u"}))
}

// TestSecretsStayInBodies: no token and no ticket comes into a log or a header, whatever goes wrong.
func TestSecretsStayInBodies(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	token := s.token("u")
	secrets := []string{token, s.post(s.reserved("u")+"/ticket", "u", "").is(201, "").text("ticket")}
	var said []string
	for _, user := range []string{"", "broken", "u", "v"} {
		for _, body := range []string{reserveBody(token, 1), reserveBody(token, 7), token, "{" + token} {
			got := s.post(s.path("/reservations"), user, body)
			said = append(said, fmt.Sprint(got.header), string(got.body))
		}
		for _, secret := range secrets {
			got := s.get(s.path("/reservations/none/events?ticket="+secret), user)
			said = append(said, fmt.Sprint(got.header), string(got.body))
		}
	}
	said = append(said, s.log.String())
	for _, text := range said {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s", text)
			}
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 1})
	for what, change := range map[string]func(*Config){
		"no sales": func(c *Config) { c.Sales = nil }, "no identity": func(c *Config) { c.Identity = nil },
		"an origin with a path": func(c *Config) { c.Origins = []string{"https://shop.example.com/"} }, "every origin": func(c *Config) { c.Origins = []string{"*"} },
		"null": func(c *Config) { c.Origins = []string{"null"} }, "streams": func(c *Config) { c.MaxStreams = -1 }, "life": func(c *Config) { c.StreamLife = -1 },
	} {
		cfg := Config{Sales: s.Engine, Identity: byHeader}
		change(&cfg)
		if _, err := New(cfg); flashsale.CodeOf(err) != flashsale.CodeInvalidArgument {
			t.Errorf("%s: %v", what, err)
		}
	}
}
