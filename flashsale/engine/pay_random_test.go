package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// TestPaymentsAtRandom lets some hundred shoppers pay at a provider that does everything wrong that it can, while the jobs run now
// and then, calls of all ports fail before and after, and the engine dies. Then all is well again, and everything must have come to
// its end: confirmed, or refunded, or never captured; and nobody is charged twice. HEADGATE_PAYMENT_SEEDS=1000 tries more.
func TestPaymentsAtRandom(t *testing.T) {
	var mu sync.Mutex
	moved := map[string]int{}
	seeds := uint64(6)
	if n, err := strconv.ParseUint(os.Getenv("HEADGATE_PAYMENT_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				told := playAtRandom(t, seed)
				mu.Lock()
				defer mu.Unlock()
				for name, n := range told {
					moved[name] += n
				}
			})
		}
	})
	t.Logf("%v", moved)
	for _, name := range []string{"T2", "T3", "T3b", "T4", "T5", "T6", "T7", "T8", "T9", "T9 paid_twice", "T9 amount_mismatch", "T9 currency_mismatch"} {
		if moved[name] == 0 {
			t.Errorf("there was no %s: too little was tried", name)
		}
	}
	if moved["T3"] < 200 {
		t.Errorf("%d payments; want hundreds", moved["T3"])
	}
}

func playAtRandom(t *testing.T, seed uint64) map[string]int {
	rng := rand.New(rand.NewPCG(seed, 99))
	c := openTill(t, tillPlan{total: 40, limit: 3, seed: seed, bank: simpay.Behaviour{
		Capture: 0.4, Fail: 0.4, Shopper: simpay.Range{Max: 10 * time.Minute}, WrongCapture: 0.05,
		VoidLater: 0.4, VoidTime: simpay.Range{Max: 10 * time.Minute}, VoidTooLate: 0.3, Undone: 0.3,
		FailBefore: 0.05, FailAfter: 0.05,
		Webhook: simpay.Range{Max: time.Minute}, LateBy: 10 * time.Minute, Lost: 0.3, Twice: 0.3, Late: 0.2, Reordered: 0.2, Misreport: 0.1,
	}})
	// The poller asks about several payments together, so that faults are drawn by several goroutines.
	var mu sync.Mutex
	drawn := rand.New(rand.NewPCG(seed, 98))
	draw := func(chance float64) error {
		mu.Lock()
		defer mu.Unlock()
		return fault(drawn, chance)
	}
	faults := func(chance float64) {
		c.gate.Before = func(context.Context, string) error { return draw(chance) }
		c.gate.After = func(_ context.Context, _ string, err error) error {
			if lost := draw(chance); lost != nil {
				return lost
			}
			return err
		}
	}
	faults(0.02)
	var rids []string
	for range 900 {
		c.act(rng, &rids)
	}
	faults(0)
	c.bank.SetBehaviour(simpay.Behaviour{})
	c.start()
	for range 8 {
		c.pass(10 * time.Minute)
		c.jobs()
	}
	if _, differences := c.match(); len(differences) != 0 {
		t.Errorf("%v", differences)
	}
	c.jobs()
	if report, differences := c.match(); len(differences) != 0 || report.Repaired != 0 {
		t.Errorf("a second match repairs %d, and finds %v", report.Repaired, differences)
	}
	rows, err := c.sql.Reservations(t.Context(), rids)
	c.must(err)
	for i := range rows {
		if !rows[i].State.Terminal() {
			t.Errorf("%s is %s", rows[i].RID, rows[i].State)
		}
	}
	c.holds()
	return c.told.moved
}

func fault(rng *rand.Rand, chance float64) error {
	if rng.Float64() < chance {
		return errorf(flashsale.CodeUnavailable, "this call fails by chance")
	}
	return nil
}

// act is something that somebody does.
func (c *till) act(rng *rand.Rand, rids *[]string) {
	ctx := c.t.Context()
	user := fmt.Sprint("u", rng.IntN(20))
	rid := ""
	if len(*rids) > 0 {
		rid = (*rids)[rng.IntN(len(*rids))]
		if r, err := c.sql.Reservation(ctx, rid); err == nil {
			user = r.User
		}
	}
	switch rng.IntN(20) {
	case 0, 1, 2:
		buyer := fmt.Sprint("u", rng.IntN(20))
		c.shopped++
		rid := fmt.Sprintf("r%d", c.shopped)
		a, err := c.e.take(ctx, c.key, &flashsale.Ask{RID: rid, User: buyer, Quantity: 1, Body: flashsale.BodyHash(c.key, buyer, 1)})
		if err == nil && a.Accepted {
			*rids = append(*rids, rid)
		}
	case 3, 4, 5, 6, 7, 8:
		_, _ = c.e.Pay(ctx, rid, user)
	case 9:
		_, _ = c.e.Cancel(ctx, rid, user)
	case 10:
		_, _ = c.e.PollOnce(ctx)
	case 11:
		_, _ = c.e.SweepOnce(ctx)
	case 12:
		_, _ = c.e.DeliverOnce(ctx)
	case 13:
		_, _ = c.e.MatchOnce(ctx, c.now.Add(-time.Hour))
	case 14:
		c.start()
	case 15, 16, 17:
		_, _ = c.e.ConsumeOnce(ctx, c.key, "c")
	default:
		c.pass(time.Duration(rng.IntN(int(time.Minute))))
	}
}
