package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// move is something that can happen next, as likely as its weight.
type move struct {
	weight int
	kind   string
	// begin returns what the engine does; nil: nothing.
	begin func(w *world, i int, e *engine.Engine) op
}

// once is a pass of a job.
func once(f func(e *engine.Engine) func(context.Context) (int, error)) func(*world, int, *engine.Engine) op {
	return func(_ *world, _ int, e *engine.Engine) op {
		return func(ctx context.Context) error { _, err := f(e)(ctx); return err }
	}
}

func shops(f func(*world, *engine.Engine, *shopper) op) func(*world, int, *engine.Engine) op {
	return func(w *world, _ int, e *engine.Engine) op { return f(w, e, w.anyShopper()) }
}

func moves() []move {
	return []move{
		{13, "buys", shops((*world).buys)},
		{5, "asks again", shops((*world).asksAgain)},
		{13, "pays", shops((*world).pays)},
		{3, "cancels", shops((*world).cancels)},
		{3, "looks", shops((*world).looks)},
		{15, "consume", func(w *world, _ int, e *engine.Engine) op {
			consumer := fmt.Sprintf("c%d", w.rng.IntN(3))
			return func(ctx context.Context) error { _, err := e.ConsumeOnce(ctx, w.key, consumer); return err }
		}},
		{4, "deliver", once(func(e *engine.Engine) func(context.Context) (int, error) { return e.DeliverOnce })},
		{5, "sweep", once(func(e *engine.Engine) func(context.Context) (int, error) { return e.SweepOnce })},
		{4, "watch", once(func(e *engine.Engine) func(context.Context) (int, error) { return e.WatchOnce })},
		{6, "poll", once(func(e *engine.Engine) func(context.Context) (int, error) { return e.PollOnce })},
		{2, "reconcile", once(func(e *engine.Engine) func(context.Context) (int, error) { return e.ReconcileOnce })},
		{3, "relay", once(func(e *engine.Engine) func(context.Context) (int, error) { return e.RelayOnce })},
		{1, "match", func(w *world, _ int, e *engine.Engine) op {
			return func(ctx context.Context) error { _, err := e.MatchOnce(ctx, w.sale.OpensAt); return err }
		}},
		{12, "webhook", func(w *world, _ int, e *engine.Engine) op { return w.hears(e) }},
		{5, "operator", func(w *world, _ int, e *engine.Engine) op { return w.operates(e) }},
		{7, "shopper", func(w *world, _ int, _ *engine.Engine) op { w.atProvider(); return nil }},
		{6, "time", func(w *world, _ int, _ *engine.Engine) op {
			w.pass(time.Duration(w.rng.IntN(5000)) * time.Millisecond)
			w.provider.Step(context.Background())
			return nil
		}},
	}
}

// move draws what happens next and begins it, or makes it happen.
func (w *world) move(all []move) {
	s := w.sku()
	switch closing := w.plan.closing && w.steps > w.plan.steps/2; {
	case w.blind > 0: // nobody looks for losses
		all = slices.DeleteFunc(slices.Clone(all), func(m move) bool { return m.kind == "watch" })
	case (s.Rebuilding || w.lostAt >= s.Epoch) && w.rng.IntN(4) == 0:
		all = only(all, "watch") // a watcher looks every second
	case closing && w.rng.IntN(8) == 0:
		all = only(all, "operator")
	}
	sum := 0
	for i := range all {
		sum += all[i].weight
	}
	n := w.rng.IntN(sum)
	for i := range all {
		if n -= all[i].weight; n < 0 {
			w.begin(&all[i])
			return
		}
	}
}

// only are the moves of one kind.
func only(all []move, kind string) []move {
	return slices.DeleteFunc(slices.Clone(all), func(m move) bool { return m.kind != kind })
}

func (w *world) begin(m *move) {
	i := w.rng.IntN(len(w.engines))
	if do := m.begin(w, i, w.engines[i]); do != nil {
		w.start(w.lives[i], m.kind, m.kind, do)
	}
}

// atProvider has a shopper pay at the provider, or try to.
func (w *world) atProvider() {
	open := w.records(flashsale.PayOpen)
	if len(open) == 0 {
		return
	}
	r, status := &open[w.rng.IntN(len(open))], flashsale.PayCaptured
	if w.rng.IntN(4) == 0 {
		status = flashsale.PayFailed
	}
	w.must(w.provider.Pay(r.Intent.Key, status))
	w.note("PAY: %s is %s at the provider", r.Intent.Key, status)
	w.pass(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
	w.provider.Step(context.Background())
}

// hears delivers one of the webhooks that are on their way, whichever; some come twice, some never, some long after.
func (w *world) hears(e *engine.Engine) op {
	w.provider.Step(context.Background())
	var h hook
	switch {
	case len(w.old) > 0 && w.rng.IntN(8) == 0:
		h = w.old[w.rng.IntN(len(w.old))]
		w.tally.add("webhook once more")
	case len(w.hooks) > 0:
		n := w.rng.IntN(len(w.hooks))
		h = w.hooks[n]
		w.hooks = slices.Delete(w.hooks, n, n+1)
		w.old = append(w.old, h)
		if n > 0 {
			w.tally.add("webhook out of order")
		}
	default:
		return nil
	}
	w.tally.add("webhook")
	return func(ctx context.Context) error { return e.Webhook(ctx, h.header, h.body) }
}

// operates draws what an operator does: something new, or something once more.
func (w *world) operates(e *engine.Engine) op {
	status := w.sku().Settings.Status
	if w.begun == 0 || w.rng.IntN(4) != 0 {
		w.begun++
	}
	if status == flashsale.Draft {
		return w.commands(e, "open", 1)
	}
	kinds := []string{"top_up", "top_up", "withdraw", "withdraw", "withdraw", "pause", "resume", "resume", "rate", "rebuild"}
	if status == flashsale.Paused && w.rng.IntN(2) == 0 {
		kinds = []string{"resume"}
	}
	if w.plan.closing && w.steps > w.plan.steps/2 && status == flashsale.Open {
		kinds = []string{"drain"}
	}
	if status == flashsale.Draining || status == flashsale.Closed {
		kinds = []string{"top_up", "withdraw", "drain", "close", "close", "rate", "rebuild", "resume"}
	}
	return w.commands(e, kinds[w.rng.IntN(len(kinds))], 1+w.rng.Int64N(3))
}

func (w *world) commands(e *engine.Engine, kind string, units int64) op {
	c := engine.Command{ID: fmt.Sprintf("op-%d", w.begun), Sale: w.key.Sale, SKU: w.key.SKU, Reason: "drawn", By: "op"}
	return func(ctx context.Context) error {
		ops, err := command(ctx, e, &c, kind, units)
		w.countOps(kind, ops)
		return err
	}
}

func (w *world) countOps(kind string, ops []flashsale.Operation) {
	for i := range ops {
		w.tally.add("operation " + kind + " " + string(ops[i].State))
	}
}

func command(ctx context.Context, e *engine.Engine, c *engine.Command, kind string, units int64) ([]flashsale.Operation, error) {
	switch kind {
	case "top_up":
		return single(e.TopUp(ctx, *c, units))
	case "withdraw":
		return single(e.Withdraw(ctx, *c, units))
	case "open":
		return e.OpenSale(ctx, *c)
	case "pause":
		return e.PauseSale(ctx, *c)
	case "resume":
		return e.ResumeSale(ctx, *c)
	case "drain":
		return e.DrainSale(ctx, *c)
	case "close":
		return e.CloseSale(ctx, *c)
	case "rate":
		return e.SetRate(ctx, *c, 1+units*300)
	}
	return e.Rebuild(ctx, *c)
}

func single(op *flashsale.Operation, err error) ([]flashsale.Operation, error) {
	if op == nil {
		return nil, err
	}
	return []flashsale.Operation{*op}, err
}
