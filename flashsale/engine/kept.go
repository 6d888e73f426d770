package engine

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// readKept bounds how long one reading of what is kept may take: nobody can go away from it, since others wait for it.
	readKept = 3 * time.Second
	// againKept is how long a reading that has failed is not tried again.
	againKept = 100 * time.Millisecond
)

// kept is one value that many ask for and few read: by one of them at a time, in that one's own goroutine. If a reading fails, what was
// kept before is good for as long as there is nothing better. Ages are real time: they bound load.
type kept[V any] struct {
	read func(ctx context.Context) (V, error)

	mu     sync.Mutex
	value  V
	has    bool
	at     time.Time // when the reading of value began
	tried  time.Time // when the last reading ended
	err    error     // of the last reading
	flight chan struct{}
}

// get returns a value that is not older than fresh. While another caller reads it, one that is not older than stale is good too.
func (k *kept[V]) get(ctx context.Context, fresh, stale time.Duration) (V, error) {
	for {
		k.mu.Lock()
		age := time.Since(k.at)
		switch {
		case k.has && age < fresh:
		case k.flight == nil && k.err != nil && time.Since(k.tried) < againKept:
		case k.flight == nil:
			return k.fly(ctx)
		case k.has && age < stale:
		default:
			landed := k.flight
			k.mu.Unlock()
			select {
			case <-landed:
				fresh = max(fresh, readKept+againKept) // whoever waited takes what came
				continue
			case <-ctx.Done():
				var none V
				return none, interrupted(ctx)
			}
		}
		value, err := k.answer()
		k.mu.Unlock()
		return value, err
	}
}

// answer is what there is. K.mu is held.
func (k *kept[V]) answer() (V, error) {
	if k.has {
		return k.value, nil
	}
	return k.value, k.err
}

// fly reads the value for everybody. K.mu is held, and is not any more when it returns.
func (k *kept[V]) fly(ctx context.Context) (V, error) {
	landed, began := make(chan struct{}), time.Now()
	k.flight = landed
	k.mu.Unlock()
	value, err := *new(V), errorf(flashsale.CodeInternal, "what is shown could not be read")
	defer func() { // also if the reading panics: nobody may wait for ever
		k.mu.Lock()
		k.flight, k.tried, k.err = nil, time.Now(), err
		if err == nil {
			k.value, k.at, k.has = value, began, true
		}
		k.mu.Unlock()
		close(landed)
	}()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), readKept)
	defer cancel()
	value, err = k.read(bounded)
	if err != nil && k.has { // only a flight writes it, and this is the one
		return k.value, nil
	}
	return value, err
}
