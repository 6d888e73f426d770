package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/redisstore"
)

// TestSentinel: a failover under load; the store finds the new primary by itself, and what the replicas knew of is not
// admitted again.
func TestSentinel(t *testing.T) {
	group := testservers.Sentinel(t)
	s := openGuarded(t, redisstore.Config{Addrs: group.Addrs(), Master: group.Name()})
	awaitWorks(t, s)
	first, err := group.Primary()
	if err != nil {
		t.Fatal(err)
	}
	s.knows(t, first.Addr(), "")
	testFailover(t, s, failover{
		sync: func() error {
			primary, err := group.Primary()
			if err != nil {
				return err
			}
			return primary.AwaitReplicas(2, recovery)
		},
		kill: group.KillPrimary,
		await: func(old *testservers.RedisServer) error {
			_, err := group.AwaitFailover(old, recovery)
			return err
		},
	})
	second, err := group.Primary()
	if err != nil {
		t.Fatal(err)
	}
	s.knows(t, second.Addr(), first.Addr())
}

// failover is how one is brought about.
type failover struct {
	sync  func() error
	kill  func() (*testservers.RedisServer, error)
	await func(old *testservers.RedisServer) error
}

// testFailover uses some of a quota, lets the replicas know of it, kills a primary under load, and uses the rest: calls end in time,
// all recovers, and no unit that was charged before is admitted twice.
func testFailover(t *testing.T, s headgate.Limiter, f failover) {
	t.Helper()
	limit := headgate.MustParseLimit("fixed_window 300/36500d")
	before := startLoad(s, limit, 8, 20) // 6,000 in all
	before.awaitMore(t, 3000)
	before.end()
	if err := f.sync(); err != nil {
		t.Fatal(err)
	}
	other := startLoad(headgate.Limiter(aside{s}), headgate.MustParseLimit("fixed_window 100000/36500d"), 4, 50)
	other.awaitMore(t, 100)
	old, err := f.kill()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.await(old); err != nil {
		t.Fatal(err)
	}
	awaitWorks(t, s)
	after := startLoad(s, limit, 8, 20)
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), recovery)
	defer cancel()
	err = testservers.Poll(ctx, func() error { // a breaker may keep some keys for a while
		if used := before.allowed.Load() + before.unsure.Load() + after.allowed.Load() + after.unsure.Load(); after.denied.Load() < 6000 || used < 6000 {
			return fmt.Errorf("%d allowed and %d denied", used, after.denied.Load())
		}
		return nil
	})
	if err != nil {
		t.Errorf("the quota is not used up: %v", err)
	}
	t.Logf("used up %s after the failover", time.Since(start).Round(time.Millisecond))
	after.end()
	other.end()
	allowed, unsure := before.allowed.Load()+after.allowed.Load(), before.unsure.Load()+after.unsure.Load()
	if allowed > 6000 || allowed+unsure < 6000 {
		t.Errorf("%d allowed and %d unknown of 6000", allowed, unsure)
	}
	if other.unsure.Load()+other.failed.Load() == 0 {
		t.Error("nobody noticed the failover: it was not under load")
	}
	for _, l := range []*load{before, other, after} {
		if slowest := time.Duration(l.slowest.Load()); slowest > tooSlow {
			t.Errorf("a call took %s", slowest)
		}
	}
}

// aside takes the same charges in another slot.
type aside struct{ headgate.Limiter }

func (a aside) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	for i := range charges {
		charges[i].Slot = "aside"
	}
	return a.Limiter.Take(ctx, charges, d)
}

// TestCluster has all that needs a cluster, which takes long to start.
func TestCluster(t *testing.T) {
	cluster := testservers.Cluster(t)
	if s, err := redisstore.New(t.Context(), redisstore.Config{Addrs: cluster.Addrs()[:1]}); err == nil || !strings.Contains(err.Error(), "redis+cluster://") {
		t.Errorf("a node of a cluster taken for a lone Redis: got %v, %v", s, err)
	}
	openHere := func(t testing.TB) headgate.Limiter {
		return open(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true, Timeout: time.Minute})
	}
	t.Run("conformance", func(t *testing.T) {
		limitertest.Run(t, limitertest.Config{New: openHere, Sharded: true, Traces: 40})
	})
	t.Run("denied take gives back", func(t *testing.T) { testGiveBack(t, openHere(t)) })
	t.Run("migration", func(t *testing.T) { testMigration(t, cluster) })
	t.Run("keys of one take apart", func(t *testing.T) { testTryAgain(t, cluster) })
	t.Run("rights", func(t *testing.T) { testClusterACL(t, cluster) })
	t.Run("nodes", func(t *testing.T) { testClusterNodes(t, cluster) })
	t.Run("fleet", func(t *testing.T) { testBeat(t, openHere(t).(*redisstore.Store)) })
	t.Run("breaker", func(t *testing.T) { testClusterBreaker(t, cluster) })
	t.Run("failover", func(t *testing.T) {
		s := openGuarded(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true})
		awaitWorks(t, s)
		testFailover(t, s, failover{
			sync: func() error {
				for slot := 0; slot < 16384; slot += 1024 {
					owner, err := cluster.Owner(slot)
					if err == nil {
						err = owner.AwaitReplicas(1, recovery)
					}
					if err != nil {
						return err
					}
				}
				return nil
			},
			kill: func() (*testservers.RedisServer, error) { return cluster.KillPrimary(0) },
			await: func(old *testservers.RedisServer) error {
				_, err := cluster.AwaitFailover(0, old, recovery)
				return err
			},
		})
	})
}

// testGiveBack: over many shards a denied take leaves nothing charged, in any mode, and keeps the slots held before it.
func testGiveBack(t *testing.T, s headgate.Limiter) {
	limit := headgate.MustParseLimit("fixed_window 3/36500d")
	closed := headgate.MustParseLimit("fixed_window 0/36500d")
	slots := headgate.MustParseLimit("concurrency 2 ttl=1h")
	hold := headgate.Charge{Slot: "hold", Key: "holder", Limit: slots, Cost: 1, Holder: "a"}
	must(t, s, hold)
	charges := []headgate.Charge{hold}
	for i := range 20 {
		c := headgate.One("s", "key"+strconv.Itoa(i), limit)
		c.Mode = headgate.Mode(i % 4)
		charges = append(charges, c)
	}
	denied := append(append([]headgate.Charge(nil), charges...), headgate.One("closed", "x", closed))
	d := must(t, s, denied...)
	if d.Allowed || d.Binding != len(denied)-1 {
		t.Fatalf("the take was not denied by its last charge: %+v", d)
	}
	for i := range charges[1:] {
		if o := d.Outcomes[1+i]; o.Remaining != 3 || o.Receipt.Charged != 0 {
			t.Errorf("charge %d of a denied take: %+v", 1+i, o)
		}
	}
	d = must(t, s, charges...)
	for i, c := range charges[1:] {
		want := int64(1)
		if c.Mode == headgate.Check {
			want = 0
		}
		if o := d.Outcomes[1+i]; !d.Allowed || o.Receipt.Charged != want || o.Remaining != 3-want {
			t.Errorf("%s after a denied take: %+v", c.Mode, o)
		}
	}
	second := hold
	second.Holder = "b"
	if d := must(t, s, second); d.Outcomes[0].Remaining != 0 {
		t.Errorf("the slot held before the denied take was freed: %+v", d)
	}
}

// testMigration moves slots under load: nothing fails, and exactly as many are admitted as the limit says.
func testMigration(t *testing.T, cluster *testservers.RedisCluster) {
	namespace := newNamespace()
	s := open(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true, Namespace: namespace})
	l := startLoad(s, headgate.MustParseLimit("fixed_window 500/36500d"), 16, 20)
	l.awaitMore(t, 500)
	for key := range 6 {
		slot, err := cluster.SlotOf(redisstore.KeyOf(s, "load", "k"+strconv.Itoa(key)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := cluster.StartMigration(slot)
		if err != nil {
			t.Fatal(err)
		}
		l.awaitMore(t, 200)
		if err := m.Finish(); err != nil {
			t.Fatal(err)
		}
		l.awaitMore(t, 200)
	}
	for l.denied.Load() < 100 {
		l.awaitMore(t, 100)
	}
	ctx, cancel := context.WithTimeout(t.Context(), recovery)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		if l.allowed.Load()+l.unsure.Load() < 10_000 {
			return errors.New("not all quota is used")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	l.end()
	if l.failed.Load()+l.unsure.Load() > 0 || l.allowed.Load() != 10_000 {
		t.Errorf("%d failed, %d unknown, %d allowed of 10000", l.failed.Load(), l.unsure.Load(), l.allowed.Load())
	}
}
