package faults

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// fault is one thing that happens. Its name is what the table calls it.
type fault struct {
	name string
	run  func(t *testing.T) *row
	// alone: it takes all processors, so nothing runs beside it.
	alone bool
}

func faults() []fault {
	return []fault{
		{name: "Redis SIGKILLed, back after 4 s with its data", run: redisKilled},
		{name: "Redis SIGSTOPped for 10 s", run: redisStopped},
		{name: "Redis restarted with its data", run: redisRestarted},
		{name: "Redis restarted empty", run: redisEmptied},
		{name: "Redis failed over by Sentinel", run: failedOver},
		{name: "Redis stalled for 250 ms, three times", run: redisStalled},
		{name: "Redis out of memory", run: outOfMemory},
		{name: "Redis read-only", run: readOnly},
		{name: "Redis answers after 50 to 500 ms", run: answersSlowly},
		{name: "Redis's answers cut in the middle", run: answersCut},
		{name: "connections to Redis refused", run: connectionsRefused},
		{name: "one instance of three partitioned from Redis", run: onePartitioned},
		{name: "one instance SIGKILLed with leases", run: instanceKilled},
		{name: "one instance SIGSTOPped for 100 ms", run: instanceStopped(100 * time.Millisecond)},
		{name: "one instance SIGSTOPped for 10 s", run: instanceStopped(10 * time.Second)},
		{name: "the clock of Redis an hour ahead", run: clockStepped(time.Hour)},
		{name: "the clock of Redis an hour back", run: clockStepped(-time.Hour)},
		{name: "an injected clock an hour ahead", run: injectedStep(time.Hour)},
		{name: "an injected clock an hour back", run: injectedStep(-time.Hour)},
		{name: "100,000 new keys a second", run: keysFlooded, alone: true},
	}
}

func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: faults take minutes")
	}
	var mu sync.Mutex
	rows := map[string]*row{}
	t.Cleanup(func() { // when all are through
		text := table(faults(), rows)
		t.Log("\n" + text)
		if *tableFile == "" || t.Failed() {
			return
		}
		if err := writeTable(*tableFile, text); err != nil {
			t.Error(err)
		}
	})
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			if !f.alone {
				t.Parallel()
			}
			r := f.run(t)
			mu.Lock()
			defer mu.Unlock()
			rows[f.name] = r
		})
	}
}

// used notes the memory of a Redis.
func (s *scene) used(srv *testservers.RedisServer) {
	s.t.Helper()
	fields, err := srv.Info("memory")
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := strconv.ParseInt(fields["used_memory"], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	s.row.redis = n
}

func redisKilled(t *testing.T) *row {
	srv := testservers.Redis(t, testservers.AppendOnly())
	s := newScene(t, three(addr(srv.Addr()))...)
	s.begin(func() error { srv.Kill(); return nil })
	s.awaitLocal()
	s.lasts(4 * time.Second)
	s.end(func() error { return srv.Restart(testservers.KeepData) })
	s.finish()
	s.used(srv)
	return s.row
}

// redisStopped: connections stand and nothing is answered.
func redisStopped(t *testing.T) *row {
	srv := testservers.Redis(t)
	s := newScene(t, three(addr(srv.Addr()))...)
	s.begin(srv.Pause)
	s.awaitLocal()
	s.lasts(time.Until(s.began.Add(10 * time.Second)))
	s.end(srv.Resume)
	s.finish()
	s.used(srv)
	return s.row
}

func redisRestarted(t *testing.T) *row {
	srv := testservers.Redis(t, testservers.AppendOnly())
	s := newScene(t, three(addr(srv.Addr()))...)
	s.begin(func() error { return srv.Restart(testservers.KeepData) })
	s.end()
	s.finish()
	s.used(srv)
	return s.row
}

// redisEmptied: what was spent is forgotten, so the limits are granted once more.
func redisEmptied(t *testing.T) *row {
	srv := testservers.Redis(t)
	s := newScene(t, three(addr(srv.Addr()))...)
	s.renewed = 1
	s.begin(func() error { return srv.Restart(testservers.Empty) })
	s.end()
	s.finish()
	s.used(srv)
	return s.row
}

// redisStalled: a stop as long as that of a fork opens no breaker, where it is Redis alone that stops.
func redisStalled(t *testing.T) *row {
	for tries := 5; ; tries-- {
		s := stallThrice(t)
		if s.row.opened == 0 {
			return s.row
		}
		if !s.heldUp() || tries == 1 {
			t.Errorf("the breaker opened %d times", s.row.opened)
			return s.row
		}
		t.Logf("the breaker opened %d times, and instances were kept from running; once more", s.row.opened)
	}
}

func stallThrice(t *testing.T) *scene {
	t.Helper()
	srv := testservers.Redis(t)
	s := newScene(t, three(addr(srv.Addr()))...)
	stall := func() error {
		_, err := srv.Do("CLIENT", "PAUSE", 250)
		return err
	}
	s.begin(stall)
	s.lasts(1500 * time.Millisecond)
	s.must(stall)
	s.lasts(1500 * time.Millisecond)
	s.must(stall)
	s.lasts(250 * time.Millisecond)
	s.end()
	s.finish()
	s.used(srv)
	return s
}

// failedOver: Sentinel promotes a replica, which may lack the last writes; what they charged is granted once more.
func failedOver(t *testing.T) *row {
	g := testservers.Sentinel(t)
	s := newScene(t, three(at{addrs: g.Addrs(), master: g.Name()})...)
	s.renewed = 1
	var old *testservers.RedisServer
	s.begin(func() (err error) {
		old, err = g.KillPrimary()
		return err
	})
	now, err := g.AwaitFailover(old, patience)
	if err != nil {
		t.Fatal(err)
	}
	s.end()
	s.finish()
	s.used(now)
	return s.row
}

// outOfMemory: Redis has no room for what a charge writes, and says so.
func outOfMemory(t *testing.T) *row {
	srv := testservers.Redis(t)
	s := newScene(t, three(addr(srv.Addr()))...)
	limit := func(to int) func() error {
		return func() error {
			_, err := srv.Do("CONFIG", "SET", "maxmemory", to)
			return err
		}
	}
	s.begin(limit(1))
	s.awaitLocal()
	s.lasts(3 * time.Second)
	s.end(limit(0))
	s.finish()
	s.used(srv)
	return s.row
}

// readOnly: the primary has become a replica, of a server that is not there, and is made a primary again.
func readOnly(t *testing.T) *row {
	srv := testservers.Redis(t)
	s := newScene(t, three(addr(srv.Addr()))...)
	replicaOf := func(host, port string) func() error {
		return func() error {
			_, err := srv.Do("REPLICAOF", host, port)
			return err
		}
	}
	s.begin(replicaOf("127.0.0.1", "1"))
	s.awaitLocal()
	s.lasts(3 * time.Second)
	s.end(replicaOf("NO", "ONE"))
	s.finish()
	s.used(srv)
	return s.row
}
