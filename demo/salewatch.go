package demo

import (
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// saleWatch is told by the engine what leaves no row in SQL.
type saleWatch struct {
	duplicates atomic.Int64
}

// Reserved implements [engine.Observer]: it counts the calls of which no second unit was given to somebody who has, or had, one.
func (w *saleWatch) Reserved(_, outcome string, _ time.Duration) {
	if outcome == "known" || outcome == string(flashsale.CodePurchaseLimit) {
		w.duplicates.Add(1)
	}
}

// Moved implements [engine.Observer], as do the others: what they tell is in SQL, or for engineers on call.
func (*saleWatch) Moved(string, string, string, int64) {}

// Batch implements [engine.Observer].
func (*saleWatch) Batch(string, int, int, time.Duration, time.Duration) {}

// Backlog implements [engine.Observer].
func (*saleWatch) Backlog(string, int64, int64, int64, int64, time.Duration) {}

// Workers implements [engine.Observer].
func (*saleWatch) Workers(int, string) {}

// Alarm implements [engine.Observer].
func (*saleWatch) Alarm(string, string, bool, float64, string) {}

// Job implements [engine.Observer].
func (*saleWatch) Job(string, int, time.Duration, string) {}

// Leased implements [engine.Observer].
func (*saleWatch) Leased(string, bool) {}

// Rebuilt implements [engine.Observer].
func (*saleWatch) Rebuilt(string, int64, time.Duration, string) {}
