package testservers

import (
	"errors"
	"fmt"
	"slices"
)

// Migration is a slot on its way from one primary to another. While it is under way the source answers ASK for keys that
// are not there any more, and TRYAGAIN to commands on several keys of which only some are.
type Migration struct {
	// From and To are the primaries.
	From, To *RedisServer
	cluster  *RedisCluster
	slot     int
}

// StartMigration opens the migration of a slot to the next primary; no key has moved yet.
func (c *RedisCluster) StartMigration(slot int) (*Migration, error) {
	from, err := c.Owner(slot)
	if err != nil {
		return nil, err
	}
	to, err := c.nextPrimary(from)
	if err != nil {
		return nil, err
	}
	m := &Migration{From: from, To: to, cluster: c, slot: slot}
	// The target first: it must be ready when the source sends the first client to it.
	if _, err := to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from]); err != nil {
		return nil, fmt.Errorf("testservers: slot %d: %w", slot, err)
	}
	if _, err := from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to]); err != nil {
		return nil, fmt.Errorf("testservers: slot %d: %w", slot, err)
	}
	return m, nil
}

func (c *RedisCluster) nextPrimary(from *RedisServer) (*RedisServer, error) {
	at := slices.Index(c.Nodes, from)
	for i := range c.Nodes {
		n := c.Nodes[(at+1+i)%len(c.Nodes)]
		if n != from && roleIs(n, "master") == nil {
			return n, nil
		}
	}
	return nil, errors.New("testservers: no other primary runs")
}

// Move moves at most limit keys and returns how many it moved; 0 means that none are left.
func (m *Migration) Move(limit int) (int, error) {
	answer, err := m.From.Do("CLUSTER", "GETKEYSINSLOT", m.slot, limit)
	if err != nil {
		return 0, fmt.Errorf("testservers: slot %d: %w", m.slot, err)
	}
	keys, _ := answer.([]any)
	if len(keys) == 0 {
		return 0, nil
	}
	command := append([]any{"MIGRATE", "127.0.0.1", m.To.port, "", 0, 5000, "KEYS"}, keys...)
	if _, err := m.From.Do(command...); err != nil {
		return 0, fmt.Errorf("testservers: slot %d: %w", m.slot, err)
	}
	return len(keys), nil
}

// Finish moves what is left and hands the slot over.
func (m *Migration) Finish() error {
	for {
		// Under load no new key appears at the source: for a key it does not have it sends clients to the target.
		moved, err := m.Move(100)
		if err != nil {
			return err
		}
		if moved == 0 {
			break
		}
	}
	others := slices.DeleteFunc(slices.Clone(m.cluster.Nodes), func(n *RedisServer) bool {
		return n == m.To || n == m.From || roleIs(n, "master") != nil
	})
	for _, n := range append([]*RedisServer{m.To, m.From}, others...) {
		if _, err := n.Do("CLUSTER", "SETSLOT", m.slot, "NODE", m.cluster.ids[m.To]); err != nil {
			return fmt.Errorf("testservers: slot %d: %w", m.slot, err)
		}
	}
	return nil
}

// MigrateSlot moves a slot with all its keys to the next primary.
func (c *RedisCluster) MigrateSlot(slot int) (*Migration, error) {
	m, err := c.StartMigration(slot)
	if err == nil {
		err = m.Finish()
	}
	return m, err
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
