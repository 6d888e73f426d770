package policy_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

const examplePolicy = `
version: 1
rules:
  - name: login
    match: {methods: [POST], paths: [/login]}
    key: [ip]
    limits: [sliding_log 2/5m]
`

// A policy is compiled once and applied to any store.
func ExampleNewEngine() {
	p, err := policy.Parse("example.yaml", []byte(examplePolicy), policy.ParseConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	engine, err := policy.NewEngine(p, store, policy.EngineConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		v := engine.Decide(context.Background(), &httpverdict.Request{
			Method: "POST", Path: "/login", Peer: netip.MustParseAddr("198.51.100.9"),
		})
		fmt.Println(v.Kind, v.Rule, v.RetryAfter.After.Minutes() > 4)
	}
	// Output:
	// allow login false
	// allow login false
	// limited login true
}

// Every mistake of a document is reported, with its place and the nearest word that is valid.
func ExampleParse() {
	_, err := policy.Parse("shop.yaml", []byte("version: 1\nrules:\n  - name: login\n    limts: [sliding_log 5/5m]\n"), policy.ParseConfig{})
	fmt.Println(err)
	// Output:
	// shop.yaml:3:5: rule "login": limits are missing; write limits: [token_bucket 10/s]
	// shop.yaml:4:5: rule "login": field "limts" is unknown; nearest is limits
}
