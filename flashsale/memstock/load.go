package memstock

import (
	"context"
	"slices"
	"strconv"

	"github.com/headgate-io/headgate/flashsale"
)

// unset is the version of settings that Load leaves: every one of SQL's is higher.
const unset = -1

// Point implements [flashsale.Loader].
func (s *Stock) Point(ctx context.Context, key flashsale.Key, epoch int64) ([]int64, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if epoch < 1 {
		return nil, stale(key, epoch, 0)
	}
	u, err := s.sku(key)
	if err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	if epoch < u.pointer || epoch == u.pointer && u.current != nil && u.current.loaded {
		return nil, stale(key, epoch, u.pointer)
	}
	if epoch > u.pointer {
		u.pointer, u.current = epoch, nil
	}
	return u.older(), nil
}

// sku returns a key's sku, locked, and makes it if there is none.
func (s *Stock) sku(key flashsale.Key) (*sku, error) {
	for {
		u, ok := s.skus.Load(key)
		if !ok {
			if s.skus.Size() >= s.cfg.MaxKeys {
				return nil, failf(flashsale.CodeUnavailable, "%s is one sku more than the %d that Config.MaxKeys allows", key, s.cfg.MaxKeys)
			}
			u, _ = s.skus.LoadOrStore(key, &sku{epochs: map[int64]*keys{}})
		}
		u.mu.Lock()
		if !u.gone {
			return u, nil
		}
		u.mu.Unlock() // it was removed just now
	}
}

// older are the epochs with keys before the current one, oldest first. No epoch is above the pointer, which only rises.
func (u *sku) older() []int64 {
	var older []int64
	for epoch := range u.epochs {
		if epoch < u.pointer {
			older = append(older, epoch)
		}
	}
	slices.Sort(older)
	return older
}

// Load implements [flashsale.Loader].
func (s *Stock) Load(ctx context.Context, key flashsale.Key, epoch int64, part *flashsale.LoadPart) error {
	if err := checkPart(key, part); err != nil {
		return err
	}
	u, err := s.lockPointed(ctx, key, epoch)
	if err != nil {
		return err
	}
	defer u.mu.Unlock()
	if u.current == nil {
		u.current = newKeys(s, key, &u.mu)
		u.epochs[epoch] = u.current
	}
	if !u.current.loaded {
		u.current.load(part, s.now())
	}
	return nil
}

// checkPart refuses what SQL cannot hold.
func checkPart(key flashsale.Key, part *flashsale.LoadPart) error {
	for i := range part.Entries {
		if e := &part.Entries[i]; e.State < flashsale.Reserved || e.State > flashsale.Rejected {
			return failf(flashsale.CodeInvalidArgument, "loading %s: %s is %s, which SQL never says", key, e.RID, e.State)
		}
	}
	if part.Last && (part.Reserved < 0 || part.Sold < 0 || part.Reserved+part.Sold > part.Total || part.Total > flashsale.MaxTotal) {
		return failf(flashsale.CodeInvalidArgument, "loading %s: reserved %d and sold %d of a total of %d", key, part.Reserved, part.Sold, part.Total)
	}
	return nil
}

// load puts a part in. The same part again changes nothing.
func (k *keys) load(part *flashsale.LoadPart, now int64) {
	for i := range part.Entries {
		k.loadEntry(&part.Entries[i])
	}
	for i := range part.Buyers {
		k.loadBuyer(&part.Buyers[i])
	}
	for _, id := range part.Adjusted {
		k.adjusted[id] = true
	}
	if !part.Last {
		return
	}
	k.total, k.held, k.sold = part.Total, part.Reserved, part.Sold
	k.available = part.Total - part.Reserved - part.Sold
	settings := part.Settings
	settings.Version, settings.Status = unset, ""
	k.configure(&settings, now)
	k.loaded = true
}

func (k *keys) loadEntry(from *flashsale.Entry) {
	e := k.entries[from.RID]
	if e == nil {
		e = &entry{rid: from.RID, user: from.User, fromSQL: true}
		k.insert(e)
	} else {
		k.mark(from.RID, from.User)
	}
	e.user, e.quantity, e.state, e.version, e.at = from.User, from.Quantity, from.State, from.Version, from.At.UnixMicro()
}

// Drain implements [flashsale.Loader].
func (s *Stock) Drain(ctx context.Context, key flashsale.Key, epoch, older int64, after string, limit int) ([]flashsale.Job, error) {
	u, err := s.lockOlder(ctx, key, epoch, older)
	if err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	k := u.epochs[older]
	if k == nil {
		return nil, nil
	}
	i := 0
	if after != "" {
		id, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return nil, failf(flashsale.CodeInvalidArgument, "draining epoch %d of %s: %q is no job; begin with an empty id", older, key, after)
		}
		i, _ = k.queue.locate(id + 1)
	}
	var jobs []flashsale.Job
	for ; i < len(k.queue.places) && len(jobs) < limit; i++ {
		if e := k.queue.at(i); e != nil {
			jobs = append(jobs, e.publicJob())
		}
	}
	return jobs, nil
}

// Drop implements [flashsale.Loader].
func (s *Stock) Drop(ctx context.Context, key flashsale.Key, epoch, older int64) error {
	u, err := s.lockOlder(ctx, key, epoch, older)
	if err != nil {
		return err
	}
	defer u.mu.Unlock()
	s.drop(u, older)
	return nil
}

func (s *Stock) drop(u *sku, epoch int64) {
	if k := u.epochs[epoch]; k != nil {
		s.reservations.Add(-int64(len(k.entries)))
		delete(u.epochs, epoch)
	}
}

// Remove implements [flashsale.Loader].
func (s *Stock) Remove(ctx context.Context, key flashsale.Key, epoch int64) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	u, ok := s.skus.Load(key)
	if !ok {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone {
		return nil
	}
	if u.pointer != epoch && u.pointer != 0 {
		return stale(key, epoch, u.pointer)
	}
	for e := range u.epochs {
		s.drop(u, e)
	}
	u.pointer, u.current, u.gone = 0, nil, true
	s.skus.Delete(key)
	return nil
}

func (s *Stock) lockOlder(ctx context.Context, key flashsale.Key, epoch, older int64) (*sku, error) {
	if older >= epoch {
		return nil, failf(flashsale.CodeInvalidArgument, "epoch %d of %s is not older than %d", older, key, epoch)
	}
	return s.lockPointed(ctx, key, epoch)
}
