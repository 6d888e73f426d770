package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// rebuildLease is the lease of whoever rebuilds, and atATime how many keys that one rebuilds at a time.
const (
	rebuildLease = leasePrefix + "rebuild"
	atATime      = 4
)

// WatchOnce looks at every key for a loss of the Stock, which it rebuilds if no other instance does, and for settings that the Stock
// does not have yet. It returns for how many keys there was something to do.
func (e *Engine) WatchOnce(ctx context.Context) (int, error) {
	skus, err := e.orders.SKUs(ctx)
	if err != nil {
		return 0, err
	}
	looks := make([]look, len(skus))
	err = e.allOf(len(skus), e.cfg.Paying.Parallel, "looking at a sku", func(i int) (err error) {
		looks[i], err = e.watch(ctx, &skus[i])
		return err
	})
	var lossy []flashsale.Key
	did := 0
	for i := range looks {
		switch looks[i] {
		case lookLost:
			lossy = append(lossy, skus[i].Key)
		case lookBehind:
			did++
		}
	}
	if len(lossy) > 0 {
		err = errors.Join(err, e.rebuildLossy(ctx, lossy))
	}
	return did + len(lossy), err
}

// look is what a look at a sku has found.
type look uint8

const (
	lookSound  look = iota
	lookBehind      // it did not have its settings
	lookLost
)

// watch looks at one sku. One that cannot be looked at, as its node does not answer, keeps no other from being looked at.
func (e *Engine) watch(ctx context.Context, s *flashsale.SKUState) (look, error) {
	e.skus.put(s)
	v, err := e.stock.View(ctx, s.Key)
	switch {
	case err != nil:
		return lookSound, err
	case e.lossOf(s, &v) != "":
		return lookLost, nil
	case v.Settings.Version < s.Settings.Version:
		return lookBehind, e.configure(ctx, s.Key)
	}
	return lookSound, nil
}

// lossOf says what tells of a loss, "" if nothing does. The state was read before the view: all that is compared only grows, so
// that what the Stock has less of than SQL had before is lost.
func (e *Engine) lossOf(s *flashsale.SKUState, v *flashsale.StockView) string {
	switch {
	case s.Rebuilding:
		return "a new sale, or a rebuild that has not ended"
	case v.Epoch == 0:
		return "there is nothing in the store"
	case v.Epoch < s.Epoch:
		return fmt.Sprintf("the store is at epoch %d, SQL at %d", v.Epoch, s.Epoch)
	case v.Epoch > s.Epoch:
		return fmt.Sprintf("the store is at epoch %d, which SQL, at %d, does not know of", v.Epoch, s.Epoch)
	case !v.Loaded:
		return "the keys of its epoch are missing"
	case v.Run != s.StoreRun:
		return "the store has started anew, or is another one"
	case v.Seq < s.Seq:
		return fmt.Sprintf("the store is at sequence number %d, and SQL has seen %d", v.Seq, s.Seq)
	case e.lostIn(s.Key, s.Epoch):
		return "an effect or a comparison has found it"
	}
	return ""
}

// rebuildLossy rebuilds keys under the lease; if another instance has it, that one does.
func (e *Engine) rebuildLossy(ctx context.Context, keys []flashsale.Key) error {
	_, err := e.underLease(ctx, rebuildLease, func(ctx context.Context, fence int64) error {
		return e.allOf(len(keys), atATime, "rebuilding", func(i int) error { return e.rebuildIfLost(ctx, keys[i], fence) })
	})
	return err
}

// runMender mends what this instance has noticed, until the context ends.
func (e *Engine) runMender(ctx context.Context) {
	tick := time.NewTicker(e.cfg.Jobs.Watch)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.shielded("mending", func() error { return e.mendOwn(ctx) }); err != nil && ctx.Err() == nil {
			e.log.Debug("what was noticed as lost is not rebuilt yet; it is tried again", slog.Any("error", err))
		}
	}
}

// mendOwn rebuilds what this instance has noticed as lost by an effect or a comparison, of which the watcher knows nothing if that is
// another instance, and ends the alarm where that was done since.
func (e *Engine) mendOwn(ctx context.Context) error {
	var lossy []flashsale.Key
	var errs []error
	for key, epoch := range e.care.lossy() {
		s, err := e.readSKU(ctx, key)
		switch {
		case isUnknown(err):
			e.rebuilt(key, epoch+1)
		case err != nil:
			errs = append(errs, err)
		case s.Retired:
			e.rebuilt(key, epoch+1)
		case s.Epoch > epoch && !s.Rebuilding:
			e.rebuilt(key, s.Epoch)
		default:
			lossy = append(lossy, key)
		}
	}
	if len(lossy) > 0 {
		errs = append(errs, e.rebuildLossy(ctx, lossy))
	}
	return errors.Join(errs...)
}

// rebuildIfLost looks again, now that nobody else rebuilds: whoever had the lease before may have done it.
func (e *Engine) rebuildIfLost(ctx context.Context, key flashsale.Key, fence int64) error {
	s, err := e.readSKU(ctx, key)
	if err != nil {
		return err
	}
	v, err := e.stock.View(ctx, key)
	if err != nil {
		return err
	}
	why := e.lossOf(s, &v)
	if why == "" {
		return nil
	}
	if !s.Rebuilding {
		e.noteLoss(key, s.Epoch, why)
	}
	level := slog.LevelWarn
	if s.Rebuilding && v.Epoch == 0 && s.Reserved+s.Sold == 0 { // a new sale has nothing that could be lost
		level = slog.LevelInfo
	}
	e.log.Log(ctx, level, "the stock of a sku is loaded from SQL", slog.String("sku", key.String()), slog.Int64("epoch", s.Epoch), slog.String("why", why))
	_, err = e.RebuildOnce(ctx, key, fence)
	return err
}

// configure brings the settings that SQL has now to the Stock.
func (e *Engine) configure(ctx context.Context, key flashsale.Key) error {
	s, err := e.readSKU(ctx, key)
	if err != nil {
		return err
	}
	if s.Rebuilding {
		return &flashsale.Error{Code: flashsale.CodeRebuilding, Message: "the stock of " + key.String() + " is being loaded; it gets its settings then"}
	}
	return e.stock.Configure(ctx, key, s.Epoch, &s.Settings)
}
