package faults

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// clockStepped: the clock of Redis is set, and stays. Set ahead, an hour has passed for it, and every limit is as if unused;
// set back, what lies ahead counts, so that nothing is granted twice.
func clockStepped(by time.Duration) func(t *testing.T) *row {
	return func(t *testing.T) *row {
		srv := testservers.Redis(t, testservers.FakeTime())
		s := newScene(t, three(addr(srv.Addr()))...)
		if by > 0 {
			s.renewed = 1
		}
		s.begin(func() error { return srv.SetClock(by) })
		s.end()
		s.lasts(3 * time.Second)
		s.finish()
		s.used(srv)
		return s.row
	}
}
