package sqlorders

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/testservers"
)

// BenchmarkDecide decides batches of 1, 32 and 256 jobs, on databases whose commits are durable. Figures are jobs a second.
func BenchmarkDecide(b *testing.B) {
	durable := map[string]func(b *testing.B) string{
		"sqlite":   func(b *testing.B) string { return "sqlite:" + b.TempDir() + "/orders.db" },
		"postgres": func(b *testing.B) string { return testservers.Postgres(b, testservers.DurableData()).Database(b) },
		"mariadb":  func(b *testing.B) string { return testservers.MariaDB(b, testservers.DurableData()).Database(b) },
	}
	for _, name := range heavyDBs {
		b.Run(name, func(b *testing.B) {
			o, err := Open(b.Context(), Config{URL: durable[name](b)})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = o.Close() })
			sale := testSale("sale")
			for i := range sale.SKUs {
				sale.SKUs[i].Total = flashsale.MaxTotal
			}
			if err := o.CreateSale(b.Context(), sale); err != nil {
				b.Fatal(err)
			}
			if _, err := o.db.ExecContext(b.Context(), "UPDATE sale_sku SET status = 'open', rebuilding = 0"); err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			for _, size := range []int{1, 32, 256} {
				b.Run(fmt.Sprint(size), func(b *testing.B) { benchDecide(b, o, size, &n) })
			}
		})
	}
}

func benchDecide(b *testing.B, o *Orders, size int, made *atomic.Int64) {
	b.Helper()
	for b.Loop() {
		batch := jobs(fmt.Sprintf("r%d-", made.Add(1)), size)
		decided, err := o.Decide(b.Context(), &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: batch})
		if err != nil || decided[0].State != flashsale.Reserved {
			b.Fatalf("%+v, %v", decided[0], err)
		}
	}
	b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
