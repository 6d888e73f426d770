package memstock

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// Apply implements [flashsale.Stock]. An entry that has ended never changes again, whatever version says so.
func (s *Stock) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	for i := range effects {
		if st := effects[i].State; st < flashsale.Reserved || st > flashsale.Rejected {
			return nil, failf(flashsale.CodeInvalidArgument, "effect %d on %s says %s, which SQL never does", i, key, st)
		}
	}
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	defer k.unlock()
	now := s.now()
	applied := make([]flashsale.Applied, len(effects))
	for i := range effects {
		applied[i] = k.apply(&effects[i], now)
	}
	for _, id := range acks {
		if e := k.queue.find(id); e != nil {
			k.queue.remove(e)
		}
	}
	k.lowerRate(now)
	return applied, nil
}

// apply follows one effect.
func (k *keys) apply(f *flashsale.Effect, now int64) flashsale.Applied {
	e := k.entries[f.RID]
	switch {
	case e == nil && f.State.Class() != flashsale.Free:
		return flashsale.AppliedLost
	case e == nil:
		k.seq++
		k.insert(&entry{rid: f.RID, user: f.User, quantity: f.Quantity, state: f.State, version: f.Version, at: now, fromSQL: true})
		return flashsale.AppliedStored
	case f.Version <= e.version || e.state.Terminal():
		return flashsale.AppliedOld
	}
	k.seq++
	k.move(e, f.State, f.Version, now)
	return flashsale.AppliedMoved
}

// Adjust implements [flashsale.Stock].
func (s *Stock) Adjust(ctx context.Context, key flashsale.Key, epoch int64, id string, delta int64) (flashsale.AdjustResult, error) {
	if delta < -flashsale.MaxTotal || delta > flashsale.MaxTotal {
		return flashsale.AdjustResult{}, failf(flashsale.CodeInvalidQuantity, "adjusting %s by %d; %d are allowed", key, delta, flashsale.MaxTotal)
	}
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return flashsale.AdjustResult{}, err
	}
	defer k.unlock()
	done, seen := k.adjusted[id]
	if !seen {
		done = k.adjust(delta)
		k.adjusted[id] = done
	}
	return flashsale.AdjustResult{Done: done, Available: k.available}, nil
}

// adjust reports whether there was enough to take away.
func (k *keys) adjust(delta int64) bool {
	if k.available+delta < 0 {
		return false
	}
	k.total += delta
	k.available += delta
	k.seq++
	return true
}

// Configure implements [flashsale.Stock].
func (s *Stock) Configure(ctx context.Context, key flashsale.Key, epoch int64, settings *flashsale.Settings) error {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return err
	}
	defer k.unlock()
	if settings.Version <= k.settings.Version {
		return nil
	}
	k.seq++
	k.configure(settings, s.now())
	return nil
}

// configure puts settings in force, but for a lower rate that the queue does not fit.
func (k *keys) configure(to *flashsale.Settings, now int64) {
	rate := k.settings.Rate
	k.settings = *to
	k.settings.Rate, k.nextRate = rate, 0
	k.opens, k.closes = to.OpensAt.UnixMicro(), to.ClosesAt.UnixMicro()
	if to.Rate >= rate {
		k.setRate(to.Rate, now)
		return
	}
	k.nextRate = to.Rate
	k.lowerRate(now)
}

// lowerRate lets a lower rate that waits take effect, once what waits in the queue fits it.
func (k *keys) lowerRate(now int64) {
	if k.nextRate != 0 && k.queue.depth() <= k.nextRate*backlogSecs {
		k.setRate(k.nextRate, now)
		k.nextRate = 0
	}
}

func (k *keys) setRate(rate, now int64) {
	k.pace.change(k.settings.Rate, rate, now)
	k.settings.Rate = rate
}
