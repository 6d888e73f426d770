package memstock

import (
	"context"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const lullFor = int64(flashsale.LullFor / time.Microsecond)

// mark notes names that are known from now on. At the bound nobody is told of lulls any more.
func (k *keys) mark(names ...string) {
	if len(k.marks) >= flashsale.MaxMarks {
		return
	}
	for _, name := range names {
		k.marks = append(k.marks, flashsale.Mark(name))
	}
}

// lulled reports whether a lull goes on. A clock that has gone back ends it.
func (k *keys) lulled(now int64) bool { return now < k.calm && k.calm-now <= lullFor }

// Lull implements [flashsale.Stock].
func (s *Stock) Lull(ctx context.Context, key flashsale.Key, epoch int64, ask flashsale.LullAsk) (flashsale.Lull, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return flashsale.Lull{}, err
	}
	defer k.unlock()
	if k.settings.Status == "" {
		return flashsale.Lull{}, noSettings(key)
	}
	count := int64(len(k.marks))
	l := flashsale.Lull{Count: count, Available: k.available, Seq: k.seq}
	if ask.After > 0 && ask.After <= count && k.marks[ask.After-1] == ask.Last {
		l.From = ask.After
	}
	l.Marks = slices.Clone(k.marks[l.From:min(count, l.From+int64(min(max(ask.Limit, 0), flashsale.MaxMarks)))])
	now := s.now()
	detail, open := k.open(now)
	if !open {
		l.Code, l.Detail = flashsale.CodeNotOpen, detail
	} else if l.Complete() {
		l.For, l.Above = k.lull(now)
	}
	return l, nil
}

// lull begins a lull or prolongs it, unless units have come back since it began: they are to be sold when it ends.
func (k *keys) lull(now int64) (lasts time.Duration, above int64) {
	if !k.lulled(now) || k.available <= k.above {
		k.calm, k.above = now+lullFor, k.available
	}
	return time.Duration(k.calm-now) * time.Microsecond, k.above
}
