package policy_test

import (
	"context"
	"crypto/rand"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/testlang"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the blocks of the documentation in a language.
func blocks(t *testing.T, language string, least int) []string {
	t.Helper()
	parts := strings.Split(document(t), "\n```"+language+"\n")[1:]
	if len(parts) < least {
		t.Fatalf("only %d blocks of %s", len(parts), language)
	}
	for i := range parts {
		parts[i], _, _ = strings.Cut(parts[i], "\n```")
	}
	return parts
}

// documentFiles are what the policies of the documentation name.
func documentFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	keys, err := os.ReadFile("../examples/policies/complete/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"scanners.txt": file("198.51.100.0/24\n"), "blocked-users.txt": file("u-1\n"), "keys.json": {Data: keys},
		"cookie-keys.txt": file(cookieKey + "\n"), "jwt-secret.txt": file("thirty-two bytes of a good secret"),
		"maintenance.json": file(`{"items": []}`), "denied.html": file("<html lang={{.Lang}}><h1>{{.Title}}</h1><p>{{.Message}}"),
	}
}

// TestDocumentation loads every yaml block of the documentation.
func TestDocumentation(t *testing.T) {
	files := documentFiles(t)
	for _, block := range blocks(t, "yaml", 30) {
		if !strings.Contains(block, "version:") {
			block = "version: 1\n" + block
		}
		if _, err := policy.Parse("docs", []byte(block), policy.ParseConfig{Files: files}); err != nil {
			t.Errorf("%v\nin\n%s", err, block)
		}
	}
}

// TestDocumentedBehaviour runs every test block of the documentation.
func TestDocumentedBehaviour(t *testing.T) {
	files := documentFiles(t)
	compile := func(_ context.Context, source testlang.PolicySource) (httpverdict.Decider, error) {
		p, err := policy.Parse("docs", source.Text, policy.ParseConfig{Files: files})
		if err != nil {
			return nil, err
		}
		nothing := func(context.Context, string, string) (string, bool, error) { return "", false, nil }
		return policy.NewEngine(p, source.Limiter, policy.EngineConfig{
			MarkKey: []byte(rand.Text()), Lookups: policy.Lookups{HashField: nothing, HTTPGet: nothing},
		})
	}
	for _, block := range blocks(t, "test", 5) {
		runTests(t, "docs", []byte(block+"\n"), compile)
	}
}

// The signed cookie of the documentation.
const (
	cookieKey  = "an-example-key-never-use-it"
	cookieText = "d-17.3kHECHSuNOgS_6V8MZLZRWy9NJ1gcdziVHwc7B969VI"
)

// TestDocumentedCookie: the example of a signed cookie is a good one.
func TestDocumentedCookie(t *testing.T) {
	text := document(t)
	if !strings.Contains(text, cookieKey) || !strings.Contains(text, cookieText) {
		t.Errorf("the documentation has another example than the key %q and the cookie %q", cookieKey, cookieText)
	}
	const doc = "version: 1\ndimensions: {device: {cookie: did, signed: {key_file: cookie-keys.txt}}}\n" +
		"lists: {known: {dimension: device, values: [d-17]}}\ndeny: [known]\n"
	p, err := policy.Parse("docs", []byte(doc), policy.ParseConfig{Files: documentFiles(t)})
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	e, err := policy.NewEngine(p, store, policy.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r := &httpverdict.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"), Header: map[string][]string{"Cookie": {"did=" + cookieText}}}
	if v := e.Decide(t.Context(), r); v.Code != "list_denied" {
		t.Errorf("the cookie is not believed: %+v", v)
	}
}

// TestDocumentedMark: the example of a mark is a good one.
func TestDocumentedMark(t *testing.T) {
	mark := httpverdict.SignOver([]byte(cookieKey), httpverdict.OverMark{
		Rules: []string{"amount"}, ID: "2k7vq0d5n8x1c", At: time.Unix(1767225600, 0), Method: "POST", Host: "shop.example.com", Path: "/pay",
	})
	if !strings.Contains(document(t), "\nHeadgate-Over: "+mark+"\n") {
		t.Errorf("the documentation has another example than %s", mark)
	}
}

// TestShop runs the tests that stand beside the example.
func TestShop(t *testing.T) {
	const name = "../examples/shop/policy.test"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	runTests(t, name, text, func(_ context.Context, source testlang.PolicySource) (httpverdict.Decider, error) {
		p, err := policy.Load(source.Path)
		if err != nil {
			return nil, err
		}
		return policy.NewEngine(p, source.Limiter, policy.EngineConfig{})
	})
}

// runTests runs a text in the .test language.
func runTests(t *testing.T, name string, text []byte, compile func(context.Context, testlang.PolicySource) (httpverdict.Decider, error)) {
	t.Helper()
	file, err := testlang.Parse(name, text)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	report, err := testlang.Run(t.Context(), file, testlang.Config{Limiter: store, Compile: compile})
	if err != nil || report.Lines == 0 {
		t.Fatalf("%d lines, %v", report.Lines, err)
	}
	for _, f := range report.Failures {
		t.Errorf("%s:%d: %s: want %s, got %s", name, f.Line, f.Text, f.Want, f.Got)
	}
}
