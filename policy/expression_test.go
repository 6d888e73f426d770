package policy

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestExpressionsThatFail: a condition that fails is true, and a dimension that fails is missing: what a client does to make
// them fail takes no rule away.
func TestExpressionsThatFail(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
  number: {cel: 'string(int(request.headers["x-n"]))'}
  long: {cel: 'request.headers["x-n"] + request.headers["x-n"]'}
lists: {tens: {dimension: number, values: ['10']}}
deny: [tens]
rules:
  - {name: when, when: 'int(request.headers["x-n"]) > 3', limits: [token_bucket 1/s]}
  - {name: key, key: [number], limits: [token_bucket 1/s]}
  - {name: skip, key: [number], missing: skip, limits: [token_bucket 1/s]}
  - {name: long, key: [long], limits: [token_bucket 1/s]}
`, store, EngineConfig{})
	for n, want := range map[string]string{
		"7": "when/0 |key/0 number=1:7|skip/0 number=1:7|long/0 long=2:77", "2": "key/0 number=1:2|skip/0 number=1:2|long/0 long=2:22",
		"": "when/0 |key/0 number!|long/0 long!", "x": "when/0 |key/0 number!|long/0 long=2:xx",
		strings.Repeat("9", 5000): "when/0 |key/0 number!|long/0 long!",
	} {
		if e.Decide(t.Context(), request("GET /", "X-N", n)); strings.Join(store.keys(), "|") != want {
			t.Errorf("%.20s: got %.200q, want %s", n, store.keys(), want)
		}
	}
	if v := e.Decide(t.Context(), request("GET /", "X-N", "10")); v.Kind != httpverdict.Forbidden {
		t.Errorf("got %+v", v)
	}
}
