package chaos

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/redisstore"
)

// TestObserver follows a fault in virtual time: when it is noticed, when the breaker is open, when the store is back.
func TestObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newObserver(2)
		decide := func(instance int, took time.Duration, err error) {
			began := time.Now()
			time.Sleep(took)
			o.decided(decision{instance: instance, began: began, ended: time.Now(), call: call{asked: true, err: err}})
		}
		open := fmt.Errorf("not asked: %w", redisstore.ErrBreakerOpen)
		lost := errors.New("no answer")
		inForce := func(want string, l1 bool) {
			t.Helper()
			if got := o.now(); got.InForce != want || got.L1 != l1 {
				t.Errorf("got %+v, want %q", got, want)
			}
		}
		step := script(20 * time.Second)[0]
		decide(0, time.Millisecond, nil)
		inForce("the store, on all 2 instances", false)
		o.begins(step)
		decide(0, 200*time.Millisecond, lost)
		decide(1, 100*time.Millisecond, lost)
		inForce("the store, on all 2 instances", false)
		decide(1, 0, open)
		inForce("local limits (L1) on 1 of 2 instances, on the others the store", true)
		decide(0, 0, open)
		decide(1, 0, open)
		inForce("local limits (L1), on all 2 instances", true)
		late := time.Now()
		o.ends(step)
		o.decided(decision{instance: 0, began: late.Add(-time.Millisecond), ended: late, call: call{asked: true}}) // began before its end
		time.Sleep(time.Second)
		decide(0, 2*time.Millisecond, nil)
		decide(1, 0, open)
		time.Sleep(time.Second)
		decide(1, 3*time.Millisecond, nil)
		inForce("the store, on all 2 instances", false)

		got := o.faultsSeen()
		want := demo.Fault{
			Fault: "killed, its data kept", AtS: 0.001, LastedMS: 300, NoticedMS: float(200), L1MS: float(300), RecoveredMS: float(2005),
			FellToOnError: 6, LongestDecisionMS: 200,
		}
		if len(got) != 1 || !sameFault(got[0], want) {
			t.Errorf("got %+v", got)
		}
		var events []string
		for _, e := range o.events {
			events = append(events, fmt.Sprintf("%s %s", e.At, e.Text))
		}
		if want := []string{
			"1ms Redis is killed, its data kept (SIGKILL)", "301ms local limits are in force (L1), on all 2 instances",
			"301ms Redis is started again, with its data", "2.306s the store decides again, on all 2 instances",
		}; !slices.Equal(events, want) {
			t.Errorf("got %q, want %q", events, want)
		}
		o.decided(decision{}) // what is known to be denied asks no store, and no local limit
		if o.fell != 6 || o.unasked != 4 || o.now().Local != 6 || o.longest != 200*time.Millisecond {
			t.Errorf("fell %d, unasked %d, longest %s", o.fell, o.unasked, o.longest)
		}
	})
}

func float(v float64) *float64 { return &v }

func sameFault(a, b demo.Fault) bool {
	for _, p := range [][2]*float64{{a.NoticedMS, b.NoticedMS}, {a.L1MS, b.L1MS}, {a.RecoveredMS, b.RecoveredMS}} {
		if (p[0] == nil) != (p[1] == nil) || p[0] != nil && *p[0] != *p[1] {
			return false
		}
	}
	a.NoticedMS, a.L1MS, a.RecoveredMS = nil, nil, nil
	b.NoticedMS, b.L1MS, b.RecoveredMS = nil, nil, nil
	return a == b
}

// TestUnfinished: of a fault that the end of the demo has cut short nothing is said.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	o := newObserver(1)
	o.begins(script(time.Minute)[1])
	if got := o.faultsSeen(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
