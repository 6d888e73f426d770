package faults

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// instanceKilled: what it had charged ahead is lost, and the others have the limits to themselves.
func instanceKilled(t *testing.T) *row {
	srv := testservers.Redis(t)
	s := newScene(t, three(addr(srv.Addr()))...)
	s.begin(func() error {
		s.nodes[0].Kill()
		s.nodes[0].dead = true
		return nil
	})
	s.end()
	s.lasts(4 * time.Second)
	s.finish()
	s.used(srv)
	s.whole(leased, 2*time.Second)
	return s.row
}

// whole checks that the fleet admitted nearly all that a limit grants since a time after the fault, or that it was asked for:
// nothing of it is kept from those who ask.
func (s *scene) whole(rule uint8, after time.Duration) {
	s.t.Helper()
	from, asked := s.ended.Add(after).UnixMicro(), 0
	for _, n := range s.nodes {
		for i := range n.ledger.all {
			if r := &n.ledger.all[i]; r.Rule == rule && r.Began >= from && (r.Kind == admitted || r.Kind == denied) {
				asked++
			}
		}
	}
	times := s.admissions(rule, limitsOf(s.t)[rule], func(r *record) bool { return r.Began >= from })
	if len(times) < 2 {
		s.t.Fatalf("rule %s: %d were admitted after the fault", ruleNames()[rule], len(times))
	}
	seconds := float64(times[len(times)-1].at-times[0].at) / 1e6
	if due := min(90*seconds, float64(asked)); float64(len(times)) < 0.8*due {
		s.t.Errorf("rule %s: %d of %.0f were admitted in %.1f s, asked for %d", ruleNames()[rule], len(times), due, seconds, asked)
	}
}

// instanceStopped: leases and waiting requests are not what they were when it goes on.
func instanceStopped(d time.Duration) func(t *testing.T) *row {
	return func(t *testing.T) *row {
		srv := testservers.Redis(t)
		s := newScene(t, three(addr(srv.Addr()))...)
		n := s.nodes[0]
		from := time.Now().UnixMicro()
		s.begin(n.Pause)
		s.lasts(d)
		to := time.Now().UnixMicro() // what waits until then is still waiting; once it goes on, this process may be the later one
		s.end(n.Resume)
		n.stopped = append(n.stopped, span{from, s.ended.UnixMicro()})
		s.finish()
		s.used(srv)
		if !n.waitedThrough(from, to) {
			t.Error("no request waited for its turn while the instance was stopped")
		}
		return s.row
	}
}

// waitedThrough tells whether a request waited for its turn from before a time until after another.
func (n *node) waitedThrough(from, to int64) bool {
	return slices.ContainsFunc(n.ledger.all, func(r record) bool { return r.Rule == turn && r.Kind != skipped && r.Began < from && r.Ended > to })
}
