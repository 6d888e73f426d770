package memstock

import (
	"context"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Find implements [flashsale.Stock].
func (s *Stock) Find(ctx context.Context, key flashsale.Key, epoch int64, rids []string) ([]flashsale.Entry, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	defer k.unlock()
	found := make([]flashsale.Entry, len(rids))
	for i, rid := range rids {
		if e := k.entries[rid]; e != nil {
			found[i] = e.public()
		} else {
			found[i] = flashsale.Entry{RID: rid}
		}
	}
	return found, nil
}

// Holds implements [flashsale.Stock].
func (s *Stock) Holds(ctx context.Context, key flashsale.Key, epoch int64, user string) ([]string, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	defer k.unlock()
	b := k.buyers[user]
	return b.rids(), nil
}

// Entries implements [flashsale.Stock]. The cursor is the slot that comes next.
func (s *Stock) Entries(ctx context.Context, key flashsale.Key, epoch int64, cursor string, limit int) ([]flashsale.Entry, string, error) {
	from := 0
	if cursor != "" {
		var err error
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 {
			return nil, "", failf(flashsale.CodeInvalidArgument, "%q is not a cursor of %s; begin with an empty one", cursor, key)
		}
	}
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, "", err
	}
	defer k.unlock()
	limit = max(limit, 1)
	var page []*entry
	for ; from < len(k.slots.of) && len(page) < limit; from++ {
		if e := k.slots.of[from]; e != nil {
			page = append(page, e)
		}
	}
	if from >= len(k.slots.of) {
		return publicOf(page), "", nil
	}
	return publicOf(page), strconv.Itoa(from), nil
}

// Forget implements [flashsale.Stock].
func (s *Stock) Forget(ctx context.Context, key flashsale.Key, epoch int64, rids []string) (int, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return 0, err
	}
	defer k.unlock()
	now, forgotten := s.now(), 0
	for _, rid := range rids {
		if e := k.entries[rid]; e != nil && e.state.Terminal() && now-e.at > retention {
			k.remove(e)
			forgotten++
		}
	}
	return forgotten, nil
}

// View implements [flashsale.Stock].
func (s *Stock) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	if err := s.check(ctx); err != nil {
		return flashsale.StockView{}, err
	}
	v := flashsale.StockView{Run: s.run}
	u, ok := s.skus.Load(key)
	if !ok {
		v.Now = fromMicro(s.now())
		return v, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := s.now()
	v.Now, v.Epoch = fromMicro(now), u.pointer
	if u.current != nil && u.current.loaded {
		u.current.view(&v, now)
	}
	return v, nil
}

func (k *keys) view(v *flashsale.StockView, now int64) {
	v.Loaded = true
	v.Total, v.Available, v.Held, v.Sold = k.total, k.available, k.held, k.sold
	v.Seq, v.Settings, v.NextRate = k.seq, k.settings, k.nextRate
	v.Queue = flashsale.QueueView{
		Depth: k.queue.depth(), Pulled: k.queue.pulled.n, Dead: int64(len(k.dead)), Pending: int64(len(k.due)),
		Oldest: time.Duration(k.queue.age(now)) * time.Microsecond,
	}
}
