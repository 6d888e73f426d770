package testservers

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ClusterSlots is the number of slots of every Redis Cluster.
const ClusterSlots = 16384

// RedisCluster is a cluster of three primaries with one replica each. A primary that stops answering is replaced after
// about two seconds.
type RedisCluster struct {
	// Nodes are the nodes: three that began as primaries, then three that began as their replicas, in the same order.
	Nodes []*RedisServer
	ids   map[*RedisServer]string
}

// Cluster starts a cluster and waits until every node finds it whole. The options apply to every node and may not demand
// TLS or a password.
func Cluster(tb TB, options ...RedisOption) *RedisCluster {
	tb.Helper()
	c := &RedisCluster{ids: map[*RedisServer]string{}}
	base := []RedisOption{Directives("cluster-enabled yes", "cluster-node-timeout 1500", "cluster-replica-validity-factor 0")}
	for range 6 {
		c.Nodes = append(c.Nodes, Redis(tb, append(base, options...)...))
	}
	if err := errors.Join(c.form(), c.AwaitHealthy(startTimeout)); err != nil {
		tb.Fatalf("testservers: cluster: %v", err)
	}
	return c
}

// Addrs returns the addresses of all nodes.
func (c *RedisCluster) Addrs() []string { return addrs(c.Nodes) }

// form deals the slots out, introduces the nodes to each other and makes the second half replicas of the first.
func (c *RedisCluster) form() error {
	for i, n := range c.Nodes {
		id, err := n.Do("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		c.ids[n] = fmt.Sprint(id)
		if _, err := n.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		if i < 3 {
			if _, err := n.Do(append([]any{"CLUSTER", "ADDSLOTS"}, slotShare(i)...)...); err != nil {
				return err
			}
		}
	}
	for _, n := range c.Nodes[1:] {
		if _, err := c.Nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", n.port); err != nil {
			return err
		}
	}
	for i, n := range c.Nodes[3:] {
		// It is refused until the replica has heard of its primary.
		err := pollFor(startTimeout, func() error {
			_, err := n.Do("CLUSTER", "REPLICATE", c.ids[c.Nodes[i]])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// slotShare returns the slots of the i-th of three primaries.
func slotShare(i int) []any {
	var slots []any
	for s := i * ClusterSlots / 3; s < (i+1)*ClusterSlots/3; s++ {
		slots = append(slots, s)
	}
	return slots
}

// AwaitHealthy waits until every node that runs knows all nodes, finds every slot served, names the same owners, and
// every replica that runs is in step with its primary.
func (c *RedisCluster) AwaitHealthy(within time.Duration) error {
	if err := pollFor(within, c.healthy); err != nil {
		return fmt.Errorf("testservers: cluster: %w", err)
	}
	return nil
}

func (c *RedisCluster) healthy() error {
	var layout string
	for _, n := range c.Nodes {
		if _, ended := n.Exited(); ended {
			continue
		}
		if err := c.nodeHealthy(n); err != nil {
			return fmt.Errorf("%s: %w", n.Addr(), err)
		}
		seen, err := slotOwners(n)
		switch {
		case err != nil:
			return err
		case layout == "":
			layout = seen
		case layout != seen:
			return fmt.Errorf("%s sees other owners: %q and %q", n.Addr(), seen, layout)
		}
	}
	return nil
}

func (c *RedisCluster) nodeHealthy(n *RedisServer) error {
	answer, err := n.Do("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	text, _ := answer.(string)
	for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes)), "cluster_size:3"} {
		if !strings.Contains(text, want+"\r\n") {
			return fmt.Errorf("not yet %s: %q", want, text)
		}
	}
	fields, err := n.Info("replication")
	if err == nil && fields["role"] == "slave" && fields["master_link_status"] != "up" {
		err = errors.New("the replica is not in step yet")
	}
	return err
}

// slotOwners returns which primary has which slots in the eyes of a node, and how many replicas that primary has.
func slotOwners(n *RedisServer) (string, error) {
	answer, err := n.Do("CLUSTER", "SLOTS")
	if err != nil {
		return "", err
	}
	ranges, _ := answer.([]any)
	owners := make([]string, 0, len(ranges))
	for _, r := range ranges {
		fields, _ := r.([]any)
		if len(fields) < 3 {
			return "", fmt.Errorf("malformed CLUSTER SLOTS: %v", r)
		}
		owners = append(owners, fmt.Sprintf("%v-%v %s +%d", fields[0], fields[1], joinWords(fields[2], " "), len(fields)-3))
	}
	return strings.Join(sorted(owners), "\n"), nil
}

// SlotOf returns the slot of a key.
func (c *RedisCluster) SlotOf(key string) (int, error) {
	for _, n := range c.Nodes {
		if answer, err := n.Do("CLUSTER", "KEYSLOT", key); err == nil {
			slot, _ := answer.(int64)
			return int(slot), nil
		}
	}
	return 0, errors.New("testservers: no node of the cluster answers")
}

// Owner returns the primary that serves a slot, as the primaries themselves say.
func (c *RedisCluster) Owner(slot int) (*RedisServer, error) {
	for _, n := range c.Nodes {
		mine, err := c.serves(n, slot)
		if err == nil && mine {
			return n, nil
		}
	}
	return nil, fmt.Errorf("testservers: no running node serves slot %d", slot)
}

// serves reads a node's own line of CLUSTER NODES: id address flags primary ping pong epoch link range…
func (c *RedisCluster) serves(n *RedisServer, slot int) (bool, error) {
	answer, err := n.Do("CLUSTER", "NODES")
	if err != nil {
		return false, err
	}
	text, _ := answer.(string)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.Contains(fields[2], "myself,master") {
			continue
		}
		for _, r := range fields[8:] {
			if inRange(r, slot) {
				return true, nil
			}
		}
	}
	return false, nil
}

func inRange(text string, slot int) bool {
	var first, last int
	if n, _ := fmt.Sscanf(text, "%d-%d", &first, &last); n == 1 {
		last = first
	} else if n < 2 {
		return false // a slot on the move: [slot->-id]
	}
	return first <= slot && slot <= last
}

// KillPrimary kills the primary of a slot (SIGKILL) and returns it. See AwaitFailover.
func (c *RedisCluster) KillPrimary(slot int) (*RedisServer, error) {
	owner, err := c.Owner(slot)
	if err == nil {
		owner.Kill()
	}
	return owner, err
}

// AwaitFailover waits until another node than old serves the slot and the cluster is whole for all that run, and returns
// that node.
func (c *RedisCluster) AwaitFailover(slot int, old *RedisServer, within time.Duration) (*RedisServer, error) {
	var now *RedisServer
	err := pollFor(within, func() (err error) {
		if now, err = c.Owner(slot); err != nil {
			return err
		}
		if now == old {
			return fmt.Errorf("%s still serves the slot", old.Addr())
		}
		return c.healthy()
	})
	if err != nil {
		return nil, fmt.Errorf("testservers: no failover: %w", err)
	}
	return now, nil
}
