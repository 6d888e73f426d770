package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// TestMistakesCostNoProduct: a document of misspelt words beside a document of names.
func TestMistakesCostNoProduct(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("version: 1\nlists:\n")
	for i := range maxLists {
		fmt.Fprintf(&doc, "  %s%03d: {cidrs: [10.0.0.0/8]}\n", strings.Repeat("a", 60), i)
	}
	doc.WriteString("rules:\n")
	line := "    skip: [" + strings.Repeat(strings.Repeat("b", 60)+",", 200) + "]\n"
	for i := 0; doc.Len() < MaxDocument-2*len(line); i++ {
		fmt.Fprintf(&doc, "  - name: r%d\n    limits: [token_bucket 1/s]\n%s", i, line)
	}
	start := time.Now()
	_, err := Parse("policy", []byte(doc.String()), ParseConfig{})
	var invalid *Error
	if !errors.As(err, &invalid) || invalid.More < 5000 {
		t.Fatalf("got %.200v", err)
	}
	if took := time.Since(start); took > 10*time.Second { // 0.5 s alone on the machine; 50 s with a look at every word, under -race
		t.Errorf("took %s", took)
	}
}

func TestAPipeIsNoListFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nlists: {a: {file: pipe}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), `file "pipe" is not a regular file`) {
		t.Errorf("got %v", err)
	}
}
