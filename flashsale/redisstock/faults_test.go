package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

func TestScriptsFlushed(t *testing.T) {
	srv := testservers.Redis(t)
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}}), 10, 1)
	for i := range 3 {
		if _, err := srv.Do("SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
		k.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	if v := k.view(); v.Available != 7 {
		t.Errorf("the figures: %+v", v)
	}
}

// TestKilledMidCall: what a node that dies has not answered may have run; with an append-only file a repeat finds out, and the restart
// shows as another run.
func TestKilledMidCall(t *testing.T) {
	srv := testservers.Redis(t, testservers.AppendOnly(), testservers.Directives("appendfsync always"))
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1}), 100, 1)
	k.accept("before", "u-before", 1)
	run := k.view().Run
	begun := []*later{k.jam(srv)}
	for i := range 9 {
		begun = append(begun, k.begin(t.Context(), k.ask(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)))
	}
	k.awaitWaiting(9, 1)
	srv.Kill()
	for _, l := range begun {
		<-l.done
		failsWith(t, l.err, flashsale.CodeUnavailable, "")
	}
	if err := srv.Restart(testservers.KeepData); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		await(t, func() error {
			_, err := k.reserve(t.Context(), fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
			return err
		})
	}
	a, err := k.reserve(t.Context(), "before", "u-before", 1)
	if err != nil || !a.Known {
		t.Errorf("what was accepted before the kill: %+v, %v", a, err)
	}
	v := k.view()
	if v.Held < 10 || v.Held > 11 || v.Queue.Depth != v.Held {
		t.Errorf("the figures: %+v", v)
	}
	if v.Run == run || v.Run == "" {
		t.Errorf("the run is %q after a restart, and was %q", v.Run, run)
	}
}

// TestSilence: a network that loses everything ends calls at their time-out, and a repeat runs once.
func TestSilence(t *testing.T) {
	srv := testservers.Redis(t)
	proxy := testservers.NewProxy(t, srv.Addr())
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns"}), 10, 1)
	far := &sku{T: t, key: k.key, stock: open(t, redisstock.Config{Addrs: []string{proxy.Addr()}, Namespace: "ns", Timeout: time.Second})}
	k.check(proxy.Set(testservers.Fault{Drop: true}))
	began := time.Now()
	_, err := far.reserve(t.Context(), "r1", "u1", 1)
	failsWith(t, err, flashsale.CodeUnavailable, "it may have run")
	_, err = far.stock.View(t.Context(), k.key)
	failsWith(t, err, flashsale.CodeUnavailable, "it may have run")
	if took := time.Since(began); took > patience/2 {
		t.Errorf("two calls of 1 s took %s", took)
	}
	k.check(proxy.Heal())
	await(t, func() error { _, err := far.reserve(t.Context(), "r1", "u1", 1); return err })
	if v := k.view(); v.Held != 1 || v.Queue.Depth != 1 {
		t.Errorf("the figures: %+v", v)
	}
}

// TestOutOfMemory: where memory is short nothing new is taken, and the queue is still worked off.
func TestOutOfMemory(t *testing.T) {
	srv := testservers.Redis(t, testservers.MaxMemory("200mb"))
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}}), 100, 1)
	for i := range 10 {
		k.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	if _, err := srv.Do("CONFIG", "SET", "maxmemory", "1mb"); err != nil {
		t.Fatal(err)
	}
	before := k.view()
	_, err := k.reserve(t.Context(), "more", "u-more", 1)
	failsWith(t, err, flashsale.CodeUnavailable, "out of memory")
	if after := k.view(); after.Seq != before.Seq || after.Queue != (flashsale.QueueView{Depth: 10, Oldest: after.Queue.Oldest, Pending: 10}) {
		t.Errorf("a call that was refused has left a trace: %+v", after)
	}
	jobs, err := k.stock.Pull(t.Context(), k.key, 1, "c", 100, time.Hour)
	if err != nil || len(jobs) != 10 {
		t.Fatalf("pulled %d: %v", len(jobs), err)
	}
	for i, job := range jobs {
		effect := flashsale.Effect{RID: job.RID, User: job.User, Quantity: 1, State: flashsale.Rejected, Version: 1}
		acks := []string{job.ID}
		if i%2 == 1 {
			acks = nil
		}
		applied, err := k.stock.Apply(t.Context(), k.key, 1, []flashsale.Effect{effect}, acks)
		if err != nil || applied[0] != flashsale.AppliedMoved {
			t.Fatalf("applied %v: %v", applied, err)
		}
	}
	if v := k.view(); v.Available != 100 || v.Queue.Depth != 5 || v.Queue.Pending != 0 {
		t.Errorf("the figures: %+v", v)
	}
}

// TestRefusals: what Redis refuses for good is said in words that help.
func TestRefusals(t *testing.T) {
	srv := testservers.Redis(t, testservers.ACL("seller", "secret-word"))
	_, err := redisstock.New(t.Context(), redisstock.Config{Addrs: []string{srv.Addr()}, Username: "seller", Password: "another-word", Timeout: patience, ConnectTimeout: patience})
	failsWith(t, err, flashsale.CodeInvalidArgument, "the user name or the password is wrong")
	if strings.Contains(err.Error(), "another-word") {
		t.Errorf("the password is in the error: %v", err)
	}
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Username: "seller", Password: "secret-word", Namespace: "ns"}), 10, 1)
	for _, step := range []struct {
		command []any
		code    flashsale.Code
		text    string
	}{
		{[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, flashsale.CodeUnavailable, "fewer replicas"},
		{[]any{"CONFIG", "SET", "min-replicas-to-write", "0"}, "", ""},
		{[]any{"ACL", "SETUSER", "seller", "-hmget"}, flashsale.CodeUnavailable, "the user may not"},
		{[]any{"ACL", "SETUSER", "seller", "+hmget", "-evalsha"}, flashsale.CodeUnavailable, "the user may not"},
		{[]any{"ACL", "SETUSER", "seller", "+evalsha"}, "", ""},
		{[]any{"SET", "ns:{sale:sku}:1:q", "foreign"}, flashsale.CodeInternal, "foreign data"},
		{[]any{"DEL", "ns:{sale:sku}:1:q", "ns:{sale:sku}:1:user", "ns:{sale:sku}:1:res"}, "", ""},
		{[]any{"SET", "ns:{sale:sku}:1:user", "foreign"}, flashsale.CodeInternal, "foreign data"},
	} {
		if _, err := srv.Do(step.command...); err != nil {
			t.Fatal(err)
		}
		before, err := srv.Do("HGETALL", "ns:{sale:sku}:1:stock")
		k.check(err)
		a, err := k.reserve(t.Context(), "r1", "u1", 1)
		if step.code == "" {
			if err != nil || a.Code != "" {
				t.Errorf("after %v: %+v, %v", step.command, a, err)
			}
			continue
		}
		failsWith(t, err, step.code, step.text)
		if after, err := srv.Do("HGETALL", "ns:{sale:sku}:1:stock"); err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after %v: the counters were %v and are %v", step.command, before, after)
		}
	}
}

func TestReplica(t *testing.T) {
	primary, replica := testservers.Redis(t), testservers.Redis(t)
	k := sell(t, open(t, redisstock.Config{Addrs: []string{primary.Addr()}, Namespace: "ns"}), 10, 1)
	host, port, _ := strings.Cut(primary.Addr(), ":")
	if _, err := replica.Do("REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	if err := replica.AwaitInfo("replication", "master_link_status", "up", time.Minute); err != nil {
		t.Fatal(err)
	}
	other := &sku{T: t, stock: open(t, redisstock.Config{Addrs: []string{replica.Addr()}, Namespace: "ns"}), key: k.key}
	await(t, func() error {
		_, err := other.reserve(t.Context(), "r1", "u1", 1)
		if flashsale.CodeOf(err) != flashsale.CodeUnavailable || !strings.Contains(err.Error(), "this node is a replica") {
			return fmt.Errorf("a replica answers: %w", err)
		}
		return nil
	})
	if _, err := replica.Do("REPLICAOF", "NO", "ONE"); err != nil {
		t.Fatal(err)
	}
	other.accept("r1", "u1", 1)
	if a, b := k.view().Run, other.view().Run; a == b {
		t.Errorf("two nodes have the same run %q", a)
	}
}

// TestSentinel: a failover is another run, and the stock goes on with the new primary.
func TestSentinel(t *testing.T) {
	group := testservers.Sentinel(t)
	k := sell(t, open(t, redisstock.Config{Addrs: group.Addrs(), Master: group.Name(), Namespace: "headgate", Timeout: 10 * time.Second}), 10, 1)
	k.accept("r1", "u1", 1)
	run := k.view().Run
	primary, err := group.Primary()
	k.check(err)
	for _, node := range group.Nodes { // so that what was accepted is not what the failover loses
		if node != primary {
			await(t, func() error {
				n, err := node.Do("HLEN", "headgate:{sale:sku}:1:res")
				if err == nil && n != int64(1) {
					err = errors.New("the replica is not in step")
				}
				return err
			})
		}
	}
	old, err := group.KillPrimary()
	k.check(err)
	if _, err := group.AwaitFailover(old, time.Minute); err != nil {
		t.Fatal(err)
	}
	await(t, func() error {
		_, err := k.reserve(t.Context(), "r2", "u2", 1)
		return err
	})
	v := k.view()
	if v.Run == run || v.Run == "" {
		t.Errorf("the run is %q after a failover, and was %q", v.Run, run)
	}
	if v.Epoch != 1 || !v.Loaded || v.Held != 2 {
		t.Errorf("the figures: %+v", v)
	}
}

func TestCannotConnect(t *testing.T) {
	proxy := testservers.NewProxy(t, "127.0.0.1:1")
	addr := proxy.Addr()
	proxy.Close()
	_, err := redisstock.New(t.Context(), redisstock.Config{Addrs: []string{addr}})
	failsWith(t, err, flashsale.CodeUnavailable, "cannot connect")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = redisstock.New(ctx, redisstock.Config{Addrs: []string{addr}})
	failsWith(t, err, flashsale.CodeUnavailable, "cannot connect")
}
