package leasestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// caller is what one goroutine writes, with a cache line to spare on both sides.
type caller struct {
	_    [128]byte
	d    headgate.Decision
	room [4]headgate.Outcome
	_    [128]byte
}

const many = 16_384

func benchCharges(limit string, keys int) []headgate.Charge {
	l := headgate.MustParseLimit(limit)
	charges := make([]headgate.Charge, keys)
	for i := range charges {
		key := ""
		if keys > 1 {
			key = fmt.Sprintf("user-%08d", i)
		}
		charges[i] = headgate.One("site/0", key, l)
	}
	rand.Shuffle(keys, func(i, j int) { charges[i], charges[j] = charges[j], charges[i] })
	return charges
}

func benchTake(b *testing.B, l headgate.Limiter, charges []headgate.Charge) {
	ctx := context.Background()
	var d headgate.Decision
	for range 4 {
		for i := range charges {
			if err := l.Take(ctx, charges[i:i+1], &d); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		w := new(caller)
		w.d.Outcomes = w.room[:0]
		for i, step := uint(rand.Uint32()), uint(rand.Uint32())|1; pb.Next(); i += step {
			at := i % uint(len(charges))
			if err := l.Take(ctx, charges[at:at+1], &w.d); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkTake compares a leased limiter with the store in memory that it leases from.
func BenchmarkTake(b *testing.B) {
	const open = "token_bucket 1000000000000/s burst=1000000000000"
	for _, bb := range []struct {
		name, limit string
		keys        int
	}{
		{"one key", open, 1},
		{"one key, window", "fixed_window 1000000000000/1h", 1},
		{"many keys", open, many},
		{"few keys", open, 128},
		{"denied", "fixed_window 10/1h", 1},
	} {
		charges := benchCharges(bb.limit, bb.keys)
		b.Run("memstore/"+bb.name, func(b *testing.B) {
			m := memstore.New(memstore.Config{})
			defer m.Close()
			benchTake(b, m, charges)
		})
		b.Run("leased/"+bb.name, func(b *testing.B) {
			m := memstore.New(memstore.Config{})
			defer m.Close()
			s := leasestore.New(m, leasestore.Config{})
			defer s.Close()
			benchTake(b, s, charges)
		})
	}
}
