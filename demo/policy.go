package demo

import (
	"github.com/headgate-io/headgate/examples/shop"
	"github.com/headgate-io/headgate/policy"
)

// PolicyName is where the policy of the demo lies in the repository.
const PolicyName = "examples/shop/policy.yaml"

// Policy returns the policy of the sample shop.
func Policy() (*policy.Policy, error) {
	return policy.Parse(PolicyName, []byte(shop.Policy), policy.ParseConfig{})
}
