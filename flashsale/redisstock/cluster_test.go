package redisstock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestCluster: the contract holds on a cluster; a client that takes a node for a lone Redis is told; a failover goes on with another run.
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
	t.Run("lone", func(t *testing.T) {
		s := open(t, redisstock.Config{Addrs: cluster.Addrs()[:1]})
		moved := 0
		for i := range 8 {
			if _, err := s.View(t.Context(), flashsale.Key{Sale: "sale", SKU: fmt.Sprint("sku", i)}); err != nil {
				failsWith(t, err, flashsale.CodeUnavailable, "set Config.Cluster")
				moved++
			}
		}
		if moved == 0 {
			t.Error("eight skus lie on one of three primaries")
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
