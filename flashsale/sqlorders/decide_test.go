package sqlorders

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// brief shows what was decided.
func brief(all []flashsale.Decided) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "%s:%s", d.RID, d.State)
		if d.Reason != "" {
			b.WriteString("(" + d.Reason + ")")
		}
		if d.Replayed {
			b.WriteString(" again")
		}
		b.WriteString(" ")
	}
	return strings.TrimSuffix(b.String(), " ")
}

func TestDecideInOrder(t *testing.T) {
	eachShop(t, func(s *shop) {
		got := brief(s.decide(
			job("a", "ann", 1), job("b", "bob", 2), job("a", "ann", 1), job("c", "ann", 1), job("d", "ann", 1), job("e", "bob", 1), job("f", "fay", 3),
		))
		want := "a:reserved b:reserved a:reserved again c:reserved d:rejected(purchase_limit) e:rejected(purchase_limit) f:rejected(purchase_limit)"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		s.units(testKey, 4, 0)
		got = brief(s.decide(job("f", "fay", 1), job("d", "ann", 1), job("a", "ann", 1), job("g", "gil", 1)))
		want = "f:rejected(purchase_limit) again d:rejected(purchase_limit) again a:reserved again g:reserved"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		s.units(testKey, 5, 0)
	})
}

func TestDecideSellsExactlyWhatThereIs(t *testing.T) {
	eachShop(t, func(s *shop) {
		first := s.decide(append(jobs("r", 97), job("pair", "pair", 2))...)
		if n := len(first); n != 98 {
			t.Fatalf("%d decided", n)
		}
		s.units(testKey, 99, 0)
		got := brief(s.decide(job("two", "two", 2), job("one", "one", 1), job("none", "none", 1)))
		if want := "two:rejected(sold_out) one:reserved none:rejected(sold_out)"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		s.units(testKey, 100, 0)
	})
}

func TestDecideRow(t *testing.T) {
	eachShop(t, func(s *shop) {
		j := job("row", "a\x00 \xff", 2)
		j.Origin, j.Seq = "gone:7", 41
		d := s.decide(j, job("no", "a\x00 \xff", 1))
		want := flashsale.Reservation{RID: "row", Key: testKey, User: "a\x00 \xff", Quantity: 2, State: flashsale.Reserved, Version: 1,
			Until: s.at().Add(15 * time.Minute), OrderID: flashsale.OrderID("row"), Amount: 2 * 199_00, Currency: "CNY", Origin: "gone:7", CreatedAt: s.at(), ChangedAt: s.at()}
		if got := *s.reservation("row"); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		want = flashsale.Reservation{RID: "no", Key: testKey, User: "a\x00 \xff", Quantity: 1, State: flashsale.Rejected, Version: 1, Reason: flashsale.ReasonPurchaseLimit,
			Currency: "CNY", CreatedAt: s.at(), ChangedAt: s.at(), EndedAt: s.at()}
		if got := *s.reservation("no"); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		events, err := s.o.Unsent(s.Context(), flashsale.LaneRelay, 0, 0, 10)
		noError(t, "Unsent", err)
		wantEvents := []flashsale.Event{
			{ID: d[0].Outbox, RID: "row", Version: 1, Key: testKey, User: "a\x00 \xff", Quantity: 2, State: flashsale.Reserved,
				OrderID: flashsale.OrderID("row"), Amount: 2 * 199_00, Currency: "CNY", At: s.at()},
			{ID: d[1].Outbox, RID: "no", Version: 1, Key: testKey, User: "a\x00 \xff", Quantity: 1, State: flashsale.Rejected,
				Reason: flashsale.ReasonPurchaseLimit, Currency: "CNY", At: s.at()},
		}
		if !slices.Equal(events, wantEvents) {
			t.Errorf("got  %+v\nwant %+v", events, wantEvents)
		}
		if k, err := s.o.SKU(s.Context(), testKey); err != nil || k.Seq != 41 {
			t.Errorf("the sku has seq %d (%v), want 41", k.Seq, err)
		}
	})
}

func TestDecideKeepsTheHighestSeq(t *testing.T) {
	eachShop(t, func(s *shop) {
		for _, step := range []struct{ seq, want int64 }{{7, 7}, {3, 7}, {9, 9}} {
			j := job(fmt.Sprintf("r%d", step.seq), "u", 1)
			j.Seq = step.seq
			s.decide(j)
			s.decide(j)
			if k, err := s.o.SKU(s.Context(), testKey); err != nil || k.Seq != step.want {
				t.Errorf("after %d: seq %d (%v), want %d", step.seq, k.Seq, err, step.want)
			}
		}
	})
}

// TestDecideByStatusAndEpoch has every status, epoch and rebuild, with and without Drain.
func TestDecideByStatusAndEpoch(t *testing.T) {
	eachShop(t, func(s *shop) {
		n := 0
		for _, status := range []flashsale.Status{flashsale.Draft, flashsale.Open, flashsale.Paused, flashsale.Draining, flashsale.Closed} {
			for _, drain := range []bool{false, true} {
				for _, rebuilding := range []bool{false, true} {
					for epoch := int64(1); epoch <= 3; epoch++ {
						n++
						mustExec(t, s.o, "UPDATE sale_sku SET status = ?, rebuilding = ?, epoch = 2, seq = 5", string(status), flag(rebuilding))
						rid := fmt.Sprintf("r%d", n)
						j := job(rid, rid, 1)
						j.Seq = 9
						d, err := s.o.Decide(s.Context(), &flashsale.Batch{Key: testKey, Epoch: epoch, Drain: drain, Jobs: []flashsale.Job{j}})
						what := fmt.Sprintf("status %s, drain %v, rebuilding %v, epoch %d", status, drain, rebuilding, epoch)
						var code flashsale.Code
						switch {
						case epoch != 2, drain && !rebuilding:
							code = flashsale.CodeStaleEpoch
						case rebuilding && !drain:
							code = flashsale.CodeRebuilding
						}
						wantCode(t, what, err, code)
						if code != "" {
							_, err := s.o.Reservation(s.Context(), rid)
							wantCode(t, what+": the row", err, flashsale.CodeNotFound)
							continue
						}
						want := flashsale.Reserved
						if !drain && (status == flashsale.Draft || status == flashsale.Closed) {
							want = flashsale.Rejected
						}
						if d[0].State != want || want == flashsale.Rejected && d[0].Reason != flashsale.ReasonNotOpen {
							t.Errorf("%s: %+v, want %s", what, d[0], want)
						}
						wantSeq := int64(9)
						if drain {
							wantSeq = 5
						}
						if k, err := s.o.SKU(s.Context(), testKey); err != nil || k.Seq != wantSeq {
							t.Errorf("%s: seq %d (%v), want %d", what, k.Seq, err, wantSeq)
						}
					}
				}
			}
		}
	})
}

func TestDecideRefusesPoison(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("there")
		for what, c := range map[string]struct {
			key  flashsale.Key
			job  flashsale.Job
			code flashsale.Code
		}{
			"no rid":              {testKey, job("", "u", 1), flashsale.CodeInvalidArgument},
			"a rid with a space":  {testKey, job("a b", "u", 1), flashsale.CodeInvalidArgument},
			"a long rid":          {testKey, job(strings.Repeat("a", 65), "u", 1), flashsale.CodeInvalidArgument},
			"no user":             {testKey, job("r", "", 1), flashsale.CodeInvalidArgument},
			"a long user":         {testKey, job("r", strings.Repeat("u", 256), 1), flashsale.CodeInvalidArgument},
			"nothing":             {testKey, job("r", "u", 0), flashsale.CodeInvalidQuantity},
			"less than nothing":   {testKey, job("r", "u", -1), flashsale.CodeInvalidQuantity},
			"a quantity of 2^63":  {testKey, job("r", "u", math.MaxInt64), flashsale.CodeInvalidQuantity},
			"an origin of no key": {testKey, flashsale.Job{RID: "r", User: "u", Quantity: 1, Origin: "x"}, flashsale.CodeInvalidArgument},
			"a rid of another":    {otherKey, job("there", "user of there", 1), flashsale.CodeConflict},
			"no such sale":        {flashsale.Key{Sale: "no", SKU: "sku"}, job("r", "u", 1), flashsale.CodeUnknownSale},
			"no such sku":         {flashsale.Key{Sale: "sale", SKU: "no"}, job("r", "u", 1), flashsale.CodeUnknownSKU},
			"no sale at all":      {flashsale.Key{}, job("r", "u", 1), flashsale.CodeInvalidArgument},
		} {
			batch := &flashsale.Batch{Key: c.key, Epoch: 1, Jobs: []flashsale.Job{job("good", "good", 1), c.job}}
			_, err := s.o.Decide(s.Context(), batch)
			wantCode(t, what, err, c.code)
			_, err = s.o.Tombstone(s.Context(), c.key, []flashsale.Entry{{RID: c.job.RID, User: c.job.User, Quantity: c.job.Quantity}})
			if c.job.Origin == "" { // an entry has none
				wantCode(t, "a tombstone: "+what, err, c.code)
			}
			_, err = s.o.Reservation(s.Context(), "good")
			wantCode(t, what+": the rest of the batch", err, flashsale.CodeNotFound)
		}
	})
}

func TestDecideUsersAreBytes(t *testing.T) {
	eachShop(t, func(s *shop) {
		users := []string{"a", "A", "a ", " a", "a\x00", "\xff", "\xff\xfe", "ä", "a\u0308", "'; DROP TABLE buyer; --", `\`, "?", "$1", strings.Repeat("u", 255)}
		var all []flashsale.Job
		for i, u := range users {
			all = append(all, job(fmt.Sprintf("r%d", i), u, 2))
		}
		for _, d := range s.decide(all...) {
			if d.State != flashsale.Reserved {
				t.Errorf("%q: %s", d.User, d.State)
			}
		}
		for i, u := range users {
			found, err := s.o.OfUser(s.Context(), "sale", u, 10)
			noError(t, "OfUser", err)
			if len(found) != 1 || found[0].RID != fmt.Sprintf("r%d", i) || found[0].User != u {
				t.Errorf("%q has %v", u, found)
			}
			if d := s.decide(job(fmt.Sprintf("again%d", i), u, 1)); d[0].Reason != flashsale.ReasonPurchaseLimit {
				t.Errorf("%q: one more than the limit is %+v", u, d[0])
			}
		}
	})
}

func TestDecideManyAtOnce(t *testing.T) {
	eachShop(t, func(s *shop) {
		mustExec(t, s.o, "UPDATE sale_sku SET total = 1100 WHERE sku = 'sku'")
		mustExec(t, s.o, "UPDATE stock_ledger SET quantity = 1100 WHERE phase = 'initial' AND id = 'sale/sku'")
		all := jobs("r", 1101)
		decided := s.decide(all...)
		seen := map[int64]bool{}
		for i, d := range decided {
			want := flashsale.Reserved
			if i == 1100 {
				want = flashsale.Rejected
			}
			if d.RID != all[i].RID || d.State != want || d.Outbox == 0 || seen[d.Outbox] {
				t.Fatalf("%d: %+v", i, d)
			}
			seen[d.Outbox] = true
		}
		for i, d := range s.decide(all...) {
			if d.RID != all[i].RID || !d.Replayed || d.Outbox != 0 {
				t.Fatalf("again, %d: %+v", i, d)
			}
		}
		s.units(testKey, 1100, 0)
		_, err := s.o.Decide(s.Context(), &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: make([]flashsale.Job, maxBatch+1)})
		wantCode(t, "too many", err, flashsale.CodeInvalidArgument)
	})
}

func TestTombstone(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("there")
		entries := []flashsale.Entry{
			{RID: "there", User: "user of there", Quantity: 1}, {RID: "lost", User: "u", Quantity: 2}, {RID: "lost", User: "u", Quantity: 2},
		}
		for i, want := range []string{
			"there:reserved again lost:rejected(deadline) lost:rejected(deadline) again",
			"there:reserved again lost:rejected(deadline) again lost:rejected(deadline) again",
		} {
			d, err := s.o.Tombstone(s.Context(), testKey, entries)
			noError(t, "Tombstone", err)
			if got := brief(d); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if (d[1].Outbox != 0) != (i == 0) {
				t.Errorf("call %d: the id of the outbox is %d", i+1, d[1].Outbox)
			}
		}
		if got := brief(s.decide(job("lost", "u", 2))); got != "lost:rejected(deadline) again" {
			t.Errorf("a job that is late: %s", got)
		}
		s.units(testKey, 1, 0)
		d, err := s.o.Tombstone(s.Context(), testKey, nil)
		if err != nil || d != nil {
			t.Errorf("of nothing: %v, %v", d, err)
		}
	})
}

// TestDecideLate has a context that is over: nothing is half done.
func TestDecideLate(t *testing.T) {
	eachShop(t, func(s *shop) {
		over, cancel := context.WithCancel(s.Context())
		cancel()
		_, err := s.o.Decide(over, &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: jobs("r", 3)})
		wantCode(t, "Decide", err, flashsale.CodeUnavailable)
		s.units(testKey, 0, 0)
	})
}
