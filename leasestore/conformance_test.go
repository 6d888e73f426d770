package leasestore_test

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/memstore"
)

// TestConformance runs the suite. Its views at a passed time are the upstream's; what they do not cover is tested here.
func TestConformance(t *testing.T) {
	limitertest.Run(t, limitertest.Config{Traces: 20, New: func(t testing.TB) headgate.Limiter {
		m := memstore.New(memstore.Config{})
		s := leasestore.New(m, leasestore.Config{})
		t.Cleanup(func() {
			_ = s.Close()
			_ = m.Close()
		})
		return s
	}})
}
