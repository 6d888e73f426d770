package invariants

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// decided asks until there is an answer that is none of a fault, and returns its code, "" if the units were taken.
func (w *world) decided(i int, token, user string, quantity int64) (rid string, code flashsale.Code, err error) {
	for {
		a, err := w.engine(i).Reserve(w.Context(), request(token, user, quantity))
		switch code := flashsale.CodeOf(err); code {
		case flashsale.CodeRebuilding, flashsale.CodeUnavailable, flashsale.CodeClosed, flashsale.CodeStaleEpoch:
			w.breathe(20 * time.Millisecond)
		case "", flashsale.CodePurchaseLimit:
			return a.RID, code, nil
		default:
			return "", "", err
		}
	}
}

// tokens are n of a user.
func (w *world) tokens(n int, user string) []string {
	w.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = w.token(user)
	}
	return all
}

// TestI6_OneOfAThousand: 1,000 parallel reserves by one user with a limit of 1 give one, and the others are told which.
func TestI6_OneOfAThousand(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 5000})
		var won, refused atomic.Int64
		var rid atomic.Value
		tokens := w.tokens(1000, "one")
		w.atOnce(len(tokens), func(i int) error {
			a, err := w.engine(i).Reserve(t.Context(), request(tokens[i], "one", 1))
			switch {
			case err == nil && !a.Known:
				won.Add(1)
				rid.Store(a.RID)
			case flashsale.CodeOf(err) == flashsale.CodePurchaseLimit && len(a.Holds) == 1:
				refused.Add(1)
			default:
				return fmt.Errorf("%+v: %w", a, err)
			}
			return nil
		})
		w.consume()
		b := w.books()
		if won.Load() != 1 || refused.Load() != 999 || b.taken != 1 || b.reserved != 1 || w.view().Available != 4999 {
			t.Errorf("I6: %d have won, %d were refused; SQL has %d reservations, %d units; the stock has %d left", won.Load(), refused.Load(), b.taken, b.reserved, w.view().Available)
		}
		w.is(rid.Load().(string), flashsale.Reserved)
		w.sound()
	})
}

// TestI6_OneOfAThousandWhileTheStockIsLost: the same, while all that the Stock knows is lost in the midst of it, and again after
// the one was paid for and the Stock lost once more.
func TestI6_OneOfAThousandWhileTheStockIsLost(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 5000})
		tokens := w.tokens(1000, "one")
		var answered atomic.Int64
		lost := make(chan struct{})
		w.atOnce(len(tokens)+1, func(i int) error {
			if i == len(tokens) {
				for answered.Load() < 300 && t.Context().Err() == nil {
					w.breathe(time.Millisecond)
				}
				w.loseStock()
				close(lost)
				for answered.Load() < int64(len(tokens)) && t.Context().Err() == nil {
					if _, err := w.engine(0).WatchOnce(t.Context()); err != nil {
						return err
					}
					w.breathe(20 * time.Millisecond)
				}
				return nil
			}
			if i >= 600 {
				<-lost // whoever had won before has lost it: nobody but these can have what is left after it
			}
			_, _, err := w.decided(i, tokens[i], "one", 1)
			answered.Add(1)
			return err
		})
		w.settle()
		b := w.books()
		if b.taken != 1 || b.reserved != 1 || b.most != 1 {
			t.Fatalf("I6: SQL has %d reservations of %d units, a user has %d; want one each", b.taken, b.reserved, b.most)
		}
		rows, err := w.sql.OfUser(t.Context(), phone.Sale, "one", 10)
		w.must(err)
		at := slices.IndexFunc(rows, func(r flashsale.Reservation) bool { return r.State == flashsale.Reserved })
		w.capture(w.pay(rows[at].RID, "one"))
		w.bankSteps()
		w.loseStock()
		w.watch()
		again := w.tokens(200, "one")
		w.atOnce(len(again), func(i int) error {
			if rid, code, err := w.decided(i, again[i], "one", 1); err != nil || code != flashsale.CodePurchaseLimit {
				return fmt.Errorf("after the purchase: %s, %q, %w", rid, code, err)
			}
			return nil
		})
		w.sound()
		if b = w.books(); b.sold != 1 || b.taken != 1 {
			t.Errorf("I6: SQL has %d sold and %d reservations; want 1 and 1", b.sold, b.taken)
		}
	})
}

// TestI6_LimitOfThree: parallel asks for one to three units fill the limit, paid ones included, and never pass it.
func TestI6_LimitOfThree(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100, limit: 3})
		users := []string{"ann", "bob", "cy\x00\xff"}
		for round := range 3 {
			tokens := make([][]string, len(users))
			for u := range users {
				tokens[u] = w.tokens(15, users[u])
			}
			w.atOnce(15*len(users), func(i int) error {
				u := i % len(users)
				_, _, err := w.decided(i, tokens[u][i/len(users)], users[u], int64(1+i/len(users)%3))
				return err
			})
			w.consume()
			for _, user := range users {
				rows, err := w.sql.OfUser(t.Context(), phone.Sale, user, 10)
				w.must(err)
				units := int64(0)
				for i := range rows {
					if units += rows[i].Quantity; rows[i].State == flashsale.Reserved {
						w.capture(w.pay(rows[i].RID, user))
					}
				}
				if units != 3 {
					t.Errorf("I6: round %d: %q has %d units, want 3", round, user, units)
				}
			}
			w.bankSteps()
			if round == 1 {
				w.loseStock()
				w.watch()
			}
		}
		w.sound()
		if b := w.books(); b.sold != 9 || b.most != 3 {
			t.Errorf("I6: %d are sold, and a user has %d; want 9 and 3", b.sold, b.most)
		}
	})
}

// TestI6_AStockThatForgets: whatever the Stock says of a user, SQL keeps the limit.
func TestI6_AStockThatForgets(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100})
		first := w.reserve("ann", 1)
		lie := flashsale.Effect{RID: first, User: "ann", Quantity: 1, State: flashsale.Cancelled, Version: 99}
		_, err := w.stock().Apply(t.Context(), phone, w.sku().Epoch, []flashsale.Effect{lie}, nil)
		w.must(err)
		for range 5 {
			rid := w.ask("ann", 1)
			w.consume()
			if r := w.row(rid); r.State != flashsale.Rejected || r.Reason != flashsale.ReasonPurchaseLimit {
				t.Fatalf("I6: a second one is %s (%s)", r.State, r.Reason)
			}
		}
		w.rebuild()
		w.sound()
		if b := w.books(); b.reserved != 1 || b.most != 1 {
			t.Errorf("I6: SQL has %d reserved, a user %d; want 1 and 1", b.reserved, b.most)
		}
	})
}
