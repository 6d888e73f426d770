package engine

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// setBack is a stock that loses what settings it was given last, as one does at a failover.
type setBack struct{ Stock }

func (s *setBack) Configure(context.Context, flashsale.Key, int64, *flashsale.Settings) error {
	return nil
}

// TestAStockThatLosesAStatusReservesNothing: what was paused or drained in SQL is not reserved by a stock that has lost that, and what is
// known there is answered as before.
func TestAStockThatLosesAStatusReservesNothing(t *testing.T) {
	t.Parallel()
	for status, stop := range map[flashsale.Status]func(*Engine, context.Context, Command) ([]flashsale.Operation, error){
		flashsale.Paused: (*Engine).PauseSale, flashsale.Draining: (*Engine).DrainSale,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			k := openKeep(t)
			won, late := k.request("ann"), k.request("bob")
			first, err := k.engine.Reserve(t.Context(), won)
			k.must(err)
			k.engine.stock = &setBack{k.engine.stock}
			_, err = stop(k.engine, t.Context(), k.command("stop"))
			k.must(err)
			if v := k.view(); v.Settings.Status != flashsale.Open {
				t.Fatalf("the stock has not lost anything: %+v", v)
			}
			answer, err := k.engine.Reserve(t.Context(), late)
			wantCode(t, "a call after the failover", err, flashsale.CodeNotOpen)
			if answer.Detail != string(status) || k.view().Held != 1 {
				t.Errorf("the answer is %+v, the stock holds %d", answer, k.view().Held)
			}
			again, err := k.engine.Reserve(t.Context(), won)
			if err != nil || !again.Known || again.Result.RID != first.Result.RID {
				t.Errorf("a call that is known is answered %+v, %v", again, err)
			}
			won.Quantity = 2
			_, err = k.engine.Reserve(t.Context(), won)
			wantCode(t, "a known one with another quantity", err, flashsale.CodeConflict)
			k.clock.advance(flashsale.MaxTokenLife)
			_, err = k.engine.Reserve(t.Context(), late)
			wantCode(t, "one whose token has expired", err, flashsale.CodeTokenExpired)
		})
	}
}

func (k *keep) request(user string) ReserveRequest {
	k.t.Helper()
	token, _, err := k.engine.Token(k.t.Context(), TokenRequest{Key: k.key, User: user})
	k.must(err)
	return ReserveRequest{Token: token, Key: k.key, User: user, Quantity: 1}
}

// TestTheStockAloneSaysSoWhereSQLDoesNotAnswer: what SQL said long ago refuses nobody.
func TestTheStockAloneSaysSoWhereSQLDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	silent := false
	other := k.another(&porttest.Gate{Before: func(_ context.Context, call string) error {
		if silent && call == "orders.SKU" {
			return errorf(flashsale.CodeUnavailable, "SQL does not answer")
		}
		return nil
	}})
	request := k.request("ann")
	_, err := other.PauseSale(t.Context(), k.command("pause"))
	k.must(err)
	_, err = k.engine.ResumeSale(t.Context(), k.command("resume"))
	k.must(err)
	silent = true
	age(other.skus, refusalAge)
	if _, err := other.Reserve(t.Context(), request); err != nil {
		t.Errorf("what is open is refused by what SQL said before: %v", err)
	}
}

// age makes what a cache knows older.
func age(c *skuCache, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, known := range c.known {
		known.at = known.at.Add(-by)
		c.known[key] = known
	}
}
