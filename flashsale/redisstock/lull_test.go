package redisstock_test

import (
	"testing"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
)

// TestMarksAreBounded: at the bound nothing is appended, reserve calls go on, and there are no lulls any more.
func TestMarksAreBounded(t *testing.T) {
	ns := newNamespace()
	k := sell(t, open(t, redisstock.Config{Namespace: ns}), 10, 5)
	server := shared.Get(t)
	for _, c := range []struct {
		rid           string
		before, after int64 // marks
		lull          bool
	}{
		{"r1", flashsale.MaxMarks - 4, flashsale.MaxMarks - 2, true},
		{"r2", flashsale.MaxMarks - 2, flashsale.MaxMarks, false},
		{"r3", flashsale.MaxMarks, flashsale.MaxMarks, false},
	} {
		if c.rid == "r1" {
			if _, err := server.Do("SETRANGE", ns+":{sale:sku}:1:marks", 8*c.before-1, "x"); err != nil {
				t.Fatal(err)
			}
		}
		k.accept(c.rid, "u-"+c.rid, 1)
		l, err := k.stock.Lull(t.Context(), k.key, 1, flashsale.LullAsk{After: c.after, Last: flashsale.Mark("u-" + c.rid)})
		k.check(err)
		if c.rid == "r3" { // it has no mark
			l, err = k.stock.Lull(t.Context(), k.key, 1, flashsale.LullAsk{After: c.after, Last: flashsale.Mark("u-r2")})
			k.check(err)
		}
		if l.Count != c.after || l.From != c.after || l.For > 0 != c.lull || l.Complete() != c.lull {
			t.Errorf("after %s: %+v, want %d marks and a lull: %t", c.rid, l, c.after, c.lull)
		}
	}
}
