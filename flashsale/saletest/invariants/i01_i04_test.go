package invariants

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
)

// TestI1_NeverMoreThanTheTotal: reserved, sold ≥ 0 and reserved + sold ≤ total in SQL, between any two steps of a sale in full swing; and
// of a Stock that offers three times what there is, SQL gives what there is and no more.
func TestI1_NeverMoreThanTheTotal(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		b := newBustle(t, pair)
		var seen watchFor
		b.run(func(call string) {
			if strings.HasPrefix(call, "orders.") {
				books := b.counters()
				seen.look(books.units(), call)
			}
		})
		seen.verdict(b.world, 50)
		b.ends()
	})
}

func TestI1_AStockThatLies(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 20})
		if _, err := w.stock().Adjust(t.Context(), phone, w.sku().Epoch, "nobodys", 40); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			w.ask(fmt.Sprint("user-", i), 1)
		}
		w.atOnce(4, func(i int) error {
			for {
				if n, err := w.engine(i).ConsumeOnce(t.Context(), phone, fmt.Sprint("c", i)); err != nil || n == 0 {
					return err
				}
			}
		})
		b := w.books()
		rejected := w.count("SELECT COUNT(*) FROM reservation WHERE state = 7 AND reason = '" + flashsale.ReasonSoldOut + "'")
		if b.reserved != 20 || b.sold != 0 || b.taken != 20 || rejected != 40 {
			t.Errorf("of 60 that the stock has accepted SQL has reserved %d, and rejected %d; want 20 and 40", b.reserved, rejected)
		}
		w.expireAll()
		if b = w.books(); b.reserved != 0 || b.sold != 0 || b.ledgerReleased != 20 {
			t.Errorf("all have expired, and SQL has %d reserved, and %d released", b.reserved, b.ledgerReleased)
		}
		w.rebuild()
		w.sound()
	})
}

// TestI2_TheStockAddsUp: available ≥ 0 and available + held + sold = total in the Stock, after every script.
func TestI2_TheStockAddsUp(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		b := newBustle(t, pair)
		var seen watchFor
		b.run(func(call string) {
			if strings.HasPrefix(call, "stock.") {
				v := b.view()
				seen.look(addsUp(&v), call)
			}
		})
		seen.verdict(b.world, 50)
		b.ends()
	})
}

// TestI3_TheStockIsNeverAhead: the Stock never offers what SQL does not have, between any two steps; at rest they have the same.
func TestI3_TheStockIsNeverAhead(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		b := newBustle(t, pair)
		var seen watchFor
		b.run(func(call string) {
			v, s := b.view(), b.counters()
			var wrong findings
			wrong.unless(!v.Loaded || v.Available <= s.total-s.reserved-s.sold, "I3: the stock offers %d, and SQL has %d of %d left", v.Available, s.total-s.reserved-s.sold, s.total)
			seen.look(wrong, call)
		})
		seen.verdict(b.world, 100)
		b.ends() // with the equality
	})
}

// TestI4_CountersAreSums: the counters of SQL are the sums of its reservations, of its buyers and of its ledger, at any moment.
func TestI4_CountersAreSums(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		b := newBustle(t, pair)
		var seen watchFor
		b.run(func(call string) {
			if strings.HasPrefix(call, "orders.") {
				books := b.books()
				seen.look(books.sums(), call)
			}
		})
		seen.verdict(b.world, 50)
		b.ends()
	})
}
