package memstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// benchKeys is a power of two, in random order, so that neighbours in time are no neighbours in memory.
func benchKeys() []string {
	keys := make([]string, 16_384)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%08d", i)
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// stride is odd, so that it leads to every key, and another for each goroutine: in one order the second would catch up with
// the first, whose entries are in the cache, and the two would wait for each other at every key from then on.
func stride() uint { return uint(rand.Uint32()) | 1 }

// BenchmarkFloor is what any limiter must do: find the key, read a clock, change a number. Compare ratios, not times.
func BenchmarkFloor(b *testing.B) {
	keys := benchKeys()
	m := xsync.NewMap[string, *atomic.Int64]()
	for _, k := range keys {
		m.Store(k, new(atomic.Int64))
	}
	start := time.Now()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i, step := uint(rand.Uint32()), stride(); pb.Next(); i += step {
			v, _ := m.Load(keys[i%uint(len(keys))])
			for now := int64(time.Since(start)); ; {
				if old := v.Load(); v.CompareAndSwap(old, max(old, now)+1000) {
					break
				}
			}
		}
	})
}

func BenchmarkTake(b *testing.B) {
	for name, texts := range map[string][]string{
		"token_bucket":   {"token_bucket 1000000/s burst=1000000"},
		"fraction":       {"token_bucket 1000003/7s burst=1000000"},
		"denied":         {"token_bucket 1/1h burst=1"},
		"fixed_window":   {"fixed_window 1000000000/1m"},
		"sliding_window": {"sliding_window 1000000000/1m cells=6"},
		"sliding_log":    {"sliding_log 20/1h"},
		"leaky_bucket":   {"leaky_bucket 1000000/s capacity=1000000"},
		"four":           {"token_bucket 1000000/s burst=1000000", "fixed_window 1000000000/1m", "sliding_window 1000000000/1m cells=6", "leaky_bucket 1000000/s capacity=1000000"},
	} {
		b.Run(name, func(b *testing.B) { benchTake(b, texts) })
	}
}

// caller is what one goroutine writes, with a cache line to spare on both sides: what is measured is the store, and not
// that the decisions of two callers happen to lie side by side.
type caller struct {
	_    [128]byte
	d    headgate.Decision
	room [4]headgate.Outcome
	_    [128]byte
}

func benchTake(b *testing.B, texts []string) {
	s := memstore.New(memstore.Config{})
	defer s.Close()
	var limiter headgate.Limiter = s
	ctx := context.Background()
	keys := benchKeys()
	takes := make([][]headgate.Charge, len(keys))
	for j, text := range texts {
		slot, limit := fmt.Sprint("rule/", j), headgate.MustParseLimit(text)
		for i, key := range keys {
			takes[i] = append(takes[i], headgate.One(slot, key, limit))
		}
	}
	var d headgate.Decision
	for _, charges := range takes {
		if err := limiter.Take(ctx, charges, &d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		w := new(caller)
		w.d.Outcomes = w.room[:0]
		for i, step := uint(rand.Uint32()), stride(); pb.Next(); i += step {
			if err := limiter.Take(ctx, takes[i%uint(len(takes))], &w.d); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
