package policy_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/testlang"
)

// TestDocumentation loads every yaml block of the documentation.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"scanners.txt": {Data: []byte("198.51.100.0/24\n")}, "blocked-users.txt": {Data: []byte("u-1\n")}}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) < 6 {
		t.Fatalf("only %d yaml blocks", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "version:") {
			block = "version: 1\n" + block
		}
		if _, err := policy.Parse("docs", []byte(block), policy.ParseConfig{Files: files}); err != nil {
			t.Errorf("%v\nin\n%s", err, block)
		}
	}
}

// TestShop runs the tests that stand beside the example.
func TestShop(t *testing.T) {
	const name = "../examples/shop/policy.test"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := testlang.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	compile := func(_ context.Context, source testlang.PolicySource) (httpverdict.Decider, error) {
		p, err := policy.Load(source.Path)
		if err != nil {
			return nil, err
		}
		return policy.NewEngine(p, source.Limiter, policy.EngineConfig{})
	}
	report, err := testlang.Run(t.Context(), file, testlang.Config{Limiter: store, Compile: compile})
	if err != nil || report.Lines == 0 {
		t.Fatalf("%d lines, %v", report.Lines, err)
	}
	for _, f := range report.Failures {
		t.Errorf("%s:%d: %s: want %s, got %s", name, f.Line, f.Text, f.Want, f.Got)
	}
}
