package policy

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestGivenDimensions: what a test or a replay says of a dimension counts before all that the request has.
func TestGivenDimensions(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
  both: {cel: 'dim.user + "," + request.ip + "," + dim["ip"]'}
rules: [{name: r, key: [ip, ip/48, user, both, host], limits: [token_bucket 1/s]}]
`, store, EngineConfig{})
	for _, c := range []struct {
		given map[string]string
		want  string
	}{
		{nil, "ip=9:192.0.2.1,ip/48=9:192.0.2.1,user=1:u,both=21:u,192.0.2.1,192.0.2.1,host=16:shop.example.com"},
		{map[string]string{"ip": "2001:db8:1:2::3"}, "ip=14:2001:db8:1:2::,ip/48=12:2001:db8:1::,user=1:u,both=32:u,2001:db8:1:2::3,2001:db8:1:2::,host=16:shop.example.com"},
		{map[string]string{"ip": "::ffff:192.0.2.7"}, "ip=9:192.0.2.7,ip/48=9:192.0.2.7,user=1:u,both=21:u,192.0.2.7,192.0.2.7,host=16:shop.example.com"},
		{map[string]string{"ip": "junk", "host": ""}, "ip!,ip/48!,user=1:u,both=3:u,,,host!"},
		{map[string]string{"ip/48": "x", "user": "", "host": "a"}, "ip=9:192.0.2.1,ip/48=1:x,user!,both=20:,192.0.2.1,192.0.2.1,host=1:a"},
		{map[string]string{"user": "v", "both": "b"}, "ip=9:192.0.2.1,ip/48=9:192.0.2.1,user=1:v,both=1:b,host=16:shop.example.com"},
	} {
		r := from("192.0.2.1", "GET /", "X-User-Id", "u")
		r.Dimensions = c.given
		e.Decide(t.Context(), r)
		if got := strings.TrimPrefix(store.keys()[0], "r/0 "); got != c.want {
			t.Errorf("%v: got %s, want %s", c.given, got, c.want)
		}
	}
}

// TestBytesBeforeAndAfter: the length of a body is what was announced, and what was read as soon as that is known.
func TestBytesBeforeAndAfter(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
rules:
  - {name: cost, limits: [token_bucket 1/s], cost: 1 + request.bytes}
  - {name: after, limits: [token_bucket 1/s], cost: 1 + request.bytes + response.bytes}
`, store, EngineConfig{})
	r := request("POST /")
	r.ContentLength = 3
	v := e.Decide(t.Context(), r)
	if got := store.settled(); got != "cost/0 pay ++++, after/0 check +" {
		t.Errorf("got %s", got)
	}
	v.Finish(t.Context(), httpverdict.Result{Status: 200, RequestBytes: 5, Bytes: 1})
	if got := store.settled(); got != "after/0 settle +++++++" {
		t.Errorf("got %s", got)
	}
}
