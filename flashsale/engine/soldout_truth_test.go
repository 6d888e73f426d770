package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// chronicle is the truth that answers are compared with: what was available when.
type chronicle struct {
	mu    sync.Mutex
	at    []time.Time
	units []int64
}

func (c *chronicle) note(available int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.units = append(c.at, time.Now()), append(c.units, available)
}

// least is the least that was available between two moments.
func (c *chronicle) least(from, to time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	least, before := int64(1<<40), int64(1<<40)
	for i, at := range c.at {
		switch {
		case at.Before(from):
			before = c.units[i]
		case !at.After(to):
			least = min(least, c.units[i])
		}
	}
	return min(least, before)
}

// drama is a sale in which everything happens that can, at times that a seed draws.
type drama struct {
	*fleet
	random *rand.Rand
	truth  *chronicle
	ops    int
}

// TestSoldOutIsTheTruth: whoever is told "sold out", by whatever instance, has not been given a unit for this token before, and within
// the last 100 ms there were not as many units as they asked for. A seed that fails fails again.
func TestSoldOutIsTheTruth(t *testing.T) {
	t.Parallel()
	seeds := 40
	if underRace {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playDrama(t, uint64(seed)) })
		})
	}
}

func playDrama(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	away := []time.Duration{0, time.Millisecond, 8 * time.Millisecond, 30 * time.Millisecond}[random.IntN(4)]
	d := &drama{fleet: openFleet(t, 3, shopPlan{total: 6, limit: 2}, away), random: random, truth: &chronicle{}}
	d.far.accepted = func(a *flashsale.Answer) { d.truth.note(a.Available) }
	d.truth.note(6)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 60 {
		shopper := rand.New(rand.NewPCG(seed, uint64(100+i)))
		all.Go(func() { d.shop(ctx, i, shopper) })
	}
	for range 150 {
		time.Sleep(time.Duration(random.Int64N(int64(40 * time.Millisecond))))
		d.happens()
	}
	cancel()
	all.Wait()
	time.Sleep(restLooks + flashsale.LullFor) // whatever was broken is mended
	for n := 0; n < 200 && d.view().Available > 0; n++ {
		_, _ = d.click(n%3, fmt.Sprint("last-", n), 1)
		time.Sleep(5 * time.Millisecond)
	}
	if v := d.view(); v.Available != 0 {
		t.Errorf("%d units stay unsold", v.Available)
	}
}

// shop is a shopper who clicks on all instances, with new tokens and with those of before.
func (d *drama) shop(ctx context.Context, i int, random *rand.Rand) {
	var tokens []ReserveRequest
	user := fmt.Sprint("user-", i)
	for n := 0; pause(ctx, time.Duration(random.Int64N(int64(20*time.Millisecond)))); n++ {
		if len(tokens) == 0 || random.IntN(3) == 0 {
			if random.IntN(4) == 0 {
				user = fmt.Sprint("user-", i, "-", n)
			}
			token, _, err := d.engine.Token(ctx, TokenRequest{Key: phone, User: user})
			if err != nil {
				continue // it is paused
			}
			tokens = append(tokens, ReserveRequest{Token: token, Key: phone, User: user, Quantity: 1 + random.Int64N(2)})
		}
		r := tokens[max(0, len(tokens)-1-random.IntN(3))]
		for range 1 + random.IntN(3) { // at once on others, as after a broken connection
			d.compare(ctx, random.IntN(len(d.engines)), &r)
		}
	}
}

// compare makes a call and holds it to the truth.
func (d *drama) compare(ctx context.Context, engine int, r *ReserveRequest) {
	came := time.Now()
	answer, err := d.engines[engine].Reserve(ctx, *r)
	token, _ := d.engine.cfg.Keys.Verify(r.Token, flashsale.TokenScope{Key: r.Key, User: r.User})
	taken := d.far.wasTaken(token.RID, came)
	switch code := flashsale.CodeOf(err); code {
	case "":
		if taken && !answer.Known {
			d.t.Errorf("%s is given twice", token.RID)
		}
	case flashsale.CodeSoldOut:
		if taken {
			d.t.Errorf("the retry of a win, %s, is told sold out", token.RID)
		}
		if least := d.truth.least(came.Add(-100*time.Millisecond), time.Now()); least >= r.Quantity {
			d.t.Errorf("%d are asked for, at least %d were there, and it is said to be sold out", r.Quantity, least)
		}
	case flashsale.CodePurchaseLimit, flashsale.CodeNotOpen:
		if taken {
			d.t.Errorf("the retry of a win, %s, is told %s", token.RID, code)
		}
	case flashsale.CodeBusy, flashsale.CodeRebuilding, flashsale.CodeUnavailable:
	default:
		d.t.Errorf("a click: %v", err)
	}
}

// happens lets something happen.
func (d *drama) happens() {
	switch d.random.IntN(10) {
	case 0, 1, 2, 3:
		d.returns(1 + d.random.IntN(2))
	case 4:
		d.adjusts(1 + d.random.Int64N(2))
	case 5:
		d.adjusts(-1)
	case 6:
		d.set(func(s *flashsale.Settings) { s.Status = flashsale.Paused })
		time.Sleep(time.Duration(d.random.Int64N(int64(120 * time.Millisecond))))
		d.set(func(s *flashsale.Settings) { s.Status = flashsale.Open })
	case 7:
		d.far.down.Store(true)
		time.Sleep(time.Duration(d.random.Int64N(int64(400 * time.Millisecond))))
		d.far.down.Store(false)
	case 8:
		d.rebuilds()
	}
}

// entries is all that the stock knows.
func (d *drama) entries() []flashsale.Entry {
	page, _, err := d.stock.Entries(d.t.Context(), phone, d.view().Epoch, "", 100_000)
	if err != nil {
		d.t.Fatal(err)
	}
	return page
}

// returns gives back what some hold.
func (d *drama) returns(n int) {
	held := slices.DeleteFunc(d.entries(), func(e flashsale.Entry) bool { return e.State.Class() != flashsale.Held })
	for range min(n, len(held)) {
		e := held[d.random.IntN(len(held))]
		_, err := d.stock.Apply(d.t.Context(), phone, d.view().Epoch, []flashsale.Effect{{
			RID: e.RID, User: e.User, Quantity: e.Quantity, State: flashsale.Cancelled, Version: e.Version + 1,
		}}, nil)
		if err != nil {
			d.t.Fatal(err)
		}
		d.truth.note(d.view().Available)
	}
}

func (d *drama) adjusts(delta int64) {
	d.ops++
	if _, err := d.stock.Adjust(d.t.Context(), phone, d.view().Epoch, fmt.Sprint("op-", d.ops), delta); err != nil {
		d.t.Fatal(err)
	}
	d.truth.note(d.view().Available)
}

// rebuilds loads a new epoch with what was known in the old one; nobody reserves for a while, as between the two steps of it.
func (d *drama) rebuilds() {
	settings := d.view().Settings
	epoch := d.view().Epoch + 1
	d.set(func(s *flashsale.Settings) { s.Status = flashsale.Paused }) // what is on its way does not get lost: that is another test's
	entries, total := d.entries(), d.view().Total
	d.book.change(phone, func(s *flashsale.SKUState) { s.Epoch = epoch })
	if _, err := d.stock.Point(d.t.Context(), phone, epoch); err != nil {
		d.t.Fatal(err)
	}
	time.Sleep(flashsale.LullFor + time.Duration(d.random.Int64N(int64(50*time.Millisecond))))
	part := &flashsale.LoadPart{Last: true, Total: total}
	buyers := map[string]*flashsale.Buyer{}
	for _, e := range entries {
		e.State = max(e.State, flashsale.Reserved)
		part.Entries = append(part.Entries, e)
		if e.State.Class() != flashsale.Held {
			continue
		}
		part.Reserved += e.Quantity
		if buyers[e.User] == nil {
			buyers[e.User] = &flashsale.Buyer{User: e.User}
		}
		buyers[e.User].Quantity += e.Quantity
		buyers[e.User].RIDs = append(buyers[e.User].RIDs, e.RID)
	}
	for _, b := range buyers {
		part.Buyers = append(part.Buyers, *b)
	}
	if err := d.stock.Load(d.t.Context(), phone, epoch, part); err != nil {
		d.t.Fatal(err)
	}
	d.truth.note(total - part.Reserved)
	d.set(func(s *flashsale.Settings) { settings.Version = max(s.Version, settings.Version) + 1; *s = settings })
}
