package policy

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

var update = flag.Bool("update", false, "write the messages beside the fixtures; review them")

// TestBadPolicies holds every kind of mistake, one file each, against the message beside it.
func TestBadPolicies(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := Load(file)
			var problems *Error
			if !errors.As(err, &problems) || p != nil {
				t.Fatalf("got %v, %v", p, err)
			}
			got := strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%v\ngot:\n%swant:\n%s", err, got, want)
			}
		})
	}
}

func TestGoodPolicies(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, file := range append(files, "../examples/shop/policy.yaml") {
		if _, err := Load(file); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestListing(t *testing.T) {
	p, err := Load("testdata/full.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := p.Rules()
	if len(rules) != 4 || p.Name() != "testdata/full.good.yaml" {
		t.Fatalf("%d rules of %s", len(rules), p.Name())
	}
	login := rules[1]
	if len(login.Limits) != 2 || login.Limits[1].String() != "token_bucket 1/s" {
		t.Errorf("limits %v", login.Limits)
	}
	if login.At("limits") != (Position{26, 5}) || login.At("when") != (Position{21, 5}) {
		t.Errorf("limits at %v, the rule at %v", login.At("limits"), login.At("when"))
	}
	login.Limits, login.positions = nil, nil
	want := Rule{Name: "login", Mode: Enforce, Methods: []string{"POST"}, Hosts: []string{"shop.example.com", "*.example.net", "2001:db8::1"},
		Paths: []string{"/Login", "/api/{version}/login", "/x/**", "/"}, Key: []string{"ip/48", "user | app | ip", "route"},
		IgnoreCase: true, KeyDimensions: [][]string{{"ip/48"}, {"user", "app", "ip"}, {"route"}}, Missing: "deny", Skip: []string{"partners", "office"},
		Lockout: login.Lockout, MinCost: 1, Action: Reject, Store: Strict, OnError: OnErrorLocal, Layer: LayerUser, Priority: Normal}
	if !reflect.DeepEqual(login, want) {
		t.Errorf("got  %+v\nwant %+v", login, want)
	}
	if rules[3].Mode != Off || len(p.rules) != 3 {
		t.Errorf("a rule that is off: %+v, %d in force", rules[3], len(p.rules))
	}
	if got := p.TrustedHeaders(); !reflect.DeepEqual(got, []string{"X-User-Id"}) {
		t.Errorf("trusted headers %v", got)
	}
	needs := []httpverdict.Need{{Kind: httpverdict.NeedRelease, Rule: "trial", Field: "limits"}}
	if got := p.Needs(); !reflect.DeepEqual(got, needs) {
		t.Errorf("needs %v", got)
	}
	style := httpverdict.ResponseStyle{Style: "envelope", IETF: true, XRateLimit: true, RetryJitter: 0.125}
	if !reflect.DeepEqual(p.response, style) {
		t.Errorf("response %+v", p.response)
	}
}

func TestNeedsOfQueues(t *testing.T) {
	for limit, want := range map[string]int{
		"leaky_bucket 5/s capacity=3": 1, "leaky_bucket 5/s max_wait=1s": 1, "leaky_bucket 5/s max_wait=0s": 0,
		"token_bucket 1/s": 0, "concurrency 1 ttl=1s": 1,
	} {
		p, err := Parse("p", []byte("version: 1\nrules: [{name: a, limits: [token_bucket 1/s, "+limit+"]}]"), ParseConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Needs(); len(got) != want {
			t.Errorf("%s needs %v", limit, got)
		}
	}
}

func TestOnlyAFileNamesFiles(t *testing.T) {
	_, err := Parse("remote", []byte("version: 1\nlists: {a: {file: scanners.txt}}"), ParseConfig{})
	if want := "remote:2:19: list \"a\": file: only a policy that is a file itself may name files"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestLinksOutOfTheFolderAreNotFollowed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("10.0.0.0/8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "list.txt")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nlists: {a: {file: list.txt}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), `file "list.txt" cannot be opened`) {
		t.Errorf("got %v", err)
	}
}

func TestLoadOfNoFile(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, MaxDocument+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"testdata/absent.yaml": "policy testdata/absent.yaml cannot be opened: no such file or directory",
		"testdata":             "policy testdata is not a file",
		large:                  "policy " + large + " is larger than 4194304 bytes",
	} {
		if _, err := Load(file); err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if _, err := Parse("p", make([]byte, MaxDocument+1), ParseConfig{}); err == nil {
		t.Error("a document that is too large parses")
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(everything))
	none := func(context.Context, string, string) (string, bool, error) { return "", false, nil }
	cfg := EngineConfig{MarkKey: []byte("sixteen bytes ok"), Lookups: Lookups{HashField: none, HTTPGet: none}}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("fuzz", data, ParseConfig{})
		if (p == nil) == (err == nil) {
			t.Fatalf("got %v, %v", p, err)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 || len(e.Problems) > maxProblems {
				t.Fatalf("not an Error: %v", err)
			}
			return
		}
		e, err := NewEngine(p, open{}, cfg)
		if err != nil {
			return
		}
		if v := e.Decide(t.Context(), benchRequest()); v == nil || v.ID == "" {
			t.Fatalf("verdict %+v", v)
		}
	})
}

// TestWarnings: what is read and does nothing yet is said, once for all rules that have it.
func TestWarnings(t *testing.T) {
	p := mustParse(t, `
version: 1
rules:
  - {name: a, limits: [token_bucket 1/s]}
  - {name: b, limits: [token_bucket 1/s], priority: critical, on_deny: {action: challenge}}
  - {name: c, limits: [token_bucket 1/s], priority: normal, layer: user, store: leased, on_deny: {action: queue}}
  - {name: d, key: [ip], limits: [token_bucket 1/s], layer: user, store: leased, lockout: {after: 1, for: 1m}}
degradation: {l2: {automatic: true}}
overload: {action: pass}
`)
	var got []string
	for _, w := range p.Warnings() {
		got = append(got, w.String())
	}
	want := []string{
		`policy:5:81: rule "b": on_deny: action challenge is not there yet and acts as reject`,
		`policy:6:107: rule "c": on_deny: action queue is not there yet and acts as reject`,
		`policy:7:74: rule "d": store: leased acts as strict beside a lockout, which counts denials in the store itself`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
