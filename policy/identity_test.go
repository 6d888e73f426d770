package policy

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const identities = `
version: 1
clients: {trusted_proxies: [10.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  device: {cookie: did}
  body: {json: user}
  x: `

// TestIdentity: who somebody is can be said by what vouches for it alone, and a device by anything that every request has.
func TestIdentity(t *testing.T) {
	files := fstest.MapFS{"key.txt": {Data: []byte("0123456789abcdef0123456789abcdef\n")}}
	for source, want := range map[string]struct{ identity, device string }{
		"{header: X-A}":                                        {`"x" does not do: a client can forge it`, ""},
		"{header: X-A, trusted: true}":                         {},
		"{cookie: a}":                                          {"a client can forge it", ""},
		"{cookie: a, signed: {key_file: key.txt}}":             {},
		"{cookie: a, signed: {key_file: key.txt}, fold: true}": {},
		"{query: a}":                                           {"a client can forge it", ""},
		"{json: a}":                                            {"read from the body", "read from the body"},
		"{jwt: {key_file: key.txt, algorithms: [HS256], claim: sub}}": {},
		"{cel: 'dim.user'}":                                              {"an expression has a value", ""},
		"{cel: 'dim.user + dim.device'}":                                 {`does not do, by way of "device": a client can forge it`, ""},
		"{cel: 'dim.user + dim.body'}":                                   {`does not do, by way of "body": it is read from the body`, `by way of "body"`},
		"{cel: 'request.ip'}":                                            {"an expression has a value", ""},
		"{redis: {hash: h, field: f}}":                                   {"vouches for nobody", ""},
		"{redis: {hash: 'h:{user}', field: f}}":                          {},
		"{redis: {hash: 'h:{user}', field: f}, default: none}":           {"its default makes one of all", ""},
		"{http: {url: 'https://a.example.com/{user}/{path}'}}":           {"by what it asks for", ""},
		"{redis: {hash: 'h:{y}', field: f}}\n  y: {cel: dim.device}":     {`by way of "device"`, ""},
		"{redis: {hash: 'h:{y}', field: f}}\n  y: {cel: dim.user + '1'}": {`by way of "y": an expression`, ""},
	} {
		p, err := Parse("p", []byte(identities+source), ParseConfig{Files: files})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		for what, c := range map[string]struct {
			got  error
			want string
		}{"identity": {p.CheckIdentity("x"), want.identity}, "device": {p.CheckDevice("x"), want.device}} {
			if (c.got == nil) != (c.want == "") || c.got != nil && !strings.Contains(c.got.Error(), c.want) {
				t.Errorf("%s as %s: %v, want %q", source, what, c.got, c.want)
			}
		}
	}
	p := mustParse(t, identities+"{query: a}")
	for name, want := range map[string]string{
		"": "not defined", "nobody": `dimension "nobody" is not defined; there are ip, route, method, path, host, user, device, body, x`,
		"ip": "vouches for nobody", "route": "by what it asks for", "method": "by what it asks for", "path": "by what it asks for", "host": "a client can forge it",
	} {
		if err := p.CheckIdentity(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for name, want := range map[string]string{"nobody": "not defined", "route": "only within a rule", "ip": "", "device": ""} {
		if err := p.CheckDevice(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("device %s: %v, want %q", name, err, want)
		}
	}
}

// TestValue: a value is the one that rules count by, from those who are believed alone.
func TestValue(t *testing.T) {
	e := mustEngine(t, identities+"{cel: 'dim.user + \"!\"'}", &recorder{}, EngineConfig{})
	request := func(peer string) *httpverdict.Request {
		return &httpverdict.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr(peer), Header: http.Header{"X-User-Id": {" ann "}, "Cookie": {"did=d1"}}}
	}
	for _, c := range []struct {
		peer, name, want string
		ok               bool
	}{
		{"10.0.0.1", "user", "ann", true}, {"10.0.0.1", "x", "ann!", true}, {"10.0.0.1", "device", "d1", true}, {"192.0.2.1", "ip", "192.0.2.1", true},
		{"192.0.2.1", "user", "", false}, {"192.0.2.1", "x", "!", true}, {"192.0.2.1", "route", "", false}, {"192.0.2.1", "nobody", "", false},
	} {
		if got, ok := e.Value(t.Context(), request(c.peer), c.name); got != c.want || ok != c.ok {
			t.Errorf("%s from %s: %q %t, want %q %t", c.name, c.peer, got, ok, c.want, c.ok)
		}
	}
}
