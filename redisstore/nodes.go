package redisstore

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Where the lanes' calls go is known without asking of one Redis, from the client under Sentinel, and from any node of a cluster, which
// one goroutine asks: when the store opens, every learnEvery, and while calls fail or are barred. The client learns the same by
// itself and does not say what it knows; so for the second or so of a failover a call may be put down to the node that is
// next, where it went to the one before.

const (
	// learnEvery is the time between questions while all is well, learnGap the least while it is not.
	learnEvery = 10 * time.Second
	learnGap   = 200 * time.Millisecond
	// learnFrom is how many nodes are asked each time, one after the other, until one answers.
	learnFrom = 3
	// maxAsked bounds the questions that have not come back.
	maxAsked = 16
)

// followNodes keeps the lanes' nodes up to date until the store closes.
func (s *Store) followNodes() {
	defer s.senders.Done()
	tick := time.NewTicker(learnEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
		case <-s.doubted:
		}
		if !s.learn(s.base) {
			s.doubt()
		}
		if !sleep(s.base, learnGap) {
			return
		}
	}
}

// doubt says that the lanes' nodes may have changed. It takes no time to speak of.
func (s *Store) doubt() {
	select {
	case s.doubted <- struct{}{}:
	default:
	}
}

// learn finds out where the lanes' calls go, and reports whether it could.
func (s *Store) learn(ctx context.Context) bool {
	if !s.cfg.Cluster {
		for addr := range s.owned.Nodes() { // the primary
			s.lanes[0].goesTo(&addr)
		}
		return true
	}
	owners := s.askOwners(ctx)
	if owners == nil {
		return false
	}
	for i := range s.lanes {
		if owner := owners.of(s.slots[i]); owner != nil {
			s.lanes[i].goesTo(owner)
		}
	}
	return true
}

// goesTo sets the lane's node.
func (l *lane) goesTo(node *string) {
	if l.nodeName() != *node {
		l.node.Store(node)
	}
}

// owners says which node serves which slots of a cluster.
type owners []owner

type owner struct {
	first, last int64
	node        *string
}

func (all owners) of(slot int64) *string {
	for i := range all {
		if all[i].first <= slot && slot <= all[i].last {
			return all[i].node
		}
	}
	return nil
}

// askOwners asks nodes of the cluster until one answers; nil if none does. Those that the breaker has shut off are asked last.
func (s *Store) askOwners(ctx context.Context) owners {
	var order, shut []string
	nodes := s.owned.Nodes()
	for name := range nodes {
		if b := s.cfg.Breaker; b != nil && b.Open(name) {
			shut = append(shut, name)
		} else {
			order = append(order, name)
		}
	}
	order = append(order, shut...)
	for _, name := range order[:min(len(order), learnFrom)] {
		if all := s.askOne(ctx, name, nodes[name]); len(all) > 0 {
			return all
		}
	}
	return nil
}

// askOne asks one node, and leaves at the store's time-out whatever the client does.
func (s *Store) askOne(ctx context.Context, name string, node rueidis.Client) owners {
	if s.asked.Add(1) > maxAsked {
		s.asked.Add(-1)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	done := make(chan owners, 1)
	go func() {
		defer cancel()
		defer s.asked.Add(-1)
		reply, err := node.Do(ctx, node.B().ClusterSlots().Build()).ToArray()
		if err != nil {
			reply = nil
		}
		done <- readOwners(name, reply)
	}()
	select {
	case all := <-done:
		return all
	case <-ctx.Done():
	}
	select {
	case all := <-done: // whose end it was
		return all
	default:
		return nil
	}
}

// readOwners reads the answer of a node to CLUSTER SLOTS. A node that does not know its own address means the one it was asked at.
func readOwners(asked string, reply []rueidis.RedisMessage) (all owners) {
	names := map[string]*string{}
	for i := range reply {
		fields, err := reply[i].ToArray()
		if err != nil || len(fields) < 3 {
			continue
		}
		first, err1 := fields[0].AsInt64()
		last, err2 := fields[1].AsInt64()
		primary, err3 := fields[2].ToArray()
		if err1 != nil || err2 != nil || err3 != nil || len(primary) < 2 {
			continue
		}
		name := nodeAddr(asked, primary)
		if name == "" {
			continue
		}
		if names[name] == nil {
			names[name] = &name
		}
		all = append(all, owner{first, last, names[name]})
	}
	return all
}

// nodeAddr reads an address as the client does, which names its nodes by it; "" if it is not known.
func nodeAddr(asked string, fields []rueidis.RedisMessage) string {
	host, _ := fields[0].ToString() // may be null
	port, err := fields[1].AsInt64()
	switch {
	case err != nil || host == "?":
		return ""
	case host == "":
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

// startNodes finds out where calls go, as far as that can be known, and sees to it that it stays known.
func (s *Store) startNodes(ctx context.Context) {
	switch {
	case s.owned == nil:
	case !s.cfg.Cluster && s.cfg.Master == "":
		s.lanes[0].node.Store(&s.cfg.Addrs[0])
	default:
		for i, tag := range hashTags() {
			s.slots[i] = int64(crc16(tag) % clusterSlots)
		}
		s.doubted = make(chan struct{}, 1)
		if !s.learn(ctx) {
			s.doubt()
		}
		s.senders.Add(1)
		go s.followNodes()
	}
}

// laneTo returns a lane whose calls go to a node, another each time, and its number; nil if there is none.
func (s *Store) laneTo(node string) (*lane, int) {
	from := int(s.rotates.Add(1) % int64(len(s.lanes)))
	for i := range s.lanes {
		at := (from + i) % len(s.lanes)
		if s.lanes[at].nodeName() == node {
			return &s.lanes[at], at
		}
	}
	return nil, 0
}
