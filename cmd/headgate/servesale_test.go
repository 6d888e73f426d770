package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
)

const (
	saleUnits    = 40
	saleShoppers = 120
)

// TestSaleThroughFaults: the binary is killed and started again during a sale, then Redis, then PostgreSQL. Everybody gets one
// final answer, all is sold, and nothing is broken.
func TestSaleThroughFaults(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t, testservers.AppendOnly(), testservers.Directives("appendfsync always"))
	database := testservers.Postgres(t, testservers.DurableData())
	s := newSaleFleet(t, 1, []string{"HEADGATE_DB=" + database.URL()}, "--sale-store", "redis://"+redis.Addr(), "--pay", "simulated")
	one := s.instances[0]
	s.run()
	s.create(saleUnits)
	one.operate("POST", "/spring/open", `{"reason": "it is time"}`)

	crowd := s.crowd("u", saleShoppers)
	var all sync.WaitGroup
	shopAll(&all, crowd)
	for _, fault := range []struct {
		after int64
		do    func() error
	}{
		{saleUnits / 8, func() error { one.kill(); one.run(); return nil }},
		{saleUnits / 3, func() error { redis.Kill(); return redis.Restart(testservers.KeepData) }},
		{saleUnits * 2 / 3, database.Restart},
	} {
		s.until("it is sold", func() error {
			if n := s.sold.Load(); n < fault.after {
				return fmt.Errorf("%d are sold", n)
			}
			return nil
		})
		if err := fault.do(); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	s.judge(crowd, saleUnits)
}
