package leasestore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

// TestLeasesEndWithTheCalendar: what is in hand when a window of the calendar ends, be it one of 23 or 25 hours, is not spent in the
// next, and what is admitted in that was charged in it.
func TestLeasesEndWithTheCalendar(t *testing.T) {
	const count = 200
	for _, tt := range []struct{ limit, end string }{
		{"fixed_window 200/day zone=America/New_York", "2000-04-02T05:00:00Z"},     // a day of 24 hours
		{"fixed_window 200/day zone=America/New_York", "2000-04-03T04:00:00Z"},     // of 23
		{"fixed_window 200/day zone=America/New_York", "2000-10-30T05:00:00Z"},     // of 25
		{"fixed_window 200/hour zone=Australia/Lord_Howe", "2000-03-25T15:30:00Z"}, // half an hour is put in
		{"fixed_window 200/week zone=Asia/Shanghai", "2000-01-09T16:00:00Z"},
		{"fixed_window 200/month", "2000-03-01T00:00:00Z"},
		{"fixed_window 200/1h", "2000-03-01T05:00:00Z"},
		{"sliding_window 200/6h cells=6", "2000-03-01T05:00:00Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			end, err := time.Parse(time.RFC3339, tt.end)
			if err != nil {
				t.Fatal(err)
			}
			l := newLedger(1)
			defer l.mem.Close()
			l.pass(end.Add(-300 * time.Millisecond).Sub(l.clock()))
			s := leasestore.New(&line{ledger: l}, leasestore.Config{Elapsed: l.elapsed})
			c := charge(tt.limit)
			before, after := int64(0), int64(0)
			for l.clock().Before(end.Add(90 * time.Millisecond)) {
				begun := l.clock()
				if d, err := headgate.Take(context.Background(), s, c); err != nil {
					t.Fatal(err)
				} else if !d.Allowed {
					t.Fatalf("%s: %d and %d: %+v", tt.limit, before, after, d)
				}
				if l.clock().Before(end) {
					before++
				}
				if !begun.Before(end) {
					after++
				}
				time.Sleep(2 * time.Millisecond)
			}
			held := s.Stats().Held
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			o, err := headgate.Take(context.Background(), l.mem, headgate.Charge{Slot: c.Slot, Key: c.Key, Limit: c.Limit, Mode: headgate.Check})
			if err != nil {
				t.Fatal(err)
			}
			used := count - o.Outcomes[0].Remaining
			if c.Limit.Algorithm() == headgate.AlgSlidingWindow {
				used -= before // that cell is inside the period
			}
			if before == 0 || after == 0 || held == 0 || used < after || used > after+1 {
				t.Errorf("%s: %d were admitted before the end and %d after it, where %d were charged; %d in hand", tt.limit, before, after, used, held)
			}
		})
	}
}
