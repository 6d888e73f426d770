package policy

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestWhatAClientCanForge: what a client writes itself, by whatever way it comes, lets nobody pass, and gives nobody a limit
// of its own.
func TestWhatAClientCanForge(t *testing.T) {
	const head = `
version: 1
clients: {trusted_proxies: [10.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  device: {cookie: did}
  x: `
	files := fstest.MapFS{"key.txt": {Data: []byte("0123456789abcdef0123456789abcdef\n")}}
	for source, forgeable := range map[string]bool{
		"{header: X-A}": true, "{header: X-A, trusted: false}": true, "{header: X-A, trusted: true}": false,
		"{cookie: a}": true, "{cookie: a, signed: {key_file: key.txt}}": false,
		"{query: a}": true, "{json: a}": true, "{json: a, fold: true}": true,
		"{jwt: {key_file: key.txt, algorithms: [HS256], claim: sub}}":                                  false,
		"{cel: 'request.method + request.path + request.ip + string(request.time.getHours(\"UTC\"))'}": false,
		"{cel: 'request.headers[\"x-a\"]'}":                                                            true,
		"{cel: 'request.cookies[\"a\"]'}":                                                              true,
		"{cel: 'request.query[\"a\"]'}":                                                                true,
		"{cel: request.host}":                                                                          true,
		"{cel: string(request.bytes)}":                                                                 true,
		"{cel: 'has(request.headers.a) ? \"a\" : \"b\"'}":                                              true,
		"{cel: 'dim.user + dim.path'}":                                                                 false,
		"{cel: 'dim.device == \"\" ? \"a\" : \"b\"'}":                                                  true,
		"{cel: 'dim.host'}":                                                                            true,
		"{redis: {hash: 'h', field: f}}":                                                               false,
		"{redis: {hash: 'h:{user}', field: f}}":                                                        false,
		"{redis: {hash: 'h:{device}', field: f}}":                                                      true,
		"{redis: {hash: h, field: '{host}'}}":                                                          true,
		"{redis: {hash: 'h:{y}', field: f}}\n  y: {cel: dim.z}\n  z: {query: z}":                       true,
		"{redis: {hash: 'h:{y}', field: f}}\n  y: {cel: dim.z}\n  z: {redis: {hash: '{user}', field: f}}": false,
		"{http: {url: 'https://a.example.com/{user}/{path}'}}":                                            false,
		"{http: {url: 'https://a.example.com/{user}?d={device}'}}":                                        true,
	} {
		for place, rest := range map[string]string{
			"allow": "allow: [l]", "skip": "rules: [{name: r, skip: [l], limits: [token_bucket 1/s]}]", "L3": "degradation: {l3: {allow: [l]}}",
			"override by list":  "rules: [{name: r, limits: [token_bucket 1/s], overrides: {list: {l: [token_bucket 2/s]}}}]",
			"override by value": "rules: [{name: r, limits: [token_bucket 1/s], overrides: {x: {v: [token_bucket 2/s]}}}]",
		} {
			_, err := Parse("p", []byte(head+source+"\nlists: {l: {dimension: x, values: [v]}}\n"+rest), ParseConfig{Files: files})
			switch {
			case forgeable && (err == nil || !strings.Contains(err.Error(), "a client can forge")):
				t.Errorf("%s as %s: %v", source, place, err)
			case !forgeable && err != nil:
				t.Errorf("%s as %s: %v", source, place, err)
			}
		}
		if _, err := Parse("p", []byte(head+source+"\nlists: {l: {dimension: x, values: [v]}}\ndeny: [l]"), ParseConfig{Files: files}); err != nil {
			t.Errorf("%s as deny: %v", source, err)
		}
	}
}

// TestPathsWithParametersPassNowhere: the service may take /healthz;/../admin for another path than the one that is matched,
// so no list of paths lets it pass, nor one of what is made of the path.
func TestPathsWithParametersPassNowhere(t *testing.T) {
	e := mustEngine(t, preamble+`
  area: {cel: 'request.path.startsWith("/healthz") ? "health" : "shop"'}
  found: {redis: {hash: 'areas', field: '{area}'}}
lists:
  paths: {dimension: path, values: [/free, '/free;a']}
  areas: {dimension: area, values: [health]}
  founds: {dimension: found, values: [v]}
  closed: {dimension: path, values: [/closed]}
allow: [paths]
deny: [closed]
rules:
  - {name: area, match: {paths: ['/healthz/**', /area]}, skip: [areas], limits: [token_bucket 1/s]}
  - {name: found, match: {paths: ['/healthz/**']}, skip: [founds], limits: [token_bucket 1/s]}
  - {name: free, match: {paths: [/free]}, limits: [token_bucket 1/s]}
`, &recorder{}, EngineConfig{Lookups: (&asking{}).lookups()})
	for target, want := range map[string]string{
		"/free": "list:paths", "/free;a": "free", "/healthz": "", "/healthz;/x": "area found", "/healthz/x;y=1": "area found",
		"/closed": "list:closed", "/closed;a": "list:closed",
	} {
		clean, err := httpverdict.CleanPath(target)
		if err != nil {
			t.Fatal(err)
		}
		v := e.Decide(t.Context(), request("GET "+clean))
		got := v.Rule
		if len(v.Limits) > 0 {
			got = ""
			for _, l := range v.Limits {
				got += " " + l.Name
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}
