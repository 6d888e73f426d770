package redisstore_test

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/redisstore"
)

func TestConformance(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(t testing.TB) headgate.Limiter { return open(t, redisstore.Config{}) }})
}

// TestConformanceOfBatches is the same where a lone take goes through the script for batches.
func TestConformanceOfBatches(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(t testing.TB) headgate.Limiter {
		return redisstore.WithoutShortcut(open(t, redisstore.Config{}))
	}})
}
