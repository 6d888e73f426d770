package faults

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestRedisFailedOver: the replicas are cut off, so that what the primary confirms from then on is lost when one of them follows it.
// Afterwards the old primary comes back with what only it knew.
func TestRedisFailedOver(t *testing.T) {
	t.Parallel()
	group := testservers.Sentinel(t, testservers.AppendOnly())
	s := openSale(t, stores{redis: group.Addrs(), master: group.Name(), database: sharedPostgres.Get(t).Database(t)}, 2)
	s.crowd.come()
	s.goesOn()
	old, err := group.Primary()
	s.check(err)
	epoch := s.epoch()
	for _, node := range group.Nodes {
		if node != old {
			s.check(node.Pause())
		}
	}
	_, err = old.Do("CLIENT", "KILL", "TYPE", "REPLICA") // with what is in the buffers of the connection
	s.check(err)
	cut := s.crowd.reserved.Load()
	s.underWay(30 + s.draw(30))
	s.await("more is reserved that no replica knows of", func() error {
		if s.crowd.reserved.Load() < cut+5 {
			return errors.New("too little")
		}
		return nil
	})
	last := s.offset(old, "master_repl_offset")
	old.Kill()
	for _, node := range group.Nodes {
		if node != old {
			s.check(node.Resume())
		}
	}
	now, err := group.AwaitFailover(old, patience)
	s.check(err)
	s.reloaded(epoch)
	if from := s.offset(now, "second_repl_offset"); from >= last {
		t.Fatalf("nothing was lost: the primary had written %d bytes, and the one that followed it went on from %d", last, from)
	} else {
		t.Logf("%d bytes of what the primary had confirmed are lost", last-from)
	}
	s.goesOn()
	s.check(old.Restart(testservers.KeepData))
	s.check(group.AwaitHealthy(patience))
	s.goesOn()
	s.settle()
	s.finish()
}

// offset is how much a primary has written, or with how much of another one's it began.
func (s *sale) offset(node *testservers.RedisServer, field string) int64 {
	s.t.Helper()
	fields, err := node.Info("replication")
	s.check(err)
	n, err := strconv.ParseInt(fields[field], 10, 64)
	s.check(err)
	return n
}

func (s *sale) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// rebuildSteps are those of whoever loads the stock anew.
func rebuildSteps() []string {
	return []string{"orders.BeginRebuild", "stock.Point", "orders.Snapshot", "stock.Load", "orders.Books", "orders.EndRebuild", "stock.Configure"}
}

// TestRedisFlushed: all of Redis is emptied, three times; twice the process that loads it anew dies over it.
func TestRedisFlushed(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	s := openSale(t, stores{redis: []string{redis.Addr()}, database: sharedMariaDB.Get(t).Database(t)}, 2)
	s.crowd.come()
	for round := range 3 {
		s.goesOn()
		s.stockUp()
		s.underWay(5 + s.draw(40))
		epoch := s.epoch()
		if round > 0 {
			plan := &crashPlan{Calls: []string{rebuildSteps()[s.draw(len(rebuildSteps()))]}, Before: s.draw(2) == 0}
			s.t.Logf("who loads the stock dies at %+v", *plan)
			for _, x := range s.slots {
				s.arm(x, plan)
			}
		}
		_, err := redis.Do("FLUSHALL")
		s.check(err)
		if round > 0 {
			s.burySome()
		}
		s.reloaded(epoch)
		s.goesOn()
		s.settle()
	}
	s.finish()
}

// burySome waits until one of the processes has died, and starts again whoever has.
func (s *sale) burySome() {
	s.t.Helper()
	s.await("a process dies while it loads the stock", func() error {
		for _, x := range s.slots {
			if _, ended := x.process.Exited(); ended {
				return nil
			}
		}
		return errors.New("they live")
	})
	for _, x := range s.slots {
		s.arm(x, nil)
	}
	for _, x := range s.slots {
		if _, ended := x.process.Exited(); ended {
			s.kill(x)
			s.start(x)
		}
	}
}

// TestRedisKilled: Redis is killed and comes back with what its append-only file has. It is another run, so the stock is loaded anew; but
// every job of the old one is decided before, so that nobody who was accepted is told to try again.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t, testservers.AppendOnly(), testservers.Directives("appendfsync always"))
	s := openSale(t, stores{redis: []string{redis.Addr()}, database: sharedPostgres.Get(t).Database(t)}, 2)
	s.crowd.lossless = true
	s.crowd.come()
	for range 3 {
		s.goesOn()
		s.stockUp()
		s.underWay(5 + s.draw(40))
		epoch := s.epoch()
		redis.Kill()
		s.outage()
		s.check(redis.Restart(testservers.KeepData))
		s.reloaded(epoch)
		s.goesOn()
		s.settle()
	}
	s.finish()
}

// outage waits until shoppers have met it.
func (s *sale) outage() {
	s.t.Helper()
	from := s.crowd.retries.Load()
	s.await("shoppers meet the outage", func() error {
		if n := s.crowd.retries.Load() - from; n < 5 {
			return fmt.Errorf("%d have asked again", n)
		}
		return nil
	})
}
