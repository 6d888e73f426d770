package lookup_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/headgate-io/headgate/policy/internal/lookup"
)

func BenchmarkHit(b *testing.B) {
	c, s := lookup.New(lookup.Config{Keep: time.Hour}), serving("vip")
	ctx, ask := b.Context(), lookup.Func(s.ask)
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = "user-" + strconv.Itoa(i)
		c.Get(ctx, keys[i], ask)
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			c.Get(ctx, keys[i%len(keys)], ask)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				c.Cached(keys[i%len(keys)])
			}
		})
	})
}
