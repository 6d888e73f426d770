//go:build linux

package testservers

import (
	"fmt"
	"strings"
	"testing"
)

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	g := Sentinel(t)
	if len(g.Addrs()) != 3 {
		t.Fatalf("sentinels: %v", g.Addrs())
	}
	first, err := g.Primary()
	if err != nil || first != g.Nodes[0] {
		t.Fatalf("primary: %v, %v", first, err)
	}
	mustDo(t, first, "SET", "k", "v")
	if err := first.AwaitReplicas(2, failoverTime); err != nil {
		t.Fatal(err)
	}
	killed, err := g.KillPrimary()
	if err != nil || killed != first {
		t.Fatalf("killed: %v, %v", killed, err)
	}
	second, err := g.AwaitFailover(first, failoverTime)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, second, "v", "GET", "k")
	expect(t, second, "OK", "SET", "k", "w")
	if err := first.Restart(KeepData); err != nil {
		t.Fatal(err)
	}
	if err := g.AwaitHealthy(failoverTime); err != nil { // the old primary is a replica now
		t.Fatal(err)
	}
	expect(t, first, "w", "GET", "k")
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	slot, err := c.SlotOf("k")
	if err != nil || slot != 7629 {
		t.Fatalf("slot %d, %v", slot, err)
	}
	owner, err := c.Owner(slot)
	if err != nil || owner != c.Nodes[1] {
		t.Fatalf("owner: %v, %v", owner, err)
	}
	mustDo(t, owner, "SET", "k", "v")
	if err := owner.AwaitReplicas(1, failoverTime); err != nil {
		t.Fatal(err)
	}
	if _, err := c.KillPrimary(slot); err != nil {
		t.Fatal(err)
	}
	now, err := c.AwaitFailover(slot, owner, failoverTime)
	if err != nil || now != c.Nodes[4] {
		t.Fatalf("new owner: %v, %v", now, err)
	}
	expect(t, now, "v", "GET", "k")
	if err := owner.Restart(KeepData); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitHealthy(failoverTime); err != nil {
		t.Fatal(err)
	}
}

func TestClusterMigration(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	slot, err := c.SlotOf("{k}")
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.Owner(slot)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		mustDo(t, from, "SET", fmt.Sprintf("{k}%d", i), i)
	}
	m, err := c.StartMigration(slot)
	if err != nil || m.From != from || m.To == from {
		t.Fatalf("migration: %+v, %v", m, err)
	}
	if moved, err := m.Move(10); err != nil || moved != 10 {
		t.Fatalf("moved %d, %v", moved, err)
	}
	if _, err := from.Do("GET", "{k}new"); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
		t.Fatalf("half-way, a key that has left: %v", err)
	}
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Do("GET", "{k}1"); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Fatalf("after it: %v", err)
	}
	expect(t, m.To, int64(250), "CLUSTER", "COUNTKEYSINSLOT", slot)
	if err := c.AwaitHealthy(failoverTime); err != nil {
		t.Fatal(err)
	}
}
