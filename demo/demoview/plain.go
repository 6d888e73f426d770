package demoview

import (
	"fmt"
	"io"
	"time"

	"github.com/headgate-io/headgate/demo"
)

// Plain returns a view that writes a line for each snapshot, for logs and pipes. It must not be called twice at a time.
func Plain(w io.Writer) func(demo.Snapshot) {
	var before demo.Snapshot
	return func(s demo.Snapshot) {
		if before.Total == 0 {
			fmt.Fprintf(w, "demo: gateway %s, policy %s, store %s, sale in %s, stock in %s, %s\n", s.Gateway, s.Policy, s.Store, s.DB, s.StockIn, whole(s.Total))
			fmt.Fprintf(w, "demo: the shop is at %s/, and sells to you as well\n", s.Gateway)
		}
		for _, e := range newEvents(before.Faults, s.Faults) {
			fmt.Fprintf(w, "%6s  * %s\n", e.At.Round(100*time.Millisecond), e.Text)
		}
		gap := s.Elapsed - before.Elapsed
		fmt.Fprintf(w, "%6s  %7s req/s  allowed %6s/s  denied %6s/s  errors %d  p50 %-7s p99 %-7s  sold %d/%d  held %d  %s\n",
			s.Elapsed.Round(100*time.Millisecond), grouped(perSecond(s.Requests-before.Requests, gap)),
			grouped(perSecond(s.Allowed-before.Allowed, gap)), grouped(perSecond(s.Denied-before.Denied, gap)), s.Errors,
			short(millis(s.RecentMS.P50)), short(millis(s.RecentMS.P99)), s.Sale.Sold, s.Sale.Stock, s.Sale.Held, s.Phase)
		before = s
	}
}

// newEvents are those that were not there before.
func newEvents(before, now *demo.Faults) []demo.Event {
	switch {
	case now == nil:
		return nil
	case before == nil:
		return now.Events
	}
	return now.Events[min(len(before.Events), len(now.Events)):]
}

func millis(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
func micros(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
