package redisstock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestClockOfRedis: without Config.Now all that has to do with time goes by the clock of Redis, whatever this process's says.
func TestClockOfRedis(t *testing.T) {
	srv := testservers.Redis(t, testservers.FakeTime())
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}}), 10, 1) // it closes in an hour
	base := time.Now()
	at := func(ahead time.Duration) {
		t.Helper()
		k.check(srv.SetClock(ahead))
		if now := k.view().Now; now.Sub(base) < ahead || now.Sub(base) > ahead+time.Minute {
			t.Fatalf("the stock's clock is %s, want %s after %s", now, ahead, base)
		}
	}
	asked := func(rid string) flashsale.Answer {
		t.Helper()
		a, err := k.reserve(t.Context(), rid, "u-"+rid, 1)
		k.check(err)
		return a
	}
	at(-3 * time.Hour)
	if a := asked("r0"); a.Code != flashsale.CodeNotOpen || a.Detail != "not_yet" || a.RetryAfter < time.Hour || a.RetryAfter > 2*time.Hour {
		t.Errorf("before the opening: %+v", a)
	}
	at(0)
	a := asked("r1")
	if e := a.Entry; !a.Accepted || e.At.Sub(base).Abs() > time.Minute || e.Deadline.Sub(e.At) != flashsale.PendingFor {
		t.Errorf("open: %+v", a)
	}
	pull := func(want int64) {
		t.Helper()
		jobs, err := k.stock.Pull(t.Context(), k.key, 1, "c", 10, 10*time.Minute)
		k.check(err)
		if want == 0 && len(jobs) > 0 || want > 0 && (len(jobs) != 1 || jobs[0].Deliveries != want) {
			t.Fatalf("pulled %+v, want delivery %d", jobs, want)
		}
	}
	pull(1)
	pull(0)
	due := func(want int) {
		t.Helper()
		due, err := k.stock.Due(t.Context(), k.key, 1, 10)
		k.check(err)
		if len(due) != want {
			t.Fatalf("due are %+v, want %d", due, want)
		}
	}
	due(0)
	at(5 * time.Minute)
	due(1)
	pull(0)
	if a := asked("r2"); a.Code != flashsale.CodeBusy {
		t.Errorf("while the oldest waits for too long: %+v", a)
	}
	at(11 * time.Minute)
	pull(2)
	at(-11 * time.Minute) // a clock that goes back must not keep a job from being found: its time begins anew
	pull(0)
	at(0)
	pull(3)
	at(2 * time.Hour)
	if a := asked("r2"); a.Code != flashsale.CodeNotOpen || a.Detail != "ended" {
		t.Errorf("after the end: %+v", a)
	}
}

// TestConsumersThatAreGone: names of consumers do not pile up.
func TestConsumersThatAreGone(t *testing.T) {
	srv := testservers.Redis(t, testservers.FakeTime())
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns"}), 1000, 1)
	consumers := func() int {
		t.Helper()
		all, err := srv.Do("XINFO", "CONSUMERS", "ns:{sale:sku}:1:q", "c")
		k.check(err)
		return len(all.([]any))
	}
	pull := func(consumer string, want int) []flashsale.Job {
		t.Helper()
		jobs, err := k.stock.Pull(t.Context(), k.key, 1, consumer, 1, time.Minute)
		k.check(err)
		if len(jobs) != want {
			t.Fatalf("%s pulled %+v, want %d", consumer, jobs, want)
		}
		return jobs
	}
	for i := range 100 {
		name := fmt.Sprint("c", i)
		k.accept(name, "u-"+name, 1)
		job := pull(name, 1)[0]
		if i%10 > 0 {
			_, err := k.stock.Apply(t.Context(), k.key, 1, nil, []string{job.ID})
			k.check(err)
		}
	}
	k.check(srv.SetClock(2 * time.Minute))
	pull("new", 1) // of c0, which is the first that goes with nothing left
	if n := consumers(); n != 101 {
		t.Errorf("%d consumers, want 101: none has been idle for long", n)
	}
	k.check(srv.SetClock(2 * time.Hour))
	pull("new", 1)
	if n := consumers(); n != 9 {
		t.Errorf("%d consumers, want the 8 that still have jobs, and the new one", n)
	}
}
