package memstore_test

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/memstore"
)

func TestConformance(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(t testing.TB) headgate.Limiter {
		s := memstore.New(memstore.Config{})
		t.Cleanup(func() { _ = s.Close() })
		return s
	}})
}
