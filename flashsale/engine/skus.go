package engine

import (
	"context"
	"sync"

	"github.com/headgate-io/headgate/flashsale"
)

// maxSKUs bounds the cache.
const maxSKUs = 10_000

// skuCache keeps what SQL says of skus: what does not change, and the epoch, which is read again when the Stock says that it has
// another.
type skuCache struct {
	orders flashsale.Orders
	mu     sync.Mutex
	known  map[flashsale.Key]*flashsale.SKUState
}

func newSKUCache(orders flashsale.Orders) *skuCache {
	return &skuCache{orders: orders, known: map[flashsale.Key]*flashsale.SKUState{}}
}

// get returns what is known of a sku, and asks SQL if nothing is. The state is shared: it must not be changed.
func (c *skuCache) get(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	c.mu.Lock()
	s := c.known[key]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return c.read(ctx, key)
}

// read asks SQL.
func (c *skuCache) read(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	s, err := c.orders.SKU(ctx, key)
	if err != nil {
		c.forget(key)
		return nil, err
	}
	c.put(s)
	return s, nil
}

// put keeps a state, unless a later epoch is known.
func (c *skuCache) put(s *flashsale.SKUState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.known[s.Key]; old != nil && (old.Epoch > s.Epoch || old.Epoch == s.Epoch && old.Settings.Version > s.Settings.Version) {
		return
	}
	if len(c.known) >= maxSKUs {
		clear(c.known)
	}
	c.known[s.Key] = s
}

func (c *skuCache) forget(key flashsale.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
}

// inEpoch calls f with the sku's epoch, and once more after reading it again if the Stock has another one.
func (e *Engine) inEpoch(ctx context.Context, key flashsale.Key, f func(epoch int64) error) error {
	s, err := e.skus.get(ctx, key)
	if err != nil {
		return err
	}
	err = f(s.Epoch)
	if flashsale.CodeOf(err) != flashsale.CodeStaleEpoch {
		return err
	}
	was := s.Epoch
	if s, err = e.skus.read(ctx, key); err != nil {
		return err
	}
	if s.Epoch == was || s.Rebuilding {
		return &flashsale.Error{Code: flashsale.CodeRebuilding, Message: "the stock of " + key.String() + " is being loaded; ask again"}
	}
	if err = f(s.Epoch); flashsale.CodeOf(err) == flashsale.CodeStaleEpoch {
		return &flashsale.Error{Code: flashsale.CodeRebuilding, Message: "the stock of " + key.String() + " is being loaded; ask again"}
	}
	return err
}
