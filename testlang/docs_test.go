package testlang_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/limitertest/oracle"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/testlang"
)

// TestDocs runs every example of docs/testing.md.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```test\n")
	if len(parts) < 9 {
		t.Fatalf("found %d examples", len(parts)-1)
	}
	for i, part := range parts[1:] {
		example, _, _ := strings.Cut(part, "```")
		name := fmt.Sprintf("docs/testing.md, example %d", i+1)
		report, err := testlang.Run(context.Background(), parse(t, name, example),
			testlang.Config{Limiter: oracle.New(oracle.Config{}), Compile: compilePolicy})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Failures {
			t.Error(f)
		}
	}
}

func compilePolicy(_ context.Context, source testlang.PolicySource) (httpverdict.Decider, error) {
	p, err := policy.Parse("policy", source.Text, policy.ParseConfig{})
	if err != nil {
		return nil, err
	}
	nothing := func(context.Context, string, string) (string, bool, error) { return "", false, nil }
	return policy.NewEngine(p, source.Limiter, policy.EngineConfig{Lookups: policy.Lookups{HashField: nothing, HTTPGet: nothing}})
}
