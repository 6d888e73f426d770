package faults

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestLateLeader: an instance stands still for longer than its leases, between two steps, and then goes on with what it had in hand,
// while another one does its jobs; in the later rounds the stock has been loaded anew meanwhile, or it was the one who loaded it.
func TestLateLeader(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t, testservers.AppendOnly())
	s := openSale(t, stores{redis: []string{redis.Addr()}, database: sharedMariaDB.Get(t).Database(t)}, 2)
	s.crowd.come()
	flush := func() {
		_, err := redis.Do("FLUSHALL")
		s.check(err)
	}
	for round := range 4 {
		s.goesOn()
		s.stockUp()
		x, plan := s.slots[s.draw(2)], s.drawPlan(lateSteps()...)
		if round == 3 {
			x = s.holder("watch")
			plan = &crashPlan{Calls: []string{rebuildSteps()[s.draw(len(rebuildSteps()))]}}
		}
		plan.Before, plan.Stop = true, true
		epoch := s.epoch()
		if round > 0 {
			s.t.Logf("instance %d stops at %+v", x.number, *plan)
			s.arm(x, plan)
		}
		if round == 3 {
			flush()
		}
		s.stop(x)
		s.takesOver(s.slots[1-x.number])
		here := x.addr.Swap(nil) // whoever watches over the instances has noticed
		if round == 2 {
			flush()
		}
		if round >= 2 {
			s.reloaded(epoch)
		}
		s.goesOn()
		s.check(x.process.Resume())
		x.addr.Store(here)
		s.goesOn()
		s.settle()
	}
	s.finish()
}

// lateSteps are those that come too late: each changes something.
func lateSteps() []string {
	return []string{"orders.Decide", "stock.Apply", "stock.Reserve", "orders.Sent", "orders.Expire", "orders.Outcome", "orders.BeginPayment", "orders.Lease", "payments.Create"}
}

// stop waits until an instance stands still at the step that it was told, and stops it where it is if it does not come to it soon.
func (s *sale) stop(x *slot) {
	s.t.Helper()
	soon := time.Now().Add(time.Second)
	s.await("the instance stands still", func() error {
		err := standsStill(x.process.PID())
		if err == nil || time.Now().Before(soon) {
			return err
		}
		s.arm(x, nil) // or it would stop again when it has gone on
		return x.process.Pause()
	})
}

// standsStill returns nil if a process is stopped.
func standsStill(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	if !strings.Contains(string(stat), ") T ") {
		return errors.New("it runs")
	}
	return nil
}
