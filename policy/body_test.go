package policy

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const phones = preamble + `
  mobile: {json: user.phone, fold: true}
rules:
  - {name: shared, match: {paths: [/shared]}, key: [mobile], limits: [token_bucket 1/s]}
  - {name: deny, match: {paths: [/deny]}, key: [mobile], missing: deny, limits: [token_bucket 1/s]}
  - {name: none, match: {paths: [/none]}, limits: [token_bucket 1/s]}
`

// TestBodies: what cannot be read of a body is missing, and a request without the dimension follows the rule's missing: it is
// never unlimited.
func TestBodies(t *testing.T) {
	good := `{"user": {"phone": " 138 "}}`
	for _, c := range []struct {
		name, body string
		header     []string
		want       string // "" for missing
	}{
		{"good", good, nil, "138"},
		{"a number", `{"user": {"phone": 138}}`, nil, "138"},
		{"spelt with escapes", `{"user": {"phon\u0065": "\u0041b"}}`, nil, "ab"},
		{"as large as may be", good + strings.Repeat(" ", maxBody-len(good)), nil, "138"},
		{"larger", good + strings.Repeat(" ", maxBody-len(good)+1), nil, ""},
		{"empty", "", nil, ""},
		{"no JSON", "phone=138", nil, ""},
		{"cut", good[:len(good)-1], nil, ""},
		{"two documents", good + good, nil, ""},
		{"the key twice", `{"user": {"phone": "138"}, "user": {"phone": "139"}}`, nil, ""},
		{"another key twice", `{"user": {"phone": "138"}, "a": 1, "a": 2}`, nil, ""},
		{"the key in another case as well", `{"user": {"phone": "138", "Phone": "139"}}`, nil, ""},
		{"deep", `{"user": {"phone": "138"}, "a": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", nil, ""},
		{"an object", `{"user": {"phone": {}}}`, nil, ""},
		{"null", `{"user": {"phone": null}}`, nil, ""},
		{"not UTF-8", "{\"user\": {\"phone\": \"138\xff\"}}", nil, ""},
		{"compressed", good, []string{"Content-Encoding", "gzip"}, ""},
		{"compressed twice", good, []string{"Content-Encoding", "identity, gzip"}, ""},
		{"compressed in a second line", good, []string{"Content-Encoding", "identity", "Content-Encoding", "br"}, ""},
		{"not compressed", good, []string{"Content-Encoding", "Identity"}, "138"},
	} {
		for _, length := range []int64{int64(len(c.body)), -1} { // -1: in chunks
			store := &recorder{}
			e := mustEngine(t, phones, store, EngineConfig{})
			ask := func(path string) *httpverdict.Verdict {
				r := request("POST "+path, c.header...)
				r.ContentLength, r.Body = length, httpverdict.NewPeekedBody(io.NopCloser(strings.NewReader(c.body)), length, nil)
				return e.Decide(t.Context(), r)
			}
			want := "shared/0 mobile!"
			if c.want != "" {
				want = fmt.Sprintf("shared/0 mobile=%d:%s", len(c.want), c.want)
			}
			if v := ask("/shared"); !v.Allowed() || store.keys()[0] != want {
				t.Errorf("%s, length %d: got %q, want %q", c.name, length, store.keys(), want)
			}
			if v := ask("/deny"); v.Allowed() != (c.want != "") || !v.Allowed() && v.Code != "dimension_missing" {
				t.Errorf("%s, length %d: got %+v", c.name, length, v)
			}
		}
	}
}

// peeks counts the looks at a body that fails.
type peeks struct{ n int }

func (p *peeks) Peek(context.Context, int) ([]byte, error) {
	p.n++
	return nil, errors.New("broken")
}

// TestBodiesAreLookedAtOnce: for as many rules as need it, and for none that does not.
func TestBodiesAreLookedAtOnce(t *testing.T) {
	e := mustEngine(t, phones+`
  - {name: again, match: {paths: [/shared]}, key: [mobile, ip], when: dim.mobile != "1", count_when: dim.mobile != "", limits: [token_bucket 1/s]}
`, &recorder{}, EngineConfig{})
	for path, want := range map[string]int{"/shared": 1, "/none": 0, "/other": 0} {
		p := &peeks{}
		r := request("POST " + path)
		r.ContentLength, r.Body = 5, p
		v := e.Decide(t.Context(), r)
		v.Finish(t.Context(), httpverdict.Result{Status: 200})
		if p.n != want {
			t.Errorf("%s: %d looks", path, p.n)
		}
	}
}

// TestSlowBodies: a body that does not come is waited for one second, in all.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{}
		e := mustEngine(t, phones, store, EngineConfig{})
		reader, writer := io.Pipe()
		defer writer.Close()
		r := request("POST /shared")
		r.ContentLength, r.Body = -1, httpverdict.NewPeekedBody(reader, -1, nil)
		go func() { _, _ = writer.Write([]byte(`{"user": `)) }()
		start := time.Now()
		if v := e.Decide(t.Context(), r); !v.Allowed() || store.keys()[0] != "shared/0 mobile!" || time.Since(start) != bodyTime {
			t.Errorf("after %s: got %q, %+v", time.Since(start), store.keys(), v)
		}
	})
}

// hs256 signs a token.
func hs256(key, head, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TestTokens: a token that is not good is missing, and a good one is somebody also for lists that let pass.
func TestTokens(t *testing.T) {
	const key, doc = "0123456789abcdef0123456789abcdef", `
version: 1
dimensions: {user: {jwt: {key_file: key.txt, algorithms: [HS256], claim: sub}}}
lists: {staff: {dimension: user, values: [boss]}}
allow: [staff]
rules: [{name: r, key: [user], limits: [token_bucket 1/s]}]
`
	p, err := Parse("p", []byte(doc), ParseConfig{Files: fstest.MapFS{"key.txt": {Data: []byte(key + "\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	store := &recorder{}
	e, err := NewEngine(p, store, EngineConfig{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"alg":"HS256"}`
	exp := func(d time.Duration) string { return fmt.Sprintf(`{"sub":"boss","exp":%d}`, noon.Add(d).Unix()) }
	unsigned := hs256(key, `{"alg":"none"}`, exp(time.Hour))
	for _, c := range []struct {
		name string
		auth []string
		want string
	}{
		{"good", []string{"Bearer " + hs256(key, head, exp(time.Hour))}, "list:staff"},
		{"good, and another user", []string{"bearer " + hs256(key, head, `{"sub":"u"}`)}, "r user=1:u"},
		{"expired", []string{"Bearer " + hs256(key, head, exp(-time.Minute))}, "r user!"},
		{"not yet", []string{"Bearer " + hs256(key, head, fmt.Sprintf(`{"sub":"boss","nbf":%d}`, noon.Add(time.Hour).Unix()))}, "r user!"},
		{"another key", []string{"Bearer " + hs256(strings.ToUpper(key), head, exp(time.Hour))}, "r user!"},
		{"no signature", []string{"Bearer " + unsigned[:strings.LastIndexByte(unsigned, '.')+1]}, "r user!"},
		{"none with a signature", []string{"Bearer " + unsigned}, "r user!"},
		{"another algorithm", []string{"Bearer " + hs256(key, `{"alg":"HS512"}`, exp(time.Hour))}, "r user!"},
		{"without Bearer", []string{hs256(key, head, exp(time.Hour))}, "r user!"},
		{"two", []string{"Bearer " + hs256(key, head, exp(time.Hour)), "Bearer x"}, "r user!"},
		{"the claim twice", []string{"Bearer " + hs256(key, head, `{"sub":"u","sub":"boss"}`)}, "r user!"},
		{"none", nil, "r user!"},
	} {
		r := request("GET /")
		r.Header["Authorization"] = c.auth
		v := e.Decide(t.Context(), r)
		got := v.Rule
		if got == "r" {
			got += " " + strings.TrimPrefix(store.keys()[0], "r/0 ")
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
