package sqlorders

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestPostgresReadsByIndex has statements be planned while the tables are empty, and then fills them: no plan may read a table whole, nor
// all buyers of a sku for one of them. What the server has counted comes with the end of its connections.
func TestPostgresReadsByIndex(t *testing.T) {
	url := urls["postgres"](t)
	const batches, size = 20, 100
	func() {
		s := &shop{T: t, o: mustOpen(t, Config{URL: url, MaxConns: 1})}
		createSale(t, s.o)
		mustExec(t, s.o, "UPDATE sale_sku SET status = 'open', rebuilding = 0, total = 100000")
		for n := range batches {
			s.work(n, size)
		}
		noError(t, "Close", s.o.Close())
	}()
	o := mustOpen(t, Config{URL: url})
	rows, err := o.db.QueryContext(t.Context(), "SELECT relname, seq_tup_read, COALESCE(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname IN ('buyer', 'reservation', 'orders', 'stock_ledger', 'outbox', 'payment')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var whole, indexed int64
		if err := rows.Scan(&table, &whole, &indexed); err != nil {
			t.Fatal(err)
		}
		// A row is looked at a few times in each step of its life.
		if most := int64(batches * size * 6); whole > 0 || indexed > most {
			t.Errorf("%s: %d rows were read without an index, %d by one, which may be up to %d", table, whole, indexed, most)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// work has a batch decided twice, delivered, and some of it paid and given back.
func (s *shop) work(n, size int) {
	s.Helper()
	batch := jobs(fmt.Sprintf("r%d-", n), size)
	decided := s.decide(batch...)
	s.decide(batch...)
	ids := make([]int64, size)
	for i, d := range decided {
		ids[i] = d.Outbox
	}
	noError(s.T, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, 1, ids))
	noError(s.T, "Sent", s.o.Sent(s.Context(), flashsale.LaneRelay, 1, ids))
	rids := []string{batch[0].RID, batch[1].RID}
	key := s.begin(rids[0]).IntentKey
	s.outcome(key, flashsale.PayCaptured)
	_, err := s.o.Cancel(s.Context(), rids[1], "", "")
	noError(s.T, "Cancel", err)
	_, err = s.o.Reservations(s.Context(), rids)
	noError(s.T, "Reservations", err)
	_, err = s.o.OfUser(s.Context(), "sale", batch[0].User, 10)
	noError(s.T, "OfUser", err)
	_, err = s.o.Expiring(s.Context(), 10)
	noError(s.T, "Expiring", err)
	_, err = s.o.Unsent(s.Context(), flashsale.LaneStock, 0, 0, 10)
	noError(s.T, "Unsent", err)
	_, _, err = s.o.OpenPayments(s.Context(), flashsale.PaymentLive, 0, "", 10)
	noError(s.T, "OpenPayments", err)
	_, err = s.o.PruneOutbox(s.Context(), time.Hour, 10)
	noError(s.T, "PruneOutbox", err)
	_, err = s.o.PruneEvents(s.Context(), time.Hour, 10)
	noError(s.T, "PruneEvents", err)
	_, _, err = s.o.PaidSince(s.Context(), time.Time{}, "", 10)
	noError(s.T, "PaidSince", err)
}
