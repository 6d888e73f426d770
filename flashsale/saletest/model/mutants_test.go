package model

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// mutant is a sale with one thing broken, and the invariants of which the model must find one to be so.
type mutant struct {
	name   string
	breaks func(p *ports)
	found  []string
	// longer is how many times as long as others the runs are in which it is found soonest.
	longer int
}

// notQuiet is what is found where nothing is wrong but that it never ends.
const notQuiet = "it does not become quiescent"

func mutants() []mutant {
	return []mutant{
		{"nobody has a purchase limit", func(p *ports) { p.orders = unlimited{p.orders} }, []string{"I6"}, 1},
		{"what is given back is counted twice", func(p *ports) { p.stock = givesTwice{p.stock} }, []string{"I3", "I2"}, 1},
		{"what is given back is not heard of", func(p *ports) { p.stock = deaf{p.stock} }, []string{"I3", "the audit", notQuiet}, 1},
		{"a rebuild does not read the old queue", func(p *ports) { p.stock = noDrain{p.stock} }, []string{"I9"}, 1},
		{"the stock does not look at epochs", func(p *ports) { p.stock = anyEpoch{p.stock} }, []string{"I3", "I9", "the audit", notQuiet}, 4},
		{"a token makes another reservation", func(p *ports) { p.stock = spendsTwice{p.stock} }, []string{"I16"}, 1},
		{"refunds are noted and not made", func(p *ports) { p.payments = keepsMoney{p.payments} }, []string{"I7"}, 1},
		{"events are lost", func(p *ports) { p.orders = forgetsEvents{p.orders} }, []string{"I4", "I5", "I8", "I9"}, 1},
		{"a webhook of a failure counts as a capture", func(p *ports) { p.payments = believes{p.payments} }, []string{"I7", notQuiet}, 1},
	}
}

// TestMutants breaks the ports one by one, and sees that the model finds it within some seeds.
func TestMutants(t *testing.T) {
	tries := uint64(150)
	if underRace || testing.Short() {
		t.Skip("it says nothing about races")
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := range tries {
				p := planOf(seed+1, m.longer*defaultSteps)
				p.mutate = m.breaks
				o := play(t, p, drawn)
				if !o.finding.Failed() {
					continue
				}
				for _, invariant := range m.found {
					if strings.Contains(o.finding.String(), invariant) {
						t.Logf("found with seed %d: %s", p.seed, o.finding)
						return
					}
				}
				t.Fatalf("with seed %d something else is found than %v:\n%s", p.seed, m.found, o.finding)
			}
			t.Errorf("%d runs have found nothing", tries)
		})
	}
}

// unlimited stores sales in which everybody may have as many as they like; the model goes by what the sale said.
type unlimited struct{ flashsale.Orders }

func (u unlimited) CreateSale(ctx context.Context, s *flashsale.Sale) error {
	wide := *s
	wide.SKUs = append([]flashsale.SKU(nil), s.SKUs...)
	for i := range wide.SKUs {
		wide.SKUs[i].PurchaseLimit = 1000
	}
	return u.Orders.CreateSale(ctx, &wide)
}

// givesTwice adds once more what an effect has given back.
type givesTwice struct{ porttest.AnyStock }

func (g givesTwice) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	applied, err := g.AnyStock.Apply(ctx, key, epoch, effects, acks)
	for i := range applied {
		if applied[i] == flashsale.AppliedMoved && effects[i].State.Class() == flashsale.Free {
			_, _ = g.Adjust(ctx, key, epoch, "twice-"+effects[i].RID, effects[i].Quantity)
		}
	}
	return applied, err
}

// deaf drops effects that give back, and says that it has followed.
type deaf struct{ porttest.AnyStock }

func (d deaf) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	var kept []flashsale.Effect
	for i := range effects {
		if effects[i].State.Class() != flashsale.Free {
			kept = append(kept, effects[i])
		}
	}
	_, err := d.AnyStock.Apply(ctx, key, epoch, kept, acks)
	return make([]flashsale.Applied, len(effects)), err
}

// noDrain has nothing in any old queue.
type noDrain struct{ porttest.AnyStock }

// Drain returns no job.
func (noDrain) Drain(context.Context, flashsale.Key, int64, int64, string, int) ([]flashsale.Job, error) {
	return nil, nil
}

// anyEpoch does everything in the epoch that there is, whichever the caller knows.
type anyEpoch struct{ porttest.AnyStock }

func (a anyEpoch) now(ctx context.Context, key flashsale.Key) int64 {
	v, _ := a.View(ctx, key)
	return v.Epoch
}

func (a anyEpoch) Apply(ctx context.Context, key flashsale.Key, _ int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	return a.AnyStock.Apply(ctx, key, a.now(ctx, key), effects, acks)
}

func (a anyEpoch) Adjust(ctx context.Context, key flashsale.Key, _ int64, id string, delta int64) (flashsale.AdjustResult, error) {
	return a.AnyStock.Adjust(ctx, key, a.now(ctx, key), id, delta)
}

func (a anyEpoch) Load(ctx context.Context, key flashsale.Key, _ int64, part *flashsale.LoadPart) error {
	return a.AnyStock.Load(ctx, key, a.now(ctx, key), part)
}

// spendsTwice makes another reservation of a token that was spent.
type spendsTwice struct{ porttest.AnyStock }

func (s spendsTwice) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (flashsale.Answer, error) {
	a, err := s.AnyStock.Reserve(ctx, key, epoch, ask)
	if err != nil || !a.Known {
		return a, err
	}
	other := *ask
	other.RID += "-again"
	return s.AnyStock.Reserve(ctx, key, epoch, &other)
}

// keepsMoney says of a refund that it is made.
type keepsMoney struct{ flashsale.Payments }

func (k keepsMoney) Refund(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	p, err := k.Query(ctx, intentKey)
	if err == nil {
		p.Status = flashsale.PayRefunded
	}
	return p, err
}

// forgetsEvents marks the rows of a page as sent to the relay before they are.
type forgetsEvents struct{ flashsale.Orders }

func (f forgetsEvents) Unsent(ctx context.Context, lane flashsale.Lane, age time.Duration, after int64, limit int) ([]flashsale.Event, error) {
	events, err := f.Orders.Unsent(ctx, lane, age, after, limit)
	if lane != flashsale.LaneRelay {
		return events, err
	}
	ids := make([]int64, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	_ = f.Sent(ctx, lane, 0, ids)
	return events, err
}

// believes takes a failure for a capture.
type believes struct{ flashsale.Payments }

func (b believes) Webhook(header map[string][]string, body []byte) (*flashsale.ProviderEvent, error) {
	e, err := b.Payments.Webhook(header, body)
	if err == nil && e.Payment.Status == flashsale.PayFailed {
		e.Payment.Status = flashsale.PayCaptured
	}
	return e, err
}
