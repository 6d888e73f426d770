package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
)

// TestI12_LostAndRebuilt: nothing is under way, all of the Stock is lost (FLUSHALL, scripts and all; a store in memory with its process), and
// what is rebuilt offers the same to everybody.
func TestI12_LostAndRebuilt(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 60, limit: 3})
		intents := w.everything()
		w.settle()
		w.sound()
		before, holds := w.dumpStock(), w.holdings()
		available := w.view().Available
		if srv := shared.redis[pair]; srv != nil {
			for _, command := range [][]any{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}} {
				if _, err := srv.Get(t).Do(command...); err != nil {
					t.Fatal(err)
				}
			}
			if left := w.store.image(); len(left) != 0 {
				t.Fatalf("%d keys are left", len(left))
			}
		} else {
			w.loseStock()
		}
		if n := w.watch(); n != 1 {
			t.Fatalf("the watcher has found %d losses", n)
		}
		if v := w.view(); v.Available != available || v.Epoch < 2 {
			t.Errorf("I12: %d available in epoch %d; want %d", v.Available, v.Epoch, available)
		}
		if got := w.holdings(); !maps.Equal(got, holds) {
			t.Errorf("I12: users have %v, and had %v", got, holds)
		}
		if d := differences(timeless(before), timeless(w.dumpStock())); d != "" {
			t.Errorf("I12: the stock is another one:\n%s", d)
		}
		w.sameLimits(holds)
		w.consume()
		for _, intent := range intents {
			w.capture(intent)
		}
		w.bankSteps()
		w.sound()
	})
}

// timeless are lines of a dump without what a rebuild makes anew: from when on something is known.
func timeless(lines []string) (out []string) {
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " At:")
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// sameLimits has every user ask for one unit more than they may have, and then for what they may.
func (w *world) sameLimits(holds map[string]int64) {
	w.Helper()
	for _, user := range []string{"paid", "paid and holding", "holding", "paying", "cancelled", "expired", "late", "rejected", "new"} {
		left := w.limit - holds[user]
		if left < w.limit {
			_, err := w.engine(0).Reserve(w.Context(), request(w.token(user), user, left+1))
			w.wantCode(fmt.Sprintf("I12: %s, who has %d, asks for %d", user, holds[user], left+1), err, flashsale.CodePurchaseLimit)
		}
		if left > 0 {
			w.ask(user, left)
		}
	}
}
