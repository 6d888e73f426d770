package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestNoSpellingEscapes: what a service may take for the same method or path is the same to lists, matches and keys, and
// what a list says is meant in whatever way it is written.
func TestNoSpellingEscapes(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
lists:
  admin: {dimension: path, values: [/admin/, /café, '/b//c/../d']}
  inner: {dimension: host, values: ['Inner.Example.com.:8443']}
  writes: {dimension: method, values: [delete, HEAD]}
  health: {dimension: path, values: [/healthz]}
deny: [admin, inner]
allow: [health]
rules:
  - {name: login, match: {methods: [POST], paths: [/login]}, key: [method, path], limits: [token_bucket 1/s]}
  - {name: rest, match: {methods: [GET, DELETE, PUT]}, key: [method, path], skip: [writes], limits: [token_bucket 1/s]}
`, store, EngineConfig{})
	for text, want := range map[string]string{
		"GET /admin":                "list:admin",
		"GET /admin/":               "list:admin",
		"GET /admin;a=1":            "list:admin",
		"GET /admin;a/;b":           "list:admin",
		"GET /caf%C3%A9":            "list:admin",
		"GET /b/d":                  "list:admin",
		"GET /healthz":              "list:health",
		"GET /healthz/":             "list:health",
		"PUT /healthz;x":            "method=3:PUT,path=8:/healthz", // may be another path to the service: not let pass
		"POST /login":               "method=4:POST,path=6:/login",
		"post /login":               "method=4:POST,path=6:/login",
		"PoSt /login;jsessionid=1/": "method=4:POST,path=6:/login",
		"put /a;1/b;2/":             "method=3:PUT,path=4:/a/b",
		"delete /a":                 "",
		"HEAD /a":                   "",
		"head /a":                   "",
	} {
		store.charges = nil
		method, target, _ := strings.Cut(text, " ")
		path, err := httpverdict.CleanPath(target)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if v := e.Decide(t.Context(), request(method+" "+path)); strings.HasPrefix(v.Rule, "list:") {
			got = v.Rule
		} else if len(store.charges) > 0 {
			got = store.charges[0][0].Key
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	r := request("GET /")
	r.Host = httpverdict.CleanHost("INNER.example.com:99")
	if v := e.Decide(t.Context(), r); v.Rule != "list:inner" {
		t.Errorf("host: got %+v", v)
	}
}

// TestShadowNeverActs: also where the store fails.
func TestShadowNeverActs(t *testing.T) {
	for _, code := range []headgate.Code{headgate.CodeUnavailable, headgate.CodeOverloaded, headgate.CodeTooManyCharges, headgate.CodeInvalidCost} {
		store := &recorder{err: &headgate.Error{Code: code}}
		e := mustEngine(t, preamble+`
rules:
  - {name: trial, mode: shadow, limits: [token_bucket 1/s]}
  - {name: real, match: {paths: [/real]}, limits: [token_bucket 1/s]}
`, store, EngineConfig{})
		if v := e.Decide(t.Context(), request("GET /")); !v.Allowed() {
			t.Errorf("%s: a shadow rule alone: %+v", code, v)
		}
		if v := e.Decide(t.Context(), request("GET /real")); v.Allowed() {
			t.Errorf("%s: a real rule too: %+v", code, v)
		}
	}
}

// TestMistakesCostNoProduct: for problems that are only counted nobody looks for the nearest word, so that a document of
// misspelt words beside 256 names does not cost their product.
func TestMistakesCostNoProduct(t *testing.T) {
	var r reporter
	for i := range 2 * maxKeptProblems {
		want := "site"
		if i >= maxKeptProblems {
			want = ""
		}
		if got := r.nearest("sit", []string{"login", "site"}); got != want {
			t.Fatalf("problem %d: got %q, want %q", i, got, want)
		}
		r.report(pos{1, 1}, "wrong")
	}
	var invalid *Error
	if !errors.As(r.err(), &invalid) || len(invalid.Problems) != maxProblems || invalid.More != 2*maxKeptProblems-maxProblems {
		t.Errorf("got %d problems and %d more", len(invalid.Problems), invalid.More)
	}
}

func TestAPipeIsNoListFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nlists: {a: {file: pipe}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), `file "pipe" is not a regular file`) {
		t.Errorf("got %v", err)
	}
}

func TestHasDimension(t *testing.T) {
	e := mustEngine(t, preamble+"rules: [{name: r, key: [ip/48], limits: [token_bucket 1/s]}]", &recorder{}, EngineConfig{})
	for name, want := range map[string]bool{"ip": true, "ip/48": true, "ip/32": false, "route": true, "user": true, "usr": false, "": false} {
		if got := e.HasDimension(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
