package faults

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// death is a way in which processes die.
type death int

const (
	oneOfTwo  death = iota // and it is started again at once
	takenOver              // one of two, and the other one takes over before it is started again
	allOfThem
)

// deaths are 20, in an order that is drawn.
func (s *sale) deaths() []death {
	all := make([]death, 0, 20)
	for how, n := range map[death]int{oneOfTwo: 9, takenOver: 5, allOfThem: 6} {
		for range n {
			all = append(all, how)
		}
	}
	slices.Sort(all)
	s.mu.Lock()
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.mu.Unlock()
	if len(s.slots) == 1 {
		clear(all)
	}
	return all
}

// TestKilledProcesses: processes are killed 20 times during a sale, some by a signal from outside, some at a step of their own. Two
// instances share Redis and a database; with the stock in memory there is one, and every start rebuilds the stock from SQL.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	t.Run("redis+postgres", func(t *testing.T) {
		t.Parallel()
		killAll(t, openSale(t, stores{redis: durableRedis(t), database: sharedPostgres.Get(t).Database(t)}, 2))
	})
	t.Run("redis+mariadb", func(t *testing.T) {
		t.Parallel()
		killAll(t, openSale(t, stores{redis: durableRedis(t), database: sharedMariaDB.Get(t).Database(t)}, 2))
	})
	t.Run("memory+sqlite", func(t *testing.T) {
		t.Parallel()
		killAll(t, openSale(t, stores{database: "sqlite:" + filepath.Join(t.TempDir(), "sale.db")}, 1))
	})
}

func durableRedis(t *testing.T) []string {
	return []string{testservers.Redis(t, testservers.AppendOnly()).Addr()}
}

func killAll(t *testing.T, s *sale) {
	t.Helper()
	s.crowd.lossless = len(s.slots) > 1
	s.crowd.come()
	for i, how := range s.deaths() {
		s.stockUp()
		victims := s.victims(how)
		if s.draw(2) == 0 {
			s.underWay(5 + s.draw(60))
		} else {
			s.killAtStep(victims[0])
		}
		s.kill(victims...)
		if how == takenOver {
			s.takesOver(s.slots[1-victims[0].number])
		}
		s.start(victims...)
		if i%5 == 4 {
			s.goesOn()
			s.settle()
		}
	}
	s.finish()
}

// victims are who dies; the first may choose the moment itself.
func (s *sale) victims(how death) []*slot {
	first := s.draw(len(s.slots))
	if how == allOfThem {
		return []*slot{s.slots[first], s.slots[1-first]}
	}
	return s.slots[first : first+1]
}

// steps are those at which a process may die, most of them where one store knows of something and the other does not.
func steps() []string {
	return []string{
		"orders.Decide", "orders.Decide", "stock.Apply", "stock.Apply", "stock.Pull", "stock.Reserve", "orders.BeginPayment",
		"payments.Create", "orders.Outcome", "orders.Outcome", "orders.Cancel", "orders.Expire", "orders.ApplyCapture", "payments.Refund",
		"payments.Void", "orders.Sent", "orders.Lease", "",
	}
}

// killAtStep has a process kill itself at a step that is drawn. If it does not come to it soon, it is killed all the same.
func (s *sale) killAtStep(x *slot) {
	s.t.Helper()
	plan := s.drawPlan(steps()...)
	plan.Before = s.draw(2) == 0
	s.arm(x, plan)
	soon := time.Now().Add(time.Second)
	s.await("the process dies", func() error {
		if _, ended := x.process.Exited(); ended || time.Now().After(soon) {
			return nil
		}
		return fmt.Errorf("instance %d lives", x.number)
	})
}

// drawPlan draws one of these steps, and how often it is passed; "" is any.
func (s *sale) drawPlan(steps ...string) *crashPlan {
	if step := steps[s.draw(len(steps))]; step != "" {
		return &crashPlan{Calls: []string{step}, Skip: s.draw(4)}
	}
	return &crashPlan{Skip: s.draw(300)}
}

// arm tells a process where to die or to stop; nil: nowhere.
func (s *sale) arm(x *slot, plan *crashPlan) {
	s.t.Helper()
	if _, err := s.ask(s.t.Context(), x, "crash", &call{Crash: plan}); err != nil {
		s.t.Logf("instance %d cannot be told where to end: %v", x.number, err)
	}
}
