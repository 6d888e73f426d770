package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// fleetSize is how many instances share a limit.
const fleetSize = 3

// patience bounds every wait for something that comes by itself, on machines under load.
const patience = 60 * time.Second

// scene is a fleet at work on one store, to which something happens.
type scene struct {
	t     *testing.T
	nodes []*node
	row   *row
	// renewed is how often the store lost its data, or its clock was set ahead: after each the limits are as if unused.
	renewed int64
	why     string // about the longest call

	ready, began, ended time.Time // ready: all know of each other; began and ended: the fault
}

// node is one instance.
type node struct {
	*testservers.Process
	ledger *ledger
	dead   bool
	// stopped are the times in which it was kept from running.
	stopped []span
}

// span is from a time to a time, in microseconds since the Unix epoch.
type span struct{ from, to int64 }

// at is where an instance finds its store.
type at struct {
	addrs  []string
	master string
	flood  int // new keys in a second
}

func addr(addrs ...string) at { return at{addrs: addrs} }

// newScene starts an instance for each place and waits until all are at work and know of each other.
func newScene(t *testing.T, places ...at) *scene {
	t.Helper()
	s := &scene{t: t, row: &row{}}
	for i, place := range places {
		s.nodes = append(s.nodes, startNode(t, i, place))
	}
	s.await("all instances know of each other and decide by the store", func(n *node, all []record) error {
		var live int64
		decided := map[uint8]int{}
		for i := range all {
			switch r := &all[i]; {
			case r.Kind == state:
				live = r.A
			case r.Kind == admitted && r.By == byStore:
				decided[r.Rule]++
			}
		}
		for rule := range rules {
			if decided[rule] < 10 || live != int64(len(places)) {
				return fmt.Errorf("%d instances known, %d of rule %s admitted", live, decided[rule], ruleNames()[rule])
			}
		}
		return nil
	})
	s.ready = time.Now()
	return s
}

// three are the same place for each instance of a fleet.
func three(place at) []at { return []at{place, place, place} }

func startNode(t *testing.T, number int, place at) *node {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, fmt.Sprintf("instance%d", number))
	config, err := json.Marshal(instanceConfig{Addrs: place.addrs, Master: place.master, Namespace: "faults", File: file, Flood: place.flood})
	self, errSelf := os.Executable()
	ledger, errLedger := openLedger(file)
	if err := errors.Join(err, errSelf, errLedger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.file.Close() })
	return &node{
		ledger:  ledger,
		Process: testservers.Start(t, testservers.Command{Path: self, Dir: dir, Env: []string{instanceEnv + "=" + string(config)}}),
	}
}

// await waits until a condition holds of the records of every instance that lives.
func (s *scene) await(what string, condition func(n *node, all []record) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, n := range s.nodes {
		if n.dead {
			continue
		}
		err := testservers.Poll(ctx, func() error {
			all, err := n.ledger.more()
			if err != nil {
				return err
			}
			if status, ended := n.Exited(); ended {
				return fmt.Errorf("it has ended: %s", status)
			}
			return condition(n, all)
		})
		if err != nil {
			s.t.Fatalf("instance %d: never came true that %s: %v", i, what, err)
		}
	}
}

// begin begins the fault.
func (s *scene) begin(do ...func() error) {
	s.t.Helper()
	s.began = time.Now()
	s.must(do...)
}

// end ends it.
func (s *scene) end(do ...func() error) {
	s.t.Helper()
	s.must(do...)
	s.ended = time.Now()
}

func (s *scene) must(do ...func() error) {
	s.t.Helper()
	for _, f := range do {
		if err := f(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// lasts lets time pass, with the fleet at work.
func (s *scene) lasts(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// awaitLocal waits until every instance, or those named, decides the strict rule by itself.
func (s *scene) awaitLocal(numbers ...int) {
	s.t.Helper()
	from := s.began.UnixMicro()
	s.await("the limits are in force locally", func(n *node, all []record) error {
		if !s.among(n, numbers) {
			return nil
		}
		for i := len(all) - 1; i >= 0; i-- {
			if r := &all[i]; r.Kind == admitted && r.By == byFallback && r.Rule == strict && r.Began >= from {
				return nil
			}
		}
		return errors.New("nothing was decided locally")
	})
}

func (s *scene) among(n *node, numbers []int) bool {
	for _, i := range numbers {
		if s.nodes[i] == n {
			return true
		}
	}
	return len(numbers) == 0
}

// finish waits until everything is decided by the store again, ends the instances, and judges.
func (s *scene) finish() {
	s.t.Helper()
	from := s.ended.UnixMicro()
	s.await("every rule is decided by the store again", func(_ *node, all []record) error {
		for rule := range rules {
			if backAt(all, rule, from) == 0 {
				return fmt.Errorf("rule %s was not admitted by the store", ruleNames()[rule])
			}
		}
		return nil
	})
	s.lasts(2 * time.Second) // what was wrongly kept would be spent now
	for i, n := range s.nodes {
		if n.dead {
			continue
		}
		s.must(n.Terminate)
		s.awaitExit(i, n)
	}
	s.judge()
}

func (s *scene) awaitExit(number int, n *node) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		status, ended := n.Exited()
		switch {
		case !ended:
			return errors.New("it still runs")
		case status != "exit status 0":
			s.t.Errorf("instance %d: %s\n%s", number, status, n.LogTail())
		}
		return nil
	})
	if err != nil {
		s.t.Fatalf("instance %d: %v", number, err)
	}
}

// backAt returns when a rule was first admitted by the store in a call that began after a time, 0 if never.
func backAt(all []record, rule uint8, from int64) (when int64) {
	for i := len(all) - 1; i >= 0 && all[i].Ended >= from; i-- {
		if r := &all[i]; r.Rule == rule && r.Kind == admitted && r.By == byStore && r.Began >= from {
			when = r.Ended
		}
	}
	return when
}
