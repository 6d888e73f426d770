package limitertest_test

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/limitertest/oracle"
)

// TestOracle runs the suite on the oracle: it keeps what it promises, and every part of the suite runs.
func TestOracle(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(testing.TB) headgate.Limiter { return oracle.New(oracle.Config{}) }})
}
