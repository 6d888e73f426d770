package sqlorders

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// rebuild begins a rebuild of testKey under a lease, and returns its epoch.
func rebuild(t *testing.T, o *Orders) int64 {
	t.Helper()
	fence, held, err := o.Lease(t.Context(), "rebuild", "tester", time.Hour)
	if err != nil || !held {
		t.Fatalf("lease: held %v, %v", held, err)
	}
	epoch, err := o.BeginRebuild(t.Context(), testKey, "rebuild", fence)
	noError(t, "BeginRebuild", err)
	return epoch
}

func TestRebuildIsFenced(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		ctx := t.Context()
		createSale(t, o)
		_, err := o.BeginRebuild(ctx, testKey, "rebuild", 1)
		wantCode(t, "without a lease", err, flashsale.CodeFenced)
		lease := func(holder string) int64 {
			t.Helper()
			fence, held, err := o.Lease(ctx, "rebuild", holder, time.Second)
			if err != nil || !held {
				t.Fatalf("%s: held %v, %v", holder, held, err)
			}
			return fence
		}
		first := lease("a")
		if epoch, err := o.BeginRebuild(ctx, testKey, "rebuild", first); err != nil || epoch != 2 {
			t.Fatalf("got epoch %d, %v", epoch, err)
		}
		clock.advance(time.Minute) // late, and nobody has come
		if epoch, err := o.BeginRebuild(ctx, testKey, "rebuild", first); err != nil || epoch != 3 {
			t.Fatalf("got epoch %d, %v", epoch, err)
		}
		second := lease("b")
		_, err = o.BeginRebuild(ctx, testKey, "rebuild", first)
		wantCode(t, "by the one before", err, flashsale.CodeFenced)
		_, err = o.BeginRebuild(ctx, testKey, "rebuild", second+1)
		wantCode(t, "by a fence to come", err, flashsale.CodeFenced)
		if epoch, err := o.BeginRebuild(ctx, testKey, "rebuild", second); err != nil || epoch != 4 {
			t.Fatalf("got epoch %d, %v", epoch, err)
		}
		wantCode(t, "the end of an older one", o.EndRebuild(ctx, testKey, 3, "run"), flashsale.CodeStaleEpoch)
		for range 2 {
			noError(t, "EndRebuild", o.EndRebuild(ctx, testKey, 4, "run"))
		}
		noError(t, "Release", o.Release(ctx, "rebuild", "b"))
		_, err = o.BeginRebuild(ctx, testKey, "rebuild", second)
		wantCode(t, "by one that gave it back", err, flashsale.CodeFenced)
		sku, err := o.SKU(ctx, testKey)
		noError(t, "SKU", err)
		if sku.Epoch != 4 || sku.Rebuilding || sku.StoreRun != "run" || sku.Seq != 0 || sku.Settings.Version != 1 {
			t.Fatalf("got %+v", sku)
		}
		for name, err := range map[string]error{
			"run":  o.EndRebuild(ctx, testKey, 4, strings.Repeat("x", 201)),
			"sku":  o.EndRebuild(ctx, flashsale.Key{Sale: "sale", SKU: "\x00"}, 4, "run"),
			"less": o.EndRebuild(ctx, flashsale.Key{}, 4, "run"),
		} {
			wantCode(t, name, err, flashsale.CodeInvalidArgument)
		}
	})
}

// take collects the parts of a snapshot.
func take(t *testing.T, o *Orders, epoch int64) *flashsale.LoadPart {
	t.Helper()
	all, err := snapshotOf(t.Context(), o, epoch)
	noError(t, "Snapshot", err)
	return all
}

func snapshotOf(ctx context.Context, o *Orders, epoch int64) (*flashsale.LoadPart, error) {
	all := &flashsale.LoadPart{}
	err := o.Snapshot(ctx, testKey, epoch, func(part *flashsale.LoadPart) error {
		if all.Last || len(part.Entries) > partSize || len(part.Buyers) > partSize {
			return fmt.Errorf("a part of %d entries and %d buyers, after the last: %v", len(part.Entries), len(part.Buyers), all.Last)
		}
		entries, buyers := slices.Concat(all.Entries, part.Entries), slices.Concat(all.Buyers, part.Buyers)
		*all = *part
		all.Entries, all.Buyers = entries, buyers
		return nil
	})
	if err == nil && !all.Last {
		err = errors.New("there was no last part")
	}
	return all, err
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	users := []string{"a", "a ", "A", "a\x00", "\xff\xfe", strings.Repeat("u", 255)}
	eachShop(t, func(s *shop) {
		var batch []flashsale.Job
		for i, user := range users {
			batch = append(batch, job(fmt.Sprintf("r%d", i), user, 1))
		}
		s.decide(batch...)
		s.pass(time.Second)
		s.decide(job("r6", "a", 1), job("r7", "a", 1)) // the second is beyond the limit
		_, err := s.o.Cancel(s.Context(), "r1", "a ", "")
		noError(s.T, "Cancel", err)
		begin(s.T, s.o, topUp("b", 5), flashsale.OpCommitted)
		begin(s.T, s.o, topUp("a", 5), flashsale.OpCommitted)
		begin(s.T, s.o, topUp("done", 5), flashsale.OpCommitted)
		noError(s.T, "finish", s.o.FinishOperation(s.Context(), "done", 1, flashsale.OpDone, ""))
		begin(s.T, s.o, withdraw("begun", 5), flashsale.OpBegun)

		all := take(s.T, s.o, 1)
		if all.Total != 115 || all.Reserved != 6 || all.Sold != 0 || !reflect.DeepEqual(all.Adjusted, []string{"a", "b"}) || all.Settings.Status != flashsale.Open {
			s.Fatalf("got %+v", all)
		}
		entries := map[string]flashsale.Entry{}
		for _, e := range all.Entries {
			entries[e.RID] = e
		}
		if len(entries) != 8 || len(all.Entries) != 8 {
			s.Fatalf("got %d entries: %+v", len(all.Entries), all.Entries)
		}
		for rid, want := range map[string]flashsale.Entry{
			"r3": {RID: "r3", User: "a\x00", Quantity: 1, State: flashsale.Reserved, Version: 1, At: s.at().Add(-time.Second)},
			"r5": {RID: "r5", User: users[5], Quantity: 1, State: flashsale.Reserved, Version: 1, At: s.at().Add(-time.Second)},
			"r1": {RID: "r1", User: "a ", Quantity: 1, State: flashsale.Cancelled, Version: 2, At: s.at()},
			"r7": {RID: "r7", User: "a", Quantity: 1, State: flashsale.Rejected, Version: 1, At: s.at()},
		} {
			if entries[rid] != want {
				s.Fatalf("got %+v, want %+v", entries[rid], want)
			}
		}
		buyers := map[string]flashsale.Buyer{}
		for _, b := range all.Buyers {
			buyers[b.User] = b
		}
		if len(buyers) != 5 || len(all.Buyers) != 5 { // "a " holds nothing
			s.Fatalf("got %+v", all.Buyers)
		}
		if got := buyers["a"]; got.Quantity != 2 || !reflect.DeepEqual(got.RIDs, []string{"r0", "r6"}) {
			s.Fatalf("got %+v", got)
		}
		if got := buyers["\xff\xfe"]; got.Quantity != 1 || !reflect.DeepEqual(got.RIDs, []string{"r4"}) {
			s.Fatalf("got %+v", got)
		}

		s.pass(flashsale.Retention - time.Microsecond)
		if all := take(s.T, s.o, 1); len(all.Entries) != 8 {
			s.Fatalf("within the retention: %d entries", len(all.Entries))
		}
		s.pass(time.Microsecond)
		if all := take(s.T, s.o, 1); len(all.Entries) != 6 {
			s.Fatalf("after it: %d entries", len(all.Entries))
		}
	})
}

func TestSnapshotInParts(t *testing.T) {
	t.Parallel()
	const n = partSize + 200
	eachShop(t, func(s *shop) {
		begin(s.T, s.o, topUp("op", n), flashsale.OpCommitted)
		for chunk := range slices.Chunk(jobs("r", n), 1000) {
			s.decide(chunk...)
		}
		all := take(s.T, s.o, 1)
		if len(all.Entries) != n || len(all.Buyers) != n || all.Reserved != n {
			s.Fatalf("got %d entries, %d buyers, %d reserved", len(all.Entries), len(all.Buyers), all.Reserved)
		}
		seen := map[string]bool{}
		for _, b := range all.Buyers {
			if len(b.RIDs) != 1 || b.User != "user of "+b.RIDs[0] || seen[b.User] {
				s.Fatalf("got %+v", b)
			}
			seen[b.User] = true
		}
	})
}

func TestSnapshotStops(t *testing.T) {
	t.Parallel()
	eachShop(t, func(s *shop) {
		s.decide(jobs("r", 3)...)
		_, err := snapshotOf(s.Context(), s.o, 2)
		wantCode(s.T, "another epoch", err, flashsale.CodeStaleEpoch)
		full := &flashsale.Error{Code: flashsale.CodeRebuilding, Message: "the stock is full"}
		calls := 0
		err = s.o.Snapshot(s.Context(), testKey, 1, func(*flashsale.LoadPart) error { calls++; return full })
		if !errors.Is(err, full) || calls != 1 {
			s.Fatalf("got %v after %d calls", err, calls)
		}
		ctx, cancel := context.WithCancel(s.Context())
		err = s.o.Snapshot(ctx, testKey, 1, func(*flashsale.LoadPart) error { cancel(); return nil })
		if !s.o.single { // which has read all before the first call
			wantCode(s.T, "cancelled", err, flashsale.CodeUnavailable)
		}
		if all := take(s.T, s.o, 1); len(all.Entries) != 3 { // and the connections are all right
			s.Fatalf("got %+v", all)
		}
	})
}

// While shoppers reserve and give back, every snapshot is of one moment: counters, entries and buyers agree.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	eachShop(t, func(s *shop) {
		ctx := s.Context()
		begin(s.T, s.o, topUp("op", 100_000), flashsale.OpCommitted)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					batch := jobs(fmt.Sprintf("w%d.%d.", w, i), 20)
					if _, err := s.o.Decide(ctx, &flashsale.Batch{Key: testKey, Epoch: 1, Jobs: batch}); err != nil {
						s.Error(err)
						return
					}
					if _, err := s.o.Cancel(ctx, batch[i%20].RID, "", "for the test"); err != nil {
						s.Error(err)
						return
					}
				}
			})
		}
		for i := 0; i < 8 && !s.Failed(); i++ {
			all, err := snapshotOf(ctx, s.o, 1)
			if err != nil {
				s.Error(err)
				break
			}
			var held, bought int64
			for _, e := range all.Entries {
				if e.State == flashsale.Reserved {
					held += e.Quantity
				}
			}
			for _, b := range all.Buyers {
				bought += b.Quantity
				if int64(len(b.RIDs)) != b.Quantity {
					s.Errorf("buyer %+v", b)
				}
			}
			if held != all.Reserved || bought != all.Reserved {
				s.Errorf("snapshot %d: %d reserved, entries hold %d, buyers %d", i, all.Reserved, held, bought)
			}
			books, err := s.o.Books(ctx, testKey)
			if err != nil {
				s.Error(err)
				break
			}
			if r := books.State.Reserved; books.ByState[flashsale.Reserved] != r || books.Buyers != r || books.LedgerReserved-books.LedgerReleased != r || books.OrdersOpen != r {
				s.Errorf("books %d: %+v", i, books)
			}
		}
		close(stop)
		wg.Wait()
	})
}

func TestBooks(t *testing.T) {
	t.Parallel()
	eachShop(t, func(s *shop) {
		ctx := s.Context()
		books, err := s.o.Books(ctx, testKey)
		noError(s.T, "Books", err)
		empty := &flashsale.Books{State: books.State, ByState: map[flashsale.State]int64{}, Rows: map[flashsale.State]int64{}, LedgerInitial: 100}
		if !reflect.DeepEqual(books, empty) {
			s.Fatalf("got  %+v\nwant %+v", books, empty)
		}
		s.decide(job("r1", "a", 2), job("r2", "b", 1), job("r3", "c", 2), job("r4", "d", 1), job("r5", "d", 2))
		begin(s.T, s.o, topUp("t", 5), flashsale.OpCommitted)
		begin(s.T, s.o, withdraw("w", 3), flashsale.OpBegun)
		_, err = s.o.CommitWithdrawal(ctx, "w", 1)
		noError(s.T, "CommitWithdrawal", err)
		_, err = s.o.Cancel(ctx, "r2", "", "")
		noError(s.T, "Cancel", err)
		_, _, err = s.o.BeginPayment(ctx, "r3", "c")
		noError(s.T, "BeginPayment", err)
		s.outcome("r3:1", flashsale.PayCaptured)

		books, err = s.o.Books(ctx, testKey)
		noError(s.T, "Books", err)
		want := &flashsale.Books{
			State:          books.State,
			ByState:        map[flashsale.State]int64{flashsale.Reserved: 3, flashsale.Confirmed: 2, flashsale.Cancelled: 1, flashsale.Rejected: 2},
			Rows:           map[flashsale.State]int64{flashsale.Reserved: 2, flashsale.Confirmed: 1, flashsale.Cancelled: 1, flashsale.Rejected: 1},
			Buyers:         5,
			LedgerReserved: 6, LedgerSold: 2, LedgerReleased: 1, LedgerTopUp: 5, LedgerWithdrawn: 3, LedgerInitial: 100,
			OrdersPaid: 1, OrdersOpen: 2, Unsent: 8,
		}
		if !reflect.DeepEqual(books, want) {
			s.Fatalf("got  %+v\nwant %+v", books, want)
		}
		if st := books.State; st.Total != 102 || st.Reserved != 3 || st.Sold != 2 {
			s.Fatalf("got %+v", st)
		}
		mustExec(s.T, s.o, "UPDATE sale_sku SET purchase_limit = 1 WHERE sku = 'sku'")
		books, err = s.o.Books(ctx, testKey)
		noError(s.T, "Books", err)
		if books.OverLimit != 2 {
			s.Fatalf("%d are over a limit of 1, want 2", books.OverLimit)
		}
		mustExec(s.T, s.o, "UPDATE sale_sku SET purchase_limit = 2 WHERE sku = 'sku'")
		query, args := insertion("payment", override{"intent_key": "r2:1", "rid": "r2", "live": nil, "state": "captured"})
		mustExec(s.T, s.o, query, args...)
		books, err = s.o.Books(ctx, testKey)
		noError(s.T, "Books", err)
		if books.CapturedLoose != 1 {
			s.Fatalf("%d captures are loose, want 1", books.CapturedLoose)
		}
	})
}
