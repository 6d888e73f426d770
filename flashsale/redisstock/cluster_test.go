package redisstock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestCluster: the contract holds on a cluster; whoever takes a node of it for a lone Redis is told when it connects; a failover goes on with another run.
func TestCluster(t *testing.T) {
	cluster := testservers.Cluster(t)
	cfg := redisstock.Config{Addrs: cluster.Addrs(), Cluster: true}
	t.Run("contract", func(t *testing.T) {
		stocktest.Exercise(t, func(t *testing.T, now func() time.Time) stocktest.Stock {
			cfg := cfg
			cfg.Now = now
			return open(t, cfg)
		})
	})
	t.Run("refusals", func(t *testing.T) {
		stocktest.ExerciseRefusals(t, func(t *testing.T, now func() time.Time, bytes int) flashsale.RefusalLog {
			cfg := cfg
			cfg.Now, cfg.MaxRefusalBytes = now, int64(bytes)
			return open(t, cfg)
		})
	})
	t.Run("lone", func(t *testing.T) {
		for _, addr := range cluster.Addrs() { // at whichever node, and without a sku that it does not have
			s, err := redisstock.New(t.Context(), redisstock.Config{Addrs: []string{addr}, Timeout: patience, ConnectTimeout: patience})
			failsWith(t, err, flashsale.CodeUnavailable, "this is a cluster; set Config.Cluster")
			if s != nil {
				t.Errorf("node %s is taken for a lone Redis", addr)
			}
		}
	})
	t.Run("failover", func(t *testing.T) {
		cfg := cfg
		cfg.Namespace = "headgate"
		k := sell(t, open(t, cfg), 10, 1)
		k.accept("r1", "u1", 1)
		run := k.view().Run
		slot, err := cluster.SlotOf("headgate:{sale:sku}:epoch")
		k.check(err)
		old, err := cluster.KillPrimary(slot)
		k.check(err)
		if _, err := cluster.AwaitFailover(slot, old, time.Minute); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = testservers.Poll(ctx, func() error {
			v, err := k.stock.View(ctx, k.key)
			if err == nil && (v.Run == run || v.Run == "") {
				t.Errorf("the run is %q after a failover, and was %q", v.Run, run)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if err := open(t, cfg).Check(t.Context()); err == nil || strings.Count(err.Error(), "append-only") < 2 {
		t.Errorf("a check of a cluster whose primaries keep no file: %v", err)
	}
}
