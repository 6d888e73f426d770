package algo

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
)

func BenchmarkTake(b *testing.B) {
	for _, text := range []string{"token_bucket 1000000/s burst=1000000", "token_bucket 0.3/s burst=100000", "fixed_window 1000000000/1s", "sliding_log 1000/1s", "sliding_window 100000000/1s cells=5", "leaky_bucket 1000000/s capacity=1000000", "fixed_window 1000000000/day zone=Europe/Berlin"} {
		b.Run(text, func(b *testing.B) {
			charges := []headgate.Charge{headgate.One("s", "k", headgate.MustParseLimit(text))}
			var c Cell
			cells := []*Cell{&c}
			var z Zones
			var d headgate.Decision
			now := int64(1_700_000_000_000_000)
			b.ReportAllocs()
			for b.Loop() {
				now++
				Take(&z, now, charges, cells, &d)
			}
		})
	}
}
