package redisstore_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// testTryAgain: a take of several keys of which some have moved waits for the others (TRYAGAIN), charges once, and holds up
// none that has one key in the same slot of the cluster; where the keys do not come in time nothing was charged.
func testTryAgain(t *testing.T, cluster *testservers.RedisCluster) {
	namespace := newNamespace()
	open := func(timeout time.Duration) *redisstore.Store {
		return open(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true, Timeout: timeout, Namespace: namespace})
	}
	s, brief := open(recovery), open(time.Second)
	limit := headgate.MustParseLimit("fixed_window 10/36500d")
	several := []headgate.Charge{headgate.One("a", "k", limit), headgate.One("b", "k", limit)}
	one := headgate.One("single", "k", limit)
	must(t, s, several...)
	must(t, s, one)
	slot, err := cluster.SlotOf(redisstore.KeyOf(s, "a", "k"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := cluster.StartMigration(slot)
	if err != nil {
		t.Fatal(err)
	}
	do(t, m.From, "MIGRATE", "127.0.0.1", port(m.To), redisstore.KeyOf(s, "a", "k"), 0, 5000)
	var d headgate.Decision
	err = brief.Take(t.Context(), several, &d)
	for range 20 { // where the deadline cuts off one of the repetitions, nobody can know
		if headgate.CodeOf(err) == headgate.CodeIndeterminate {
			err = brief.Take(t.Context(), several, &d)
		}
	}
	if headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("while its keys are apart: %+v, %v", d, err)
	}
	waiting := make(chan error, 1)
	go func() {
		d, err := headgate.Take(context.Background(), s, several...)
		if err == nil && (!d.Allowed || d.Outcomes[0].Remaining != 8 || d.Outcomes[1].Remaining != 8) {
			t.Errorf("once they have moved: %+v", d)
		}
		waiting <- err
	}()
	for i := range int64(5) {
		start := time.Now()
		d, err := headgate.Take(t.Context(), s, one)
		if err != nil || d.Outcomes[0].Remaining != 8-i {
			t.Errorf("one key of the same slot, %d: %+v, %v after %s", i, d, err, time.Since(start))
		}
		if d, err := headgate.Take(t.Context(), s, headgate.One("new"+string(rune('0'+i)), "k", limit)); err != nil || d.Outcomes[0].Remaining != 9 {
			t.Errorf("a new key of the same slot, beside the take that waits: %+v, %v", d, err)
		}
	}
	select {
	case err := <-waiting:
		t.Errorf("the take did not wait: %v", err)
	default:
	}
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// port is that of a server on this machine.
func port(srv *testservers.RedisServer) string {
	_, port, _ := net.SplitHostPort(srv.Addr())
	return port
}

// clusterACL is what the documentation adds for a cluster.
var clusterACL = []string{"+cluster|slots", "+cluster|shards", "+cluster|nodes", "+asking"}

// testClusterACL: a user with the rules of the documentation can do everything on a cluster, also while a slot moves.
func testClusterACL(t *testing.T, cluster *testservers.RedisCluster) {
	for _, node := range cluster.Nodes {
		do(t, node, slices.Concat([]any{"ACL", "SETUSER", "gate", "on", ">pass"}, toAny(acl), toAny(clusterACL))...)
	}
	s := open(t, redisstore.Config{Addrs: cluster.Addrs(), Cluster: true, Username: "gate", Password: "pass", Namespace: "headgate"})
	everything(t, s)
	limit := headgate.MustParseLimit("fixed_window 10/36500d")
	must(t, s, headgate.One("x", "k1", limit), headgate.One("x", "k2", limit), headgate.One("x", "k3", limit))
	slot, err := cluster.SlotOf(redisstore.KeyOf(s, "moved", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := cluster.StartMigration(slot)
	if err != nil {
		t.Fatal(err)
	}
	if d := must(t, s, headgate.One("moved", "k1", limit)); d.Outcomes[0].Remaining != 9 { // by ASK
		t.Errorf("%+v", d)
	}
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	if d := must(t, s, headgate.One("moved", "k1", limit)); d.Outcomes[0].Remaining != 8 { // by MOVED
		t.Errorf("%+v", d)
	}
}

// TestSentinelACL: the same under Sentinel, with users of its own there.
func TestSentinelACL(t *testing.T) {
	group := testservers.Sentinel(t)
	primary, err := group.Primary()
	if err != nil {
		t.Fatal(err)
	}
	do(t, primary, slices.Concat([]any{"ACL", "SETUSER", "gate", "on", ">pass"}, toAny(acl), []any{"+role"})...)
	for _, sentinel := range group.Sentinels {
		do(t, sentinel, "ACL", "SETUSER", "watch", "on", ">word", "resetchannels", "allchannels", "-@all", "+hello", "+ping", "+sentinel", "+subscribe")
	}
	s := open(t, redisstore.Config{Addrs: group.Addrs(), Master: group.Name(), Username: "gate", Password: "pass",
		SentinelUsername: "watch", SentinelPassword: "word", Namespace: "headgate"})
	everything(t, s)
}
