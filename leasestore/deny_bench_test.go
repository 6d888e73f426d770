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

// nothing is a Limiter that costs nothing and allows all: what is measured is what lies in front of it.
type nothing struct{}

func (nothing) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	d.Reset(len(charges))
	for i := range d.Outcomes {
		d.Outcomes[i].Allowed = true
	}
	d.Allowed = true
	return nil
}

// denyCaller is what one goroutine writes, with cache lines to spare on both sides.
type denyCaller struct {
	_        [128]byte
	d        headgate.Decision
	outcomes [4]headgate.Outcome
	charges  [4]headgate.Charge
	_        [128]byte
}

// BenchmarkDeny compares a denial by the cache, and what the cache adds to a take that it knows nothing of, with a denial by
// memstore. Compare ratios, not times.
func BenchmarkDeny(b *testing.B) {
	const keys = 16_384
	limit := headgate.MustParseLimit("token_bucket 1/1h burst=1")
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("user-%08d", i)
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	denied := leasestore.NewDenyCache(store, leasestore.DenyConfig{})
	missed := leasestore.NewDenyCache(nothing{}, leasestore.DenyConfig{})
	var d headgate.Decision
	for _, l := range []headgate.Limiter{denied, denied} {
		for _, name := range names {
			if err := l.Take(context.Background(), []headgate.Charge{headgate.One("rule/0", name, limit)}, &d); err != nil {
				b.Fatal(err)
			}
		}
	}
	full := leasestore.NewDenyCache(nothing{}, leasestore.DenyConfig{})
	_ = full
	for _, bench := range []struct {
		name    string
		limiter headgate.Limiter
		charges int
	}{
		{"memstore", store, 1}, {"hit", denied, 1}, {"nothing", nothing{}, 1}, {"miss", missed, 1}, {"miss/four", missed, 4}, {"hit/four", denied, 4},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w := new(denyCaller)
				w.d.Outcomes = w.outcomes[:0]
				charges := w.charges[:bench.charges]
				for i := range charges {
					charges[i] = headgate.One("rule/"+fmt.Sprint(i), "", limit)
				}
				for i, step := uint(rand.Uint32()), uint(rand.Uint32())|1; pb.Next(); i += step {
					for c := range charges {
						charges[c].Key = names[i%keys]
					}
					if err := bench.limiter.Take(context.Background(), charges, &w.d); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
