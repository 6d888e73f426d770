package salehttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/jsonbody"
)

// TestHostileBodies: none of them is understood, and none of them changes anything.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10, limit: 2})
	token := s.token("u")
	before := s.view()
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	for _, body := range []string{
		" ", "null", "[]", `"x"`, "1", "{", "}", "{}{}", "\x00", "\xef\xbb\xbf" + reserveBody(token, 1), reserveBody(token, 1) + "x", reserveBody(token, 1) + reserveBody(token, 1),
		`{"token":"` + token + `"}`, `{"quantity":1}`, `{"token":"` + token + `","quantity":1,"quantity":1}`, `{"token":"` + token + `","token":"x","quantity":1}`,
		`{"Token":"` + token + `","quantity":1}`, `{"token":"` + token + `","quantity":1,"price":0}`, `{"token":"` + token + `","quantity":1,"":0}`,
		`{"token":null,"quantity":1}`, `{"token":"` + token + `","quantity":null}`, `{"token":"` + token + `","quantity":"1"}`, `{"token":"` + token + `","quantity":1.5}`,
		`{"token":"` + token + `","quantity":1e0}`, `{"token":"` + token + `","quantity":1.0}`, `{"token":"` + token + `","quantity":9223372036854775808}`, `{"token":"` + token + `","quantity":-}`,
		`{"token":["` + token + `"],"quantity":1}`, `{"token":{},"quantity":1}`, `{"token":` + deep[:3000] + `,"quantity":1}`, `{"token":"` + token + "\xff" + `","quantity":1}`,
		`{"token":"` + token + `","quantity":true}`, `{"token":"` + token + `","quantity":1,}`, `{'token':'x','quantity':1}`, `{"token":"` + token + `" "quantity":1}`,
	} {
		s.post(s.path("/reservations"), "u", body).is(400, "invalid_argument")
	}
	for _, quantity := range []int64{0, -1, 3, 1 << 62, -1 << 63} {
		s.post(s.path("/reservations"), "u", reserveBody(token, quantity)).is(422, "invalid_quantity")
	}
	for _, bad := range []string{"", ".", "..", token + "x", token[1:], strings.ToUpper(token), strings.Repeat("x", 3000), "\u0000", "\ufffd"} {
		s.post(s.path("/reservations"), "u", reserveBody(bad, 1)).is(403, "invalid_token")
	}
	if after := s.view(); after != before {
		t.Errorf("the stock was %+v, and is %+v", before, after)
	}
	s.post(s.path("/reservations"), "u", reserveBody(token, 1)).is(202, "")
}

func TestBodiesOfOtherTypes(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/json; charset=gbk", "application/jsonp", "application/problem+json", ";", "application/json, text/plain"} {
		for _, path := range []string{"/token", "/reservations"} {
			s.do(ask{method: "POST", path: s.path(path), user: "u", body: "{}", header: map[string]string{"Content-Type": kind}}).is(415, "unsupported_media_type")
		}
	}
	s.do(ask{method: "POST", path: s.path("/token"), user: "u", body: "{}", header: map[string]string{"Content-Encoding": "gzip"}}).is(415, "unsupported_media_type")
	s.do(ask{method: "POST", path: s.path("/token"), user: "u", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}).is(415, "unsupported_media_type")
	for _, kind := range []string{"application/json", "application/json;charset=UTF-8", "Application/JSON; charset=\"utf-8\""} {
		s.do(ask{method: "POST", path: s.path("/token"), user: "u", body: "{}", header: map[string]string{"Content-Type": kind}}).is(201, "")
	}
	s.post(s.path("/token"), "u", `{"device":"x"}`).is(400, "invalid_argument")
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("a body that is announced as too long is read")
	return 0, io.EOF
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 10})
	path := s.pending("u")
	for _, to := range []string{s.path("/token"), s.path("/reservations"), path + "/pay", path + "/cancel", path + "/ticket", Prefix + "/~/webhook"} {
		r := s.request(ask{method: "POST", path: to, user: "u", body: "x"})
		r.Body, r.ContentLength = io.NopCloser(unread{t}), 10<<20
		if got := s.send(r, "").is(413, "body_too_large"); got.header.Get("Connection") != "close" {
			t.Errorf("%s: the connection stays, and the body must be read for that", to)
		}
		body := &counted{from: strings.NewReader(strings.Repeat(" ", 10<<20))}
		r = s.request(ask{method: "POST", path: to, user: "u", body: "x"})
		r.Body, r.ContentLength = io.NopCloser(body), -1
		s.send(r, "").is(413, "body_too_large")
		if body.n > 2*maxWebhook {
			t.Errorf("%s: %d bytes are read", to, body.n)
		}
	}
	s.post(s.path("/token"), "u", "{"+strings.Repeat(" ", maxBody-2)+"}").is(201, "")
}

type counted struct {
	from io.Reader
	n    int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += n
	return n, err
}

func FuzzDecodeObject(f *testing.F) {
	for _, body := range []string{`{"token":"t","quantity":1}`, `{}`, `{"token":"t","token":"t"}`, `{"quantity":1e3}`, `[`, `{"a":{}}`, "{\"token\":\"\xff\"}"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var asked askBody
		if bad := jsonbody.Decode(body, &asked); bad != nil {
			if field, why := whatIsWrong(bad, []string{"token", "quantity"}); field == "" || why.en == "" || why.zh == "" || why.en == why.zh {
				t.Errorf("%q: %s: %v", body, field, why)
			}
			return
		}
		token, quantity := asked.Token, asked.Quantity
		// What is taken is an object that has these two fields at most, each once, and means the same to the standard library.
		var plain map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&plain); err != nil {
			t.Fatalf("%q is taken, and is no object: %v", body, err)
		}
		want := 0
		if token != nil {
			want++
			if plain["token"] != *token {
				t.Errorf("%q: the token is %q", body, *token)
			}
		}
		if quantity != nil {
			want++
			if n, _ := plain["quantity"].(json.Number); n.String() != fmt.Sprint(*quantity) && n.String() != "-0" {
				t.Errorf("%q: the quantity is %d", body, *quantity)
			}
		}
		maps.DeleteFunc(plain, func(name string, value any) bool { return value == nil && (name == "token" || name == "quantity") })
		if len(plain) != want {
			t.Errorf("%q is taken as %d fields", body, want)
		}
	})
}
