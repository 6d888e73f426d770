package memstock

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestMarksAreBounded: at the bound no mark is added, reserve calls go on, and there are no lulls any more.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	key, now := flashsale.Key{Sale: "sale", SKU: "sku"}, time.Now()
	settings := &flashsale.Settings{Version: 1, Status: flashsale.Open, OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), PurchaseLimit: 1, Rate: 1000}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Point(t.Context(), key, 1)
	check(err)
	check(s.Load(t.Context(), key, 1, &flashsale.LoadPart{Last: true, Total: 10}))
	check(s.Configure(t.Context(), key, 1, settings))
	u, _ := s.skus.Load(key)
	u.current.marks = make([]uint64, flashsale.MaxMarks-4, flashsale.MaxMarks)
	for i, want := range []bool{true, false, false} {
		rid := string(rune('a' + i))
		a, err := s.Reserve(t.Context(), key, 1, &flashsale.Ask{RID: rid, User: rid, Quantity: 1})
		check(err)
		l, err := s.Lull(t.Context(), key, 1, flashsale.LullAsk{Limit: flashsale.MaxMarks})
		check(err)
		if !a.Accepted || l.For > 0 != want || l.Complete() != want || l.Count != min(flashsale.MaxMarks-2+2*int64(i), flashsale.MaxMarks) {
			t.Errorf("after %d reserve calls: %d marks, a lull of %s", i+1, l.Count, l.For)
		}
	}
}
