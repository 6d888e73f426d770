package model

import (
	"context"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
)

// lossyStock is a stock that can lose its last writes, as a Redis does at a failover: it remembers all of them, and makes another
// stock of the first ones.
type lossyStock struct {
	*memstock.Stock
	clock  func() time.Time
	replay time.Time // the time of a write that is made again, zero otherwise
	writes []write
}

type write struct {
	name string
	at   time.Time
	do   func(s *memstock.Stock)
}

func newLossyStock(clock func() time.Time) *lossyStock {
	l := &lossyStock{clock: clock}
	l.Stock = memstock.New(memstock.Config{Now: l.time})
	return l
}

func (l *lossyStock) time() time.Time {
	if !l.replay.IsZero() {
		return l.replay
	}
	return l.clock()
}

// lose loses the last n writes; the stock has another run after it.
func (l *lossyStock) lose(n int) {
	l.writes = l.writes[:max(0, len(l.writes)-n)]
	l.Stock = memstock.New(memstock.Config{Now: l.time})
	for _, w := range l.writes {
		l.replay = w.at
		w.do(l.Stock)
	}
	l.replay = time.Time{}
}

// copyLife is how long a copy of a write can be on its way.
const copyLife = 2 * time.Minute

// again makes a write once more, as a copy of it that was on its way would, and reports whether it was not too old for that.
func (l *lossyStock) again(i int) bool {
	w := l.writes[i]
	if l.clock().Sub(w.at).Abs() > copyLife {
		return false
	}
	w.name, w.at = w.name+" once more", l.clock()
	l.writes = append(l.writes, w)
	w.do(l.Stock)
	return true
}

// wrote notes a write that is about to be made. One whose caller has gone is not made.
func (l *lossyStock) wrote(ctx context.Context, name string, do func(s *memstock.Stock)) {
	if ctx.Err() != nil {
		return
	}
	l.writes = append(l.writes, write{name, l.clock(), do})
}

func (l *lossyStock) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (flashsale.Answer, error) {
	kept := *ask
	l.wrote(ctx, "Reserve", func(s *memstock.Stock) { _, _ = s.Reserve(context.Background(), key, epoch, &kept) })
	return l.Stock.Reserve(ctx, key, epoch, ask)
}

func (l *lossyStock) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	keptEffects, keptAcks := slices.Clone(effects), slices.Clone(acks)
	l.wrote(ctx, "Apply", func(s *memstock.Stock) { _, _ = s.Apply(context.Background(), key, epoch, keptEffects, keptAcks) })
	return l.Stock.Apply(ctx, key, epoch, effects, acks)
}

func (l *lossyStock) Adjust(ctx context.Context, key flashsale.Key, epoch int64, id string, delta int64) (flashsale.AdjustResult, error) {
	l.wrote(ctx, "Adjust", func(s *memstock.Stock) { _, _ = s.Adjust(context.Background(), key, epoch, id, delta) })
	return l.Stock.Adjust(ctx, key, epoch, id, delta)
}

func (l *lossyStock) Configure(ctx context.Context, key flashsale.Key, epoch int64, settings *flashsale.Settings) error {
	kept := *settings
	l.wrote(ctx, "Configure", func(s *memstock.Stock) { _ = s.Configure(context.Background(), key, epoch, &kept) })
	return l.Stock.Configure(ctx, key, epoch, settings)
}

func (l *lossyStock) Forget(ctx context.Context, key flashsale.Key, epoch int64, rids []string) (int, error) {
	kept := slices.Clone(rids)
	l.wrote(ctx, "Forget", func(s *memstock.Stock) { _, _ = s.Forget(context.Background(), key, epoch, kept) })
	return l.Stock.Forget(ctx, key, epoch, rids)
}

// Lull is a write: for as long as it lasts, others are given less.
func (l *lossyStock) Lull(ctx context.Context, key flashsale.Key, epoch int64, ask flashsale.LullAsk) (flashsale.Lull, error) {
	l.wrote(ctx, "Lull", func(s *memstock.Stock) { _, _ = s.Lull(context.Background(), key, epoch, ask) })
	return l.Stock.Lull(ctx, key, epoch, ask)
}

func (l *lossyStock) Pull(ctx context.Context, key flashsale.Key, epoch int64, consumer string, limit int, reclaim time.Duration) ([]flashsale.Job, error) {
	l.wrote(ctx, "Pull", func(s *memstock.Stock) { _, _ = s.Pull(context.Background(), key, epoch, consumer, limit, reclaim) })
	return l.Stock.Pull(ctx, key, epoch, consumer, limit, reclaim)
}

func (l *lossyStock) Bury(ctx context.Context, key flashsale.Key, epoch int64, job *flashsale.Job, reason string) error {
	kept := *job
	l.wrote(ctx, "Bury", func(s *memstock.Stock) { _ = s.Bury(context.Background(), key, epoch, &kept, reason) })
	return l.Stock.Bury(ctx, key, epoch, job, reason)
}

func (l *lossyStock) Revive(ctx context.Context, key flashsale.Key, epoch int64, ids []string) (int, error) {
	kept := slices.Clone(ids)
	l.wrote(ctx, "Revive", func(s *memstock.Stock) { _, _ = s.Revive(context.Background(), key, epoch, kept) })
	return l.Stock.Revive(ctx, key, epoch, ids)
}

func (l *lossyStock) Point(ctx context.Context, key flashsale.Key, epoch int64) ([]int64, error) {
	l.wrote(ctx, "Point", func(s *memstock.Stock) { _, _ = s.Point(context.Background(), key, epoch) })
	return l.Stock.Point(ctx, key, epoch)
}

func (l *lossyStock) Load(ctx context.Context, key flashsale.Key, epoch int64, part *flashsale.LoadPart) error {
	kept := *part
	kept.Entries, kept.Buyers, kept.Adjusted = slices.Clone(part.Entries), slices.Clone(part.Buyers), slices.Clone(part.Adjusted)
	l.wrote(ctx, "Load", func(s *memstock.Stock) { _ = s.Load(context.Background(), key, epoch, &kept) })
	return l.Stock.Load(ctx, key, epoch, part)
}

func (l *lossyStock) Drop(ctx context.Context, key flashsale.Key, epoch, older int64) error {
	l.wrote(ctx, "Drop", func(s *memstock.Stock) { _ = s.Drop(context.Background(), key, epoch, older) })
	return l.Stock.Drop(ctx, key, epoch, older)
}
