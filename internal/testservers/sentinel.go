package testservers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SentinelGroup is a primary with two replicas, watched by three sentinels of which two decide. A primary that stops
// answering is replaced in about a second.
type SentinelGroup struct {
	// Nodes are the primary and its replicas, in the order of their start: see Primary.
	Nodes []*RedisServer
	// Sentinels are the watchers.
	Sentinels []*RedisServer
}

// sentinelTimings bring Sentinel's own intervals, made for networks, down to what one machine allows, in milliseconds, and
// keep it from pausing for 30 s (tilt mode) when the machine stalls. Redis before 7.0 does not know the command, and
// takes its usual ten seconds. The ping period is what it is because Sentinel promotes only replicas that it has heard of
// within five of them, and of a replica whose primary is down it hears once a second.
func sentinelTimings() []any {
	return []any{
		"SENTINEL", "DEBUG", "INFO-PERIOD", 200, "PING-PERIOD", 300, "ASK-PERIOD", 100, "PUBLISH-PERIOD", 200,
		"ELECTION-TIMEOUT", 1000, "TILT-TRIGGER", 60000,
	}
}

// Sentinel starts the group and waits until every sentinel knows every node and the replicas are in step. The options
// apply to the three nodes, not to the sentinels, and may not demand TLS or a password.
func Sentinel(tb TB, options ...RedisOption) *SentinelGroup {
	tb.Helper()
	g := &SentinelGroup{Nodes: []*RedisServer{Redis(tb, options...)}}
	primary := fmt.Sprintf("127.0.0.1 %d", g.Nodes[0].port)
	for range 2 {
		replica := append([]RedisOption{Directives("replicaof " + primary)}, options...)
		g.Nodes = append(g.Nodes, Redis(tb, replica...))
	}
	for range 3 {
		s := prepareRedis(tb)
		s.sentinel = true
		s.lines = []string{
			"bind 127.0.0.1", "daemonize no", fmt.Sprintf("sentinel monitor %s %s 2", g.Name(), primary),
			"sentinel down-after-milliseconds " + g.Name() + " 500", "sentinel failover-timeout " + g.Name() + " 2000",
		}
		s.startOrFail(tb)
		if _, err := s.Do(sentinelTimings()...); err != nil {
			tb.Logf("testservers: failovers will be slow: %v", err)
		}
		g.Sentinels = append(g.Sentinels, s)
	}
	if err := g.AwaitHealthy(startTimeout); err != nil {
		tb.Fatalf("%v", err)
	}
	return g
}

// Name returns the name by which clients ask the sentinels for the primary.
func (g *SentinelGroup) Name() string { return "headgate" }

// Addrs returns the addresses of the sentinels.
func (g *SentinelGroup) Addrs() []string { return addrs(g.Sentinels) }

func addrs(servers []*RedisServer) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}

// Primary returns the node that all sentinels name as the primary.
func (g *SentinelGroup) Primary() (*RedisServer, error) {
	var named string
	for _, s := range g.Sentinels {
		answer, err := s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name())
		if err != nil {
			return nil, err
		}
		addr := joinWords(answer, ":")
		if named != "" && named != addr {
			return nil, fmt.Errorf("testservers: the sentinels disagree: %s and %s", named, addr)
		}
		named = addr
	}
	for _, n := range g.Nodes {
		if n.Addr() == named {
			return n, nil
		}
	}
	return nil, fmt.Errorf("testservers: the sentinels name a stranger, %s", named)
}

// KillPrimary kills the primary (SIGKILL) and returns it. See AwaitFailover.
func (g *SentinelGroup) KillPrimary() (*RedisServer, error) {
	p, err := g.Primary()
	if err == nil {
		p.Kill()
	}
	return p, err
}

// AwaitFailover waits until all sentinels name a primary other than old that takes writes, and returns it.
func (g *SentinelGroup) AwaitFailover(old *RedisServer, within time.Duration) (*RedisServer, error) {
	var now *RedisServer
	err := pollFor(within, func() (err error) {
		if now, err = g.Primary(); err != nil {
			return err
		}
		if now == old {
			return errors.New("the primary is still the old one")
		}
		return roleIs(now, "master")
	})
	if err != nil {
		return nil, fmt.Errorf("testservers: no failover: %w", err)
	}
	return now, nil
}

func roleIs(s *RedisServer, role string) error {
	fields, err := s.Info("replication")
	if err == nil && fields["role"] != role {
		err = fmt.Errorf("the role of %s is %q, not %q", s.Addr(), fields["role"], role)
	}
	return err
}

// AwaitHealthy waits until one primary and two replicas in step are up and every sentinel knows that.
func (g *SentinelGroup) AwaitHealthy(within time.Duration) error {
	if err := pollFor(within, g.healthy); err != nil {
		return fmt.Errorf("testservers: sentinel group: %w", err)
	}
	return nil
}

func (g *SentinelGroup) healthy() error {
	primary, err := g.Primary()
	if err != nil {
		return err
	}
	fields, err := primary.Info("replication")
	if err != nil {
		return err
	}
	for i := range 2 {
		if replica := fields["slave"+strconv.Itoa(i)]; fields["role"] != "master" || !strings.Contains(replica, "state=online") {
			return fmt.Errorf("replica %d of %s is not online: %q", i, primary.Addr(), replica)
		}
	}
	for _, s := range g.Sentinels {
		if err := g.sentinelSees(s); err != nil {
			return fmt.Errorf("sentinel %s: %w", s.Addr(), err)
		}
	}
	return nil
}

func (g *SentinelGroup) sentinelSees(s *RedisServer) error {
	answer, err := s.Do("SENTINEL", "MASTER", g.Name())
	if err != nil {
		return err
	}
	state := fieldsOf(answer)
	for field, want := range map[string]string{"flags": "master", "num-slaves": "2", "num-other-sentinels": "2"} {
		if state[field] != want {
			return fmt.Errorf("%s is %q, not %q", field, state[field], want)
		}
	}
	answer, err = s.Do("SENTINEL", "REPLICAS", g.Name())
	if err != nil {
		return err
	}
	replicas, _ := answer.([]any)
	for _, r := range replicas {
		if state := fieldsOf(r); state["flags"] != "slave" || state["master-link-status"] != "ok" {
			return fmt.Errorf("replica %s: flags %q, link %q", state["name"], state["flags"], state["master-link-status"])
		}
	}
	return nil
}

// fieldsOf reads a flat list of names and values.
func fieldsOf(answer any) map[string]string {
	list, _ := answer.([]any)
	fields := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		fields[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return fields
}

func joinWords(answer any, separator string) string {
	list, _ := answer.([]any)
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = fmt.Sprint(w)
	}
	return strings.Join(words, separator)
}
