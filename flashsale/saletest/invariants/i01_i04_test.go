package invariants

import (
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
)

// look is what an invariant says between two steps.
type look struct {
	// of is the beginning of the calls after which it is looked.
	of  string
	see func(w *world) []string
}

// everywhere looks after each step of two sales on every pair: a quiet one, in which everything happens and one thing at a time, and one in full
// swing, with two instances and lines that are cut.
func everywhere(t *testing.T, l look) {
	t.Helper()
	eachPair(t, func(t *testing.T, pair string) {
		quiet := newWorld(t, pair, plan{total: 60, limit: 3, instances: 1})
		var seen watchFor
		quiet.faults.set(&hooks{step: seen.after(quiet, &l)})
		quiet.everything()
		quiet.rebuild()
		quiet.faults.set(nil)
		seen.verdict(t, 40)
		quiet.sound()
		b := newBustle(t, pair)
		seen = watchFor{}
		b.run(seen.after(b.world, &l))
		seen.verdict(t, 50)
		b.ends()
	})
}

// TestI1_NeverMoreThanTheTotal: reserved, sold ≥ 0 and reserved + sold ≤ total in SQL, between any two steps.
func TestI1_NeverMoreThanTheTotal(t *testing.T) {
	everywhere(t, look{"orders.", func(w *world) []string {
		b := w.counters()
		return b.units()
	}})
}

// TestI1_AStockThatLies: of a Stock that offers three times what there is, SQL gives what there is and no more.
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
	everywhere(t, look{"stock.", func(w *world) []string {
		v := w.view()
		return addsUp(&v)
	}})
}

// TestI3_TheStockIsNeverAhead: the Stock never offers what SQL does not have, between any two steps; at rest both have the same.
func TestI3_TheStockIsNeverAhead(t *testing.T) {
	everywhere(t, look{"", func(w *world) (f []string) {
		v, s := w.view(), w.counters()
		if left := s.total - s.reserved - s.sold; v.Loaded && v.Available > left {
			f = append(f, fmt.Sprintf("I3: the stock offers %d, and SQL has %d of %d left", v.Available, left, s.total))
		}
		return f
	}})
}

// TestI4_CountersAreSums: the counters of SQL are the sums of its reservations, of its buyers and of its ledger, at any moment.
func TestI4_CountersAreSums(t *testing.T) {
	everywhere(t, look{"orders.", func(w *world) []string {
		b := w.books()
		return b.sums()
	}})
}
