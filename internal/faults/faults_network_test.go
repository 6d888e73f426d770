package faults

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// proxies puts one between each instance and the server.
func proxies(t *testing.T, srv *testservers.RedisServer) (all []*testservers.Proxy, places []at) {
	t.Helper()
	for range fleetSize {
		p := testservers.NewProxy(t, srv.Addr())
		all, places = append(all, p), append(places, addr(p.Addr()))
	}
	return all, places
}

// toAll sets a fault for every instance.
func toAll(all []*testservers.Proxy, f testservers.Fault) func() error {
	return func() error {
		for _, p := range all {
			if err := p.Set(f); err != nil {
				return err
			}
		}
		return nil
	}
}

// onePartitioned: one instance of three does not reach the store, which the others go on with.
func onePartitioned(t *testing.T) *row {
	srv := testservers.Redis(t)
	all, places := proxies(t, srv)
	s := newScene(t, places...)
	s.begin(toAll(all[:1], testservers.Fault{Drop: true}))
	s.awaitLocal(0)
	s.lasts(time.Until(s.began.Add(6 * time.Second)))
	s.end(all[0].Heal)
	s.finish()
	s.used(srv)
	s.untouched(1)
	s.untouched(2)
	return s.row
}

// answersSlowly: most answers come after the deadline of their calls, in which the store charges all the same.
func answersSlowly(t *testing.T) *row {
	srv := testservers.Redis(t)
	all, places := proxies(t, srv)
	s := newScene(t, places...)
	s.begin(toAll(all, testservers.Fault{Down: testservers.Delay{Min: 50 * time.Millisecond, Max: 500 * time.Millisecond}}))
	s.lasts(6 * time.Second)
	s.end(toAll(all, testservers.Fault{}))
	s.finish()
	s.used(srv)
	return s.row
}

// answersCut: each connection ends in the middle of an answer, again and again.
func answersCut(t *testing.T) *row {
	srv := testservers.Redis(t)
	all, places := proxies(t, srv)
	s := newScene(t, places...)
	s.begin(toAll(all, testservers.Fault{CutAfter: 2500}))
	s.lasts(4 * time.Second)
	s.end(toAll(all, testservers.Fault{}))
	s.finish()
	s.used(srv)
	return s.row
}

// connectionsRefused: nothing listens where the store was.
func connectionsRefused(t *testing.T) *row {
	srv := testservers.Redis(t)
	all, places := proxies(t, srv)
	s := newScene(t, places...)
	s.begin(toAll(all, testservers.Fault{Refuse: true}))
	s.awaitLocal()
	s.lasts(2 * time.Second)
	s.end(toAll(all, testservers.Fault{}))
	s.finish()
	s.used(srv)
	return s.row
}

// untouched checks that an instance went on with the store during the fault.
func (s *scene) untouched(number int) {
	s.t.Helper()
	from, to := s.began.UnixMicro(), s.ended.UnixMicro()
	var all, local int
	for i := range s.nodes[number].ledger.all {
		if r := &s.nodes[number].ledger.all[i]; (r.Kind == admitted || r.Kind == denied) && r.Began >= from && r.Ended <= to {
			if all++; r.By == byFallback {
				local++
			}
		}
	}
	if all == 0 || local > all/5 {
		s.t.Errorf("instance %d, which reaches the store, decided %d of %d locally", number, local, all)
	}
}
