// Package stocktest judges stocks of a flash sale: whatever implements the ports must pass [Exercise], in memory or over a network. Its
// clock is virtual, its keys are its own (a new sale for every test), and it looks at nothing but the ports.
package stocktest

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Stock is all that a store of stock can do.
type Stock interface {
	flashsale.Stock
	flashsale.Queue
	flashsale.Loader
}

// Open makes a stock whose clock is now, and closes it when t ends. It is called once for each test; the stocks may all be of one store.
type Open func(t *testing.T, now func() time.Time) Stock

// test is one test of the suite, on a sku of its own that nothing is loaded into.
type test struct {
	name string
	run  func(d *desk)
}

// Exercise holds a stock to the contract in flashsale/stock.go. Seeds of its random part are printed when it fails, and replayed with
// -rapid.seed; the flags of rapid say how long it runs.
func Exercise(t *testing.T, open func(t *testing.T, now func() time.Time) Stock) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"reserve", reserveTests()},
		{"refuse", refusalTests()},
		{"apply", applyTests()},
		{"operate", operateTests()},
		{"pull", pullTests()},
		{"dead", deadTests()},
		{"look", lookTests()},
		{"lull", lullTests()},
		{"epochs", epochTests()},
		{"load", loadTests()},
		{"hostile", hostileTests()},
		{"parallel", parallelTests()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) { c.run(newDesk(t, open)) })
			}
		})
	}
	t.Run("random", func(t *testing.T) { random(t, open) })
}
