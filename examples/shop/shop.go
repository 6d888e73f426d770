// Package shop carries the policy of the sample shop, for programs that run it without the file beside them.
package shop

import _ "embed"

// Policy is the text of policy.yaml.
//
//go:embed policy.yaml
var Policy string
