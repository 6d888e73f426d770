package salehttp

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/headgate-io/headgate/flashsale"
)

// broken posts a body of which the half comes, and then an error.
func (s *shop) broken(path string, err error) *reply {
	s.Helper()
	r := s.request(ask{method: "POST", path: path, user: "u", body: "{}"})
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"tok`), iotest.ErrReader(err))), 40
	return s.send(r, "{}")
}

// TestBodiesThatDoNotCome: one that stalls has come too late, and one that breaks off is none; nothing is left of either on the connection.
func TestBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	path := s.pending("u")
	before := s.view()
	for _, to := range []string{s.path("/token"), s.path("/reservations"), path + "/pay", path + "/cancel", path + "/ticket", Prefix + "/~/webhook"} {
		for _, stall := range []error{os.ErrDeadlineExceeded, fmt.Errorf("too slow: %w", os.ErrDeadlineExceeded)} {
			if got := s.broken(to, stall).is(408, "body_timeout"); got.header.Get("Retry-After") == "" || got.header.Get("Connection") != "close" {
				t.Errorf("%s: %v", to, got.header)
			}
		}
		s.broken(to, io.ErrUnexpectedEOF).is(400, "invalid_argument").names("body", "It breaks off.", "内容在传输中中断。")
		s.broken(to, &http.MaxBytesError{Limit: 10}).is(413, "body_too_large") // what stands before it takes less
	}
	if after := s.view(); after != before {
		t.Errorf("the stock was %+v, and is %+v", before, after)
	}
}

// names checks which field a problem names, with a text that is one of these.
func (r *reply) names(field string, texts ...string) *reply {
	r.t.Helper()
	list, _ := r.member("errors").([]any)
	if len(list) != 1 {
		r.t.Fatalf("it names no field: %s", r.body)
	}
	one := list[0].(map[string]any)
	for _, text := range texts {
		if one["field"] == field && one["message"] == text {
			return r
		}
	}
	r.t.Fatalf("it names %v, want %s: %q", one, field, texts)
	return r
}

// TestBadFieldsAreNamed: which field it is and what it takes, in the language of who asks, and nothing of what was sent.
func TestBadFieldsAreNamed(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	token := s.token("u")
	const (
		takesToken, takesTokenZh = "It takes the order token, as a text.", "应为订单令牌（字符串）。"
		takesCount, takesCountZh = "It takes how many units, as a whole number.", "应为购买数量（整数）。"
		unknown, unknownZh       = "There is no such field; there is token, quantity.", "没有该字段；可用字段：token、quantity。"
	)
	for _, c := range []struct{ body, field, en, zh string }{
		{`{}`, "token", "It is missing; it takes the order token, as a text.", "缺少该字段，应为订单令牌（字符串）。"},
		{`{"quantity":1}`, "token", "It is missing; it takes the order token, as a text.", "缺少该字段，应为订单令牌（字符串）。"},
		{`{"token":null,"quantity":1}`, "token", "It is missing; it takes the order token, as a text.", "缺少该字段，应为订单令牌（字符串）。"},
		{`{"token":"TOKEN"}`, "quantity", "It is missing; it takes how many units, as a whole number.", "缺少该字段，应为购买数量（整数）。"},
		{`{"token":"TOKEN","quantity":"1"}`, "quantity", takesCount, takesCountZh},
		{`{"token":"TOKEN","quantity":1.5}`, "quantity", takesCount, takesCountZh},
		{`{"token":"TOKEN","quantity":99999999999999999999}`, "quantity", takesCount, takesCountZh},
		{`{"token":7,"quantity":1}`, "token", takesToken, takesTokenZh},
		{`{"token":["TOKEN"],"quantity":1}`, "token", takesToken, takesTokenZh},
		{`{"token":"TOKEN","quantity":1,"price":0}`, "price", unknown, unknownZh},
		{`{"token":"TOKEN","quantity":1,"Quantity":0}`, "body", unknown, unknownZh},
		{`{"TOKEN":1}`, "body", unknown, unknownZh},
		{`{"` + strings.Repeat("x", 33) + `":1}`, "body", unknown, unknownZh},
		{`{"token":"TOKEN","token":"TOKEN","quantity":1}`, "token", "It stands there twice.", "该字段重复出现。"},
		{`{"token":"TOKEN","quantity":1}{}`, "body", "Something follows the JSON object.", "JSON 对象之后还有其他内容。"},
		{`{"token":"TOKEN","quantity":1`, "body", "It is not one whole JSON object.", "内容不是完整的 JSON 对象。"},
		{`{"token":"TOKEN" "quantity":1}`, "body", "It is not JSON.", "内容不是 JSON。"},
		{`["TOKEN",1]`, "body", "It must be a JSON object.", "内容必须是 JSON 对象。"},
		{"{\"token\":\"TOKEN\xff\",\"quantity\":1}", "body", "It is not UTF-8.", "内容不是 UTF-8 编码。"},
		{`{"token":` + strings.Repeat("[", 20) + `"TOKEN"` + strings.Repeat("]", 20) + `}`, "body", "It is nested too deep.", "内容嵌套过深。"},
	} {
		body := strings.ReplaceAll(c.body, "TOKEN", token)
		for lang, want := range map[string]string{"en": c.en, "zh": c.zh} {
			got := s.do(ask{method: "POST", path: s.path("/reservations"), user: "u", body: body, header: map[string]string{"Accept-Language": lang}})
			got.is(400, flashsale.CodeInvalidArgument).names(c.field, want)
			if strings.Contains(string(got.body), token[10:20]) {
				t.Errorf("the token is repeated: %s", got.body)
			}
		}
	}
	s.post(s.path("/token"), "u", `{"device":"x"}`).is(400, "").names("device", "There is no such field; this request takes none.")
	signed := s.webhookOf(`{"id":5}`).is(400, "invalid_argument")
	signed.names("body", "It is no message about a payment.")
}

// TestTwiceTheSame: what a request may say once, and says twice, is not taken by its first line.
func TestTwiceTheSame(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10, config: func(c *Config) { c.Origins = []string{"https://shop.example.com"} }})
	const own, evil = "https://shop.example.com", "https://evil.example.net"
	for _, c := range []struct {
		name  string
		lines []string
		code  flashsale.Code
		is    int
	}{
		{"Origin", []string{own, evil}, codeCrossOrigin, 403},
		{"Origin", []string{evil, own}, codeCrossOrigin, 403},
		{"Origin", []string{own, own}, codeCrossOrigin, 403},
		{"Origin", []string{"", evil}, codeCrossOrigin, 403},
		{"Origin", []string{own + ", " + evil}, codeCrossOrigin, 403},
		{"Sec-Fetch-Site", []string{"same-origin", "cross-site"}, codeCrossOrigin, 403},
		{"Content-Type", []string{"application/json", "text/plain"}, codeMediaType, 415},
		{"Content-Type", []string{"application/json", "application/json"}, codeMediaType, 415},
		{"Content-Type", []string{"", "application/json"}, codeMediaType, 415},
		{"Content-Encoding", []string{"", "gzip"}, codeMediaType, 415},
		{"Content-Encoding", []string{"identity"}, codeMediaType, 415},
	} {
		r := s.request(ask{method: "POST", path: s.path("/token"), user: "u", body: "{}"})
		r.Header[c.name] = c.lines
		got := s.send(r, "{}").is(c.is, c.code)
		if c.name == "Origin" && got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v may read the answer", c.lines)
		}
	}
	for _, signatures := range [][]string{{"t=1,v1=00", "t=1,v1=00"}} {
		r := s.request(ask{method: "POST", path: Prefix + "/~/webhook", body: "{}"})
		r.Header["Webhook-Signature"] = signatures
		s.send(r, "{}").is(401, "invalid_signature")
	}
	r := s.request(ask{method: "GET", path: s.path("/reservations/r/events?ticket=a&ticket=b")})
	s.send(r, "").is(403, "invalid_ticket")
}
