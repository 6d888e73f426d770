package redisstore_test

import (
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/redisstore"
)

// patient is for what is about answers: a machine that is busy for a moment makes none of them wrong.
var patient = redisstore.Config{Timeout: 5 * time.Second}

func TestConformance(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(t testing.TB) headgate.Limiter { return open(t, patient) }})
}

// TestConformanceOfBatches is the same where a lone take goes through the script for batches.
func TestConformanceOfBatches(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(t testing.TB) headgate.Limiter {
		return redisstore.WithoutShortcut(open(t, patient))
	}})
}
