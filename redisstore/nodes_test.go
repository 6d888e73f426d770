package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// spy is an Observer that notes the nodes of calls, and a Breaker of which nodes can be shut off by hand.
type spy struct {
	mu    sync.Mutex
	nodes map[string]int  // guarded by mu
	shut  map[string]bool // guarded by mu
}

func (s *spy) Call(node, _ string, _ int, _ time.Duration, _ headgate.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[string]int{}
	}
	s.nodes[node]++
}
func (*spy) Failed(headgate.Code, bool) {}
func (*spy) UnknownStates(int)          {}
func (*spy) NewKey(string)              {}

func (s *spy) Open(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shut[node]
}

func (s *spy) shutOff(nodes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = map[string]bool{}
	for _, n := range nodes {
		s.shut[n] = true
	}
}

// take returns the nodes that were called since the last time.
func (s *spy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer clear(s.nodes)
	return slices.Sorted(maps.Keys(s.nodes))
}

// TestNodeNames: one Redis is called by its configured address, that of a lent client is not known.
func TestNodeNames(t *testing.T) {
	t.Parallel()
	addr := shared.Get(t).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	for want, cfg := range map[string]redisstore.Config{addr: {}, "": {Client: goRedis{client}}} {
		seen := &spy{}
		cfg.Observer, cfg.Breaker, cfg.Timeout = seen, seen, time.Minute
		s := open(t, cfg)
		everything(t, s)
		if _, _, err := s.Beat(t.Context(), "i", time.Second); err != nil {
			t.Error(err)
		}
		if got := seen.take(); !slices.Equal(got, []string{want}) {
			t.Errorf("called %q, want %q", got, want)
		}
		if err := s.Probe(t.Context(), want); err != nil {
			t.Error(err)
		}
		if got := seen.take(); len(got) != 0 {
			t.Errorf("a probe is told as a call of %q", got)
		}
		seen.shutOff(want)
		if err := s.Probe(t.Context(), want); err != nil {
			t.Errorf("past the breaker: %v", err)
		}
		if err := s.Probe(t.Context(), "192.0.2.1:6379"); !errors.Is(err, redisstore.ErrNotServing) || !isGone(err) {
			t.Errorf("another node: %v", err)
		}
	}
}

// isGone asks as a breaker does that does not know this package.
func isGone(err error) bool {
	var e interface{ Gone() bool }
	return errors.As(err, &e) && e.Gone()
}

// TestProbe: a node that cannot write, has no memory, stands still or is dead does not pass; when it is well again it does.
func TestProbe(t *testing.T) {
	t.Parallel()
	srv, primary := testservers.Redis(t), testservers.Redis(t)
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Timeout: time.Second})
	awaitWorks(t, s)
	probe := func() error { return s.Probe(t.Context(), srv.Addr()) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(probe())
	for _, c := range []struct {
		name, says string
		code       headgate.Code
		harm, heal func()
	}{
		{"read-only", "replica", headgate.CodeUnavailable,
			func() { do(t, srv, "REPLICAOF", "127.0.0.1", port(primary)) }, func() { do(t, srv, "REPLICAOF", "NO", "ONE") }},
		{"out of memory", "maxmemory", headgate.CodeUnavailable,
			func() { do(t, srv, "CONFIG", "SET", "maxmemory", "1") }, func() { do(t, srv, "CONFIG", "SET", "maxmemory", "0") }},
		{"stopped", "no answer", headgate.CodeIndeterminate,
			func() { must(srv.Pause()) }, func() { must(srv.Resume()) }},
		{"dead", "", "", // the first to notice a connection that is cut cannot know whether it was in time
			func() { srv.Kill() }, func() { must(srv.Restart(!testservers.KeepData)) }},
	} {
		c.harm()
		for i := range 3 {
			start := time.Now()
			err := probe()
			if err == nil || !strings.Contains(err.Error(), c.says) || (c.code != "" && headgate.CodeOf(err) != c.code) {
				t.Errorf("%s, probe %d: %v", c.name, i, err)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("%s, probe %d took %s", c.name, i, took)
			}
		}
		c.heal()
		ctx, cancel := context.WithTimeout(t.Context(), recovery)
		if err := testservers.Poll(ctx, probe); err != nil {
			t.Errorf("%s, then healed: %v", c.name, err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Probe(ctx, srv.Addr()); err == nil {
		t.Error("a probe without any time succeeded")
	}
	must(s.Close())
	if err := probe(); headgate.CodeOf(err) != headgate.CodeClosed {
		t.Errorf("after the close: %v", err)
	}
}

// TestProbesHang: probes that hang in the client are bounded, and hold up nobody.
func TestProbesHang(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	s := open(t, redisstore.Config{Client: hanging{block}, Timeout: 50 * time.Millisecond})
	var codes []headgate.Code
	for range 10 {
		codes = append(codes, headgate.CodeOf(s.Probe(t.Context(), "")))
	}
	close(block)
	want := slices.Concat(slices.Repeat([]headgate.Code{headgate.CodeIndeterminate}, 8), slices.Repeat([]headgate.Code{headgate.CodeOverloaded}, 2))
	if !slices.Equal(codes, want) {
		t.Errorf("%q, want %q", codes, want)
	}
}

// hanging is a Client that does not keep to deadlines.
type hanging struct{ until chan struct{} }

func (h hanging) EvalSHA(context.Context, string, []string, string) (string, error) {
	<-h.until
	return "", errors.New("too late")
}

func (h hanging) Eval(ctx context.Context, script string, keys []string, arg string) (string, error) {
	return h.EvalSHA(ctx, script, keys, arg)
}

// testClusterNodes: calls are put down to the primary that serves their keys; a take over several nodes is not made if one of them
// is shut off, and others are.
func testClusterNodes(t *testing.T, cluster *testservers.RedisCluster) {
	seen := &spy{}
	s := open(t, redisstore.Config{Addrs: cluster.Addrs()[:1], Cluster: true, Observer: seen, Breaker: seen})
	limit := headgate.MustParseLimit("fixed_window 1000/1h")
	byNode := map[string]headgate.Charge{}
	for i := range 40 {
		c := headgate.One("s", "k"+strconv.Itoa(i), limit)
		must(t, s, c)
		slot, err := cluster.SlotOf(redisstore.KeyOf(s, c.Slot, c.Key))
		if err != nil {
			t.Fatal(err)
		}
		owner, err := cluster.Owner(slot)
		if err != nil {
			t.Fatal(err)
		}
		if got := seen.take(); !slices.Equal(got, []string{owner.Addr()}) {
			t.Fatalf("key %d was put down to %q, and lies on %s", i, got, owner.Addr())
		}
		byNode[owner.Addr()] = c
	}
	nodes := slices.Sorted(maps.Keys(byNode))
	if len(nodes) != 3 {
		t.Fatalf("40 keys lie on %q", nodes)
	}
	var all []headgate.Charge
	for _, node := range nodes {
		all = append(all, byNode[node])
		if err := s.Probe(t.Context(), node); err != nil {
			t.Errorf("probe of %s: %v", node, err)
		}
	}
	seen.shutOff(nodes[1])
	var d headgate.Decision
	if err := s.Take(t.Context(), all, &d); !errors.Is(err, redisstore.ErrBreakerOpen) {
		t.Errorf("a take over all nodes, one of which is shut off: %v", err)
	}
	if got := seen.take(); len(got) != 0 {
		t.Errorf("it was sent to %q", got)
	}
	must(t, s, all[0])
	must(t, s, all[2])
	seen.take()
	seen.shutOff()
	must(t, s, all...)
	if got := seen.take(); !slices.Equal(got, nodes) {
		t.Errorf("with all of them well it was sent to %q", got)
	}
}

// testClusterBreaker: of a cluster only the node that has stopped is shut off, and it comes back. Where the machine has little time for it,
// another one may seem to have stopped too, which is tried again.
func testClusterBreaker(t *testing.T, cluster *testservers.RedisCluster) {
	g := openGuarded(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true})
	awaitWorks(t, g)
	l := startLoad(g, headgate.MustParseLimit("token_bucket 100/s"), 200, 1000)
	defer l.end()
	for tries := 10; ; tries-- {
		l.awaitMore(t, 5000)
		h := watchHiccups()
		wrong := g.stopOne(t, cluster, l)
		if kept := h.end(); wrong == "" {
			break
		} else if kept < 20*time.Millisecond || tries == 1 {
			t.Error(wrong)
			break
		}
		t.Log(wrong)
	}
	if err := cluster.AwaitHealthy(recovery); err != nil {
		t.Fatal(err)
	}
}

// stopOne stops one node until it is shut off and lets it go on, and returns what is wrong with the states of all.
func (g *guarded) stopOne(t *testing.T, cluster *testservers.RedisCluster, l *load) (wrong string) {
	t.Helper()
	ill, err := cluster.Owner(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := ill.Pause(); err != nil {
		t.Fatal(err)
	}
	took := g.awaitLost(t, true)
	if g.breakers.Open(ill.Addr()) {
		l.awaitMore(t, 1000) // on the others
	}
	states := g.breakers.States()
	if err := ill.Resume(); err != nil {
		t.Fatal(err)
	}
	back := g.awaitLost(t, false)
	for _, state := range states {
		if state.Open != (state.Node == ill.Addr()) {
			wrong = fmt.Sprintf("with %s stopped: %+v", ill.Addr(), state)
		}
	}
	t.Logf("open after %s, closed %s after the return", took.Round(time.Millisecond), back.Round(time.Millisecond))
	return wrong
}
