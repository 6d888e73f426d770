package resilience

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// kind is what a call ended with, for counting.
type kind uint8

const (
	answered kind = iota
	refused       // the node has failed, and said so
	silent        // there was no answer
)

// kindOf reads the code of a call; counts is false for one that says nothing of the node.
func kindOf(code string) (k kind, counts bool) {
	switch code {
	case "":
		return answered, true
	case "indeterminate", "timeout":
		return silent, true
	case "unavailable", "internal":
		return refused, true
	}
	return 0, false
}

// steps is how many parts a window is counted in. What is counted goes back between 19 and 20 of them.
const steps = 20

// step has the calls that ended in one part of the window.
type step struct {
	answered, refused, silent int
	began                     time.Duration // when the first of the silent calls began
}

// node is the breaker of one node. Its times are counted from epoch.
type node struct {
	name  string
	cfg   *BreakersConfig
	epoch time.Time

	open    atomic.Bool
	used    atomic.Int64 // when the last call was counted, ns since epoch of the process's clock
	probing atomic.Bool  // a probe is under way
	telling sync.Mutex   // held while the observer is told, so that it is told in order

	mu     sync.Mutex
	window [steps]step   // guarded by mu
	at     int64         // guarded by mu: the number of the newest step
	failed int           // guarded by mu: calls that have failed since the last success
	began  time.Duration // guarded by mu: when the first of them began
	last   time.Duration // guarded by mu: when the last of them ended
	closed time.Duration // guarded by mu: when the node was closed after it had been open; else before all calls
	known  NodeState     // guarded by mu; but for Open
	need   int           // guarded by mu: probes in a row that close
}

func newNode(name string, cfg *BreakersConfig) *node {
	now := time.Now()
	n := &node{name: name, cfg: cfg, epoch: now, need: cfg.Probes, closed: math.MinInt64, known: NodeState{Node: name, Since: now}}
	n.used.Store(now.UnixNano())
	return n
}

// count counts a call that has ended and tells why the node is to be opened, "" if it is not.
func (n *node) count(k kind, now time.Time, took time.Duration) (why string) {
	n.used.Store(now.UnixNano())
	n.mu.Lock()
	defer n.mu.Unlock()
	at := now.Sub(n.epoch)
	s := n.step(at)
	if k == answered {
		s.answered++
		n.failed = 0
		return ""
	}
	began := at - max(took, 0)
	if began < n.closed {
		return "" // it tells of the time before
	}
	if k == refused {
		s.refused++
	} else {
		if s.silent == 0 || began < s.began {
			s.began = began
		}
		s.silent++
	}
	n.fails(at, began)
	return n.judge(at)
}

// step returns the step of the window that a time lies in, having emptied those that have passed. Requires mu.
func (n *node) step(at time.Duration) *step {
	number := max(int64(at/(n.cfg.Window/steps)), n.at)
	for i := max(n.at+1, number-steps+1); i <= number; i++ {
		n.window[i%steps] = step{}
	}
	n.at = number
	return &n.window[number%steps]
}

// quiet is how many times Silence calls may lie apart to belong to one silence.
const quiet = 5

// fails notes a failure for the silence that it may be part of. Requires mu.
func (n *node) fails(at, began time.Duration) {
	if n.failed > 0 && began-n.last > quiet*n.cfg.Silence {
		n.failed = 0
	}
	if n.failed == 0 {
		n.began = began
	}
	n.failed++
	n.last = at
}

// judge tells why the node is to be opened, "" if it is not. Requires mu.
func (n *node) judge(at time.Duration) string {
	if quietFor := at - n.began; n.failed >= 2 && quietFor >= n.cfg.Silence {
		return fmt.Sprintf("no success for %s, %d calls failed", quietFor.Round(time.Millisecond), n.failed)
	}
	var sum step
	sum.began = at
	for i := range n.window {
		s := &n.window[i]
		sum.answered, sum.refused, sum.silent = sum.answered+s.answered, sum.refused+s.refused, sum.silent+s.silent
		if s.silent > 0 {
			sum.began = min(sum.began, s.began)
		}
	}
	calls, failed := sum.answered+sum.refused+sum.silent, sum.refused
	if at-sum.began >= n.cfg.Stall {
		failed += sum.silent
	}
	if calls >= n.cfg.MinCalls && float64(failed) >= n.cfg.FailedShare*float64(calls) && failed > 0 {
		return fmt.Sprintf("%d of %d calls failed within %s", failed, calls, n.cfg.Window)
	}
	return ""
}

// opens notes that the node was opened.
func (n *node) opens(now time.Time, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch flaps := n.known.Opened > 0 && now.Sub(n.known.Since) < n.cfg.Flap; {
	case flaps:
		n.need = min(2*n.need, n.cfg.MaxProbes)
	default:
		n.need = n.cfg.Probes
	}
	n.known.Since, n.known.Why, n.known.Probes, n.known.LastError = now, why, 0, ""
	n.known.Opened++
}

// probed notes a probe, and returns how many must succeed in a row, and how long the node has been open.
func (n *node) probed(now time.Time, err error) (need int, open time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known.Probes++
	if err != nil {
		n.known.LastError = err.Error()
	}
	return n.need, now.Sub(n.known.Since)
}

// closes notes that the node is closed. What was counted before is forgotten.
func (n *node) closes(now time.Time, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.window, n.failed, n.closed = [steps]step{}, 0, now.Sub(n.epoch)
	n.known.Since, n.known.Why = now, why
}

func (n *node) state() NodeState {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.known
	s.Open = n.open.Load()
	return s
}
