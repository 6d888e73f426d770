package httpverdict

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	overKey = []byte("0123456789abcdef")
	payMark = OverMark{
		Rules: []string{"pay-amount", "每日, 100%;x=1"}, ID: "2k7vq0d5n8x1c", At: time.Unix(1_767_225_600, 0),
		Method: "POST", Host: "shop.example", Path: "/pay",
	}
)

// marked is the request that was paid with, under a mark.
func marked(text string) *Request {
	return &Request{Method: "POST", Host: "shop.example", Path: "/pay", Header: http.Header{HeaderOver: {text}}}
}

func TestSignOver(t *testing.T) {
	got := SignOver(overKey, payMark)
	const want = "v1;at=1767225600;id=2k7vq0d5n8x1c;over=pay-amount,%E6%AF%8F%E6%97%A5%2C%20100%25%3Bx=1;sig="
	if !strings.HasPrefix(got, want) || len(got) != len(want)+43 {
		t.Errorf("got %s, want %s and 43 characters", got, want)
	}
	for text, rules := range map[string][]string{got: payMark.Rules, "": nil, "garbage": nil} {
		if v := (&Verdict{Over: text}); !reflect.DeepEqual(v.OverRules(), rules) {
			t.Errorf("%q: want the rules %q, got %q", text, rules, v.OverRules())
		}
	}
	if got := SignOver(overKey[:15], payMark); got != "" {
		t.Errorf("a key of 15 bytes signs %s", got)
	}
	many := payMark
	many.Rules = make([]string, 1000)
	for i := range many.Rules {
		many.Rules[i] = "rule-name"
	}
	text := SignOver(overKey, many)
	m, err := VerifyOver(overKey, marked(text), many.At, time.Second)
	if err != nil || len(m.Rules) != 307 || len(text) > maxOverText {
		t.Errorf("of 1000 names %d came back in %d bytes: %v", len(m.Rules), len(text), err)
	}
}

func TestVerifyOver(t *testing.T) {
	text := SignOver(overKey, payMark)
	at := payMark.At
	flipped := strings.Replace(text, "pay-amount", "pay-amounT", 1)
	for _, c := range []struct {
		name, key, method, host, path, text string
		now                                 time.Time
		want                                error
	}{
		{"good", "0123456789abcdef", "POST", "shop.example", "/pay", text, at, nil},
		{"a minute later", "0123456789abcdef", "POST", "shop.example", "/pay", text, at.Add(time.Minute), nil},
		{"clock behind", "0123456789abcdef", "POST", "shop.example", "/pay", text, at.Add(-time.Minute), nil},
		{"too old", "0123456789abcdef", "POST", "shop.example", "/pay", text, at.Add(61 * time.Second), ErrBadMark},
		{"from the future", "0123456789abcdef", "POST", "shop.example", "/pay", text, at.Add(-61 * time.Second), ErrBadMark},
		{"in no time", "0123456789abcdef", "POST", "shop.example", "/pay", text, time.Time{}.AddDate(-400, 0, 0), ErrBadMark},
		{"another key", "0123456789abcdeX", "POST", "shop.example", "/pay", text, at, ErrBadMark},
		{"short key", "0123456789abcde", "POST", "shop.example", "/pay", text, at, ErrBadMark},
		{"another method", "0123456789abcdef", "PUT", "shop.example", "/pay", text, at, ErrBadMark},
		{"another host", "0123456789abcdef", "POST", "shop.example.net", "/pay", text, at, ErrBadMark},
		{"another path", "0123456789abcdef", "POST", "shop.example", "/pay/", text, at, ErrBadMark},
		{"shifted between fields", "0123456789abcdef", "POSTs", "hop.example", "/pay", text, at, ErrBadMark},
		{"changed", "0123456789abcdef", "POST", "shop.example", "/pay", flipped, at, ErrBadMark},
		{"cut", "0123456789abcdef", "POST", "shop.example", "/pay", text[:len(text)-1], at, ErrBadMark},
		{"lengthened", "0123456789abcdef", "POST", "shop.example", "/pay", text + "A", at, ErrBadMark},
		{"no signature", "0123456789abcdef", "POST", "shop.example", "/pay", "v1;at=1767225600;id=x;over=a", at, ErrBadMark},
		{"empty", "0123456789abcdef", "POST", "shop.example", "/pay", "", at, ErrBadMark},
		{"huge", "0123456789abcdef", "POST", "shop.example", "/pay", strings.Repeat(text, 100), at, ErrBadMark},
	} {
		r := &Request{Method: c.method, Host: c.host, Path: c.path, Header: http.Header{HeaderOver: {c.text}}}
		m, err := VerifyOver([]byte(c.key), r, c.now, time.Minute)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if want := payMark; c.want == nil && !reflect.DeepEqual(m, want) {
			t.Errorf("%s: got %+v, want %+v", c.name, m, want)
		} else if c.want != nil && !reflect.DeepEqual(m, OverMark{}) {
			t.Errorf("%s: a mark that is not believed was returned: %+v", c.name, m)
		}
	}
}

func TestVerifyOverRequest(t *testing.T) {
	text := SignOver(overKey, payMark)
	r := httptest.NewRequest("POST", "http://Shop.Example:8080/x/../pay?sum=1", nil)
	if _, err := VerifyOverRequest(overKey, r, payMark.At, time.Minute); err != ErrNoMark {
		t.Errorf("unmarked: %v, want ErrNoMark", err)
	}
	r.Header.Add(HeaderOver, text)
	if m, err := VerifyOverRequest(overKey, r, payMark.At, time.Minute); err != nil || !reflect.DeepEqual(m, payMark) {
		t.Errorf("got %+v %v", m, err)
	}
	r.Header.Add(HeaderOver, text)
	if _, err := VerifyOverRequest(overKey, r, payMark.At, time.Minute); !errors.Is(err, ErrBadMark) {
		t.Errorf("twice: %v, want ErrBadMark", err)
	}
	r = httptest.NewRequest("POST", "http://shop.example/pay%00", nil)
	r.Header.Add(HeaderOver, text)
	if _, err := VerifyOverRequest(overKey, r, payMark.At, time.Minute); !errors.Is(err, ErrBadMark) {
		t.Errorf("a path that cannot be judged: %v, want ErrBadMark", err)
	}
}

func FuzzVerifyOver(f *testing.F) {
	f.Add(SignOver(overKey, payMark))
	f.Add("v1;at=;id=%zz;over=,;sig=")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := VerifyOver(overKey, marked(text), payMark.At, time.Minute)
		if err == nil && SignOver(overKey, m) != text {
			t.Errorf("%q is believed, and is not what its content is signed as", text)
		}
		// What is signed by whoever has the key is read without trouble, whatever it is.
		sig := SignOver(overKey, OverMark{Rules: []string{text}, ID: text, At: payMark.At, Method: "POST", Host: "shop.example", Path: "/pay"})
		if m, err := VerifyOver(overKey, marked(sig), payMark.At, time.Minute); err == nil && m.ID != text {
			t.Errorf("the id %q came back as %q", text, m.ID)
		}
	})
}
