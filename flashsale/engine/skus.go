package engine

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// maxSKUs bounds the cache.
	maxSKUs = 10_000
	// skuAge is how old what the cache says of a sku on sale may be, refusalAge of one that is not. Both are real time: they bound load.
	skuAge     = time.Second
	refusalAge = 100 * time.Millisecond
	// skuReads bounds how many look-ups of skus SQL has at a time, and skuBatch how many skus come with one.
	skuReads, skuBatch = 4, 16
)

// skuCache keeps what SQL says of skus: what does not change, and the epoch, which is read again when the Stock says that it has
// another.
type skuCache struct {
	orders flashsale.Orders
	reads  *gather[flashsale.Key, skuAnswer]
	mu     sync.Mutex
	known  map[flashsale.Key]knownSKU
	// sales counts the known skus of each sale.
	sales map[string]saleSKUs
}

// saleSKUs is a sale's own text of its id, and how many of its skus are known.
type saleSKUs struct {
	id string
	n  int
}

type knownSKU struct {
	state *flashsale.SKUState
	at    time.Time
}

type skuAnswer struct {
	state *flashsale.SKUState
	err   error
}

func newSKUCache(orders flashsale.Orders) *skuCache {
	c := &skuCache{orders: orders, known: map[flashsale.Key]knownSKU{}, sales: map[string]saleSKUs{}}
	c.reads = newGather(skuReads, skuBatch, c.ask)
	return c
}

// get returns what is known of a sku, and asks SQL if nothing is. The state is shared: it must not be changed.
func (c *skuCache) get(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	if known, ok := c.look(key); ok {
		return known.state, nil
	}
	return c.read(ctx, key)
}

// recent is get, of so short ago that its status can be told to shoppers.
func (c *skuCache) recent(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	if known, ok := c.look(key); ok && time.Since(known.at) < known.good() {
		return known.state, nil
	}
	return c.read(ctx, key)
}

// fresh is recent, if SQL answers.
func (c *skuCache) fresh(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	s, err := c.recent(ctx, key)
	if err != nil && !isUnknown(err) {
		if known, ok := c.look(key); ok {
			return known.state, nil
		}
	}
	return s, err
}

// good is how long a state can be used as it is: who was refused by an old one would have been refused for nothing.
func (k *knownSKU) good() time.Duration {
	if k.state.Settings.Status == flashsale.Open {
		return skuAge
	}
	return refusalAge
}

func (c *skuCache) look(key flashsale.Key) (knownSKU, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.known[key]
	return known, ok
}

// read asks SQL, together with others who do.
func (c *skuCache) read(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	answer, _, err := c.reads.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return answer.state, answer.err
}

func (c *skuCache) ask(ctx context.Context, keys []flashsale.Key) (map[flashsale.Key]skuAnswer, error) {
	answers := make(map[flashsale.Key]skuAnswer, len(keys))
	for _, key := range keys {
		s, err := c.orders.SKU(ctx, key)
		switch {
		case err == nil:
			c.put(s)
		case isUnknown(err):
			c.forget(key)
		}
		answers[key] = skuAnswer{s, err}
	}
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	return answers, nil
}

// isUnknown reports whether SQL has answered that there is no such sku.
func isUnknown(err error) bool {
	switch flashsale.CodeOf(err) {
	case flashsale.CodeUnknownSale, flashsale.CodeUnknownSKU, flashsale.CodeNotFound:
		return true
	}
	return false
}

// put keeps a state, unless a later one is known.
func (c *skuCache) put(s *flashsale.SKUState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.known[s.Key].state; old != nil && (old.Epoch > s.Epoch || old.Epoch == s.Epoch && old.Settings.Version > s.Settings.Version) {
		return
	}
	if len(c.known) >= maxSKUs {
		clear(c.known)
		clear(c.sales)
	}
	if _, ok := c.known[s.Key]; !ok {
		c.sales[s.Key.Sale] = saleSKUs{s.Key.Sale, c.sales[s.Key.Sale].n + 1}
	}
	c.known[s.Key] = knownSKU{s, time.Now()}
}

func (c *skuCache) forget(key flashsale.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[key]; !ok {
		return
	}
	delete(c.known, key)
	if of := c.sales[key.Sale]; of.n > 1 {
		c.sales[key.Sale] = saleSKUs{of.id, of.n - 1}
	} else {
		delete(c.sales, key.Sale)
	}
}

// name returns a key in the words of the sale itself, if it is known: of a sku, or, with an empty SKU, of a sale.
func (c *skuCache) name(key flashsale.Key) (flashsale.Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key.SKU == "" {
		of, ok := c.sales[key.Sale]
		return flashsale.Key{Sale: of.id}, ok
	}
	known, ok := c.known[key]
	if !ok {
		return flashsale.Key{}, false
	}
	return known.state.Key, true
}

// inEpoch calls f with the sku's epoch, and once more after reading it again if the Stock has another one.
func (e *Engine) inEpoch(ctx context.Context, key flashsale.Key, f func(epoch int64) error) error {
	s, err := e.skus.get(ctx, key)
	if err != nil {
		return err
	}
	if s.Retired {
		return retired(key)
	}
	err = f(s.Epoch)
	if flashsale.CodeOf(err) != flashsale.CodeStaleEpoch {
		return err
	}
	was := s.Epoch
	if s, err = e.skus.read(ctx, key); err != nil {
		return err
	}
	if s.Retired {
		return retired(key)
	}
	if s.Epoch == was || s.Rebuilding {
		return rebuilding(key)
	}
	if err = f(s.Epoch); flashsale.CodeOf(err) == flashsale.CodeStaleEpoch {
		return rebuilding(key)
	}
	return err
}

func rebuilding(key flashsale.Key) error {
	return errorf(flashsale.CodeRebuilding, "the stock of %s is being loaded; ask again", key)
}
