//go:build !race

package policies_test

import "github.com/headgate-io/headgate/testlang"

// runsInMemory is how many runs a file may have.
const runsInMemory = testlang.MaxFileRuns
