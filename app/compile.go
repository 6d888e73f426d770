package app

import (
	"context"
	"crypto/rand"
	"os"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/testlang"
)

// CompilePolicy makes the policy that a test file names, or holds, ready to judge. It is what testlang.Config.Compile asks for.
func CompilePolicy(_ context.Context, source testlang.PolicySource) (httpverdict.Decider, error) {
	p, err := policyOf(source)
	if err != nil {
		return nil, err
	}
	return policy.NewEngine(p, source.Limiter, policy.EngineConfig{
		// A test is of the policy alone: what it does not say of a dimension is not looked up elsewhere.
		Lookups: policy.Lookups{HashField: nothingFound, HTTPGet: nothingFound},
		MarkKey: []byte(rand.Text()), Explain: true,
	})
}

func nothingFound(context.Context, string, string) (string, bool, error) { return "", false, nil }

func policyOf(source testlang.PolicySource) (*policy.Policy, error) {
	if source.Path != "" {
		return policy.Load(source.Path)
	}
	root, err := os.OpenRoot(source.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return policy.Parse("policy", source.Text, policy.ParseConfig{Files: root.FS()})
}
