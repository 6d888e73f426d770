package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestOnRedis runs what a user runs with --store on one node that wants a password, and on a cluster.
func TestOnRedis(t *testing.T) {
	t.Parallel()
	single := testservers.Redis(t, testservers.ACL("gate", "hunter2"))
	cluster := testservers.Cluster(t)
	for name, store := range map[string]string{
		"single":  "redis://gate:hunter2@" + single.Addr(),
		"cluster": "redis+cluster://" + strings.Join(cluster.Addrs(), ","),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := runBinary(t, []string{"HEADGATE_STORE=" + store}, "test", "pass.test", "fail.test"); got.code != exitNo ||
				!strings.HasSuffix(got.stdout, "FAIL: 2 files, 6 lines, 2 failed\n") || got.stderr != "" {
				t.Errorf("test: got %s", got)
			}
			var got outcome
			var s demo.Summary
			for seconds := 2; s.Allowed == 0 || s.Denied == 0; seconds *= 2 { // a busy machine may have no time for two in which to deny somebody
				got = runBinary(t, nil, "demo", "--store", store, "--duration", fmt.Sprint(seconds, "s"), "--json", "--shoppers", "40", "--bots", "10", "--stock", "5")
				if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != exitGood || seconds > 30 {
					t.Fatalf("demo of %d s, in which somebody is to be allowed something and somebody denied: %v: %s", seconds, err, got)
				}
			}
			if s.Sale.Oversold != 0 || strings.Contains(got.String(), "hunter2") {
				t.Errorf("demo: got %s", got)
			}
			if !strings.HasPrefix(s.Store, "redis") || !strings.Contains(s.Store, " namespace demo-") {
				t.Errorf("demo: the store is called %q", s.Store)
			}
		})
	}
	if got := runBinary(t, nil, "test", "--store", "redis://gate:hunter3@"+single.Addr(), "pass.test"); got.code != exitNo ||
		got.stdout != "" || !strings.Contains(got.stderr, "redis://gate:***@"+single.Addr()+": the user name or the password is wrong") {
		t.Errorf("a wrong password: got %s", got)
	}
}

// TestStoreAway: a store that cannot be reached ends the command with one sentence that shows no password.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"test", "pass.test"}, {"demo"}} {
		got := runBinary(t, []string{"HEADGATE_STORE=redis://me:hunter2@127.0.0.1:1"}, args...)
		if got.code != exitNo || got.stdout != "" || strings.Contains(got.stderr, "hunter2") ||
			!strings.HasPrefix(got.stderr, "headgate: store redis://me:***@127.0.0.1:1: ") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: got %s", args[0], got)
		}
	}
}
