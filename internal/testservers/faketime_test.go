//go:build linux

package testservers

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// clockOf returns how far a server's clock is ahead of this machine's, and how far ahead a script of it finds the clock.
func clockOf(t *testing.T, s *RedisServer) (command, script time.Duration) {
	t.Helper()
	read := func(args ...any) time.Duration {
		answer, err := s.Do(args...)
		list, _ := answer.([]any)
		if err != nil || len(list) != 2 {
			t.Fatalf("%v: %v, %v", args, answer, err)
		}
		seconds, err := strconv.ParseInt(fmt.Sprint(list[0]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(time.Unix(seconds, 0))
	}
	return read("TIME"), read("EVAL", "return redis.call('TIME')", 0)
}

// TestFakeTime: the clock goes where it is set, at once, for commands, scripts and expiries, and the server lives on.
func TestFakeTime(t *testing.T) {
	t.Parallel()
	s := Redis(t, FakeTime())
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 90 * time.Minute, 0} {
		if err := s.SetClock(ahead); err != nil {
			t.Fatal(err)
		}
		command, script := clockOf(t, s)
		for what, got := range map[string]time.Duration{"TIME": command, "TIME in a script": script} {
			if off := (got - ahead).Abs(); off > 30*time.Second {
				t.Errorf("set to %s ahead, %s is %s ahead", ahead, what, got)
			}
		}
	}
	mustDo(t, s, "SET", "k", "v", "PX", 600_000)
	if err := s.SetClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	if v := mustDo(t, s, "GET", "k"); v != nil {
		t.Errorf("a key that expires in 10 min is %v an hour later", v)
	}
	if err := s.Restart(Empty); err != nil {
		t.Fatal(err)
	}
	if command, _ := clockOf(t, s); command < 59*time.Minute {
		t.Errorf("restarted, the clock is %s ahead", command)
	}
}

// TestFakeTimeLeavesNothing: not even what libfaketime leaves when its process is killed.
func TestFakeTimeLeavesNothing(t *testing.T) {
	t.Parallel()
	Need(t, "redis-server")
	Need(t, "faketime")
	var scope Scope
	var pids []int
	err := scope.Start(func(tb TB) {
		s := Redis(tb, FakeTime())
		if err := s.Restart(Empty); err != nil {
			tb.Fatalf("%v", err)
		}
		pids = s.fake.pids
	})
	scope.Close()
	if err != nil {
		t.Fatal(err)
	}
	if len(pids) != 2 {
		t.Errorf("%d processes were started", len(pids))
	}
	for _, pid := range pids {
		if left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/*faketime*_%d", pid)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestOnlyAFakeClockCanBeSet(t *testing.T) {
	t.Parallel()
	if err := (&RedisServer{}).SetClock(time.Hour); err == nil {
		t.Error("the machine's clock was set")
	}
}
