package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/redisstore"
)

// TestSentinel: a failover under load; the store finds the new primary by itself.
func TestSentinel(t *testing.T) {
	group := testservers.Sentinel(t)
	s := open(t, redisstore.Config{Addrs: group.Addrs(), Master: group.Name()})
	awaitWorks(t, s)
	l := startLoad(s, headgate.MustParseLimit("fixed_window 100000/36500d"), 8, 50)
	l.awaitMore(t, 500)
	old, err := group.KillPrimary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := group.AwaitFailover(old, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	l.awaitMore(t, 500)
	l.end()
	if slowest := time.Duration(l.slowest.Load()); slowest > 3*time.Second {
		t.Errorf("a call took %s", slowest)
	}
	awaitWorks(t, s)
}

// TestCluster has all that needs a cluster, which takes long to start.
func TestCluster(t *testing.T) {
	cluster := testservers.Cluster(t)
	openHere := func(t testing.TB) headgate.Limiter {
		return open(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true, Timeout: 2 * time.Second})
	}
	t.Run("conformance", func(t *testing.T) {
		limitertest.Run(t, limitertest.Config{New: openHere, Sharded: true, Traces: 40})
	})
	t.Run("denied take gives back", func(t *testing.T) { testGiveBack(t, openHere(t)) })
	t.Run("migration", func(t *testing.T) { testMigration(t, cluster) })
	t.Run("failover", func(t *testing.T) {
		s := openHere(t)
		awaitWorks(t, s)
		l := startLoad(s, headgate.MustParseLimit("fixed_window 100000/36500d"), 8, 50)
		l.awaitMore(t, 500)
		old, err := cluster.KillPrimary(0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.AwaitFailover(0, old, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		l.awaitMore(t, 5000)
		l.end()
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
	s := open(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true, Timeout: 5 * time.Second, Namespace: namespace})
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
