package leasestore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// TestSharing: instances that share a limit under a steady demand above it use all of it, with few calls.
func TestSharing(t *testing.T) {
	for _, tt := range []struct {
		limit     string
		perSecond int
		busy, of  int
		perMilli  int // requests of each busy instance in a millisecond
	}{
		{"token_bucket 100000/s", 100_000, 4, 4, 50},
		{"token_bucket 100000/s", 100_000, 1, 10, 200},
		{"token_bucket 100000/s", 100_000, 3, 10, 60},
		{"sliding_window 100000/1s cells=10", 100_000, 4, 4, 30},
		{"sliding_window 100000/1s cells=10", 100_000, 1, 10, 120},
		{"sliding_window 100000/1s cells=10", 100_000, 3, 10, 40},
		{"fixed_window 100000/1s", 100_000, 4, 4, 50},
	} {
		t.Run(fmt.Sprintf("%s, %d of %d", tt.limit, tt.busy, tt.of), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := memstore.New(memstore.Config{Now: time.Now})
				t.Cleanup(func() { _ = m.Close() })
				var stores []*leasestore.Store
				var ups []*counted
				for range tt.of {
					up := &counted{Store: m}
					s := leasestore.New(up, leasestore.Config{})
					t.Cleanup(func() { _ = s.Close() })
					stores, ups = append(stores, s), append(ups, up)
				}
				c := charge(tt.limit)
				const warm, seconds = 2, 4
				var admitted, all, decided int64
				var mu sync.Mutex
				var wg sync.WaitGroup
				began := time.Now()
				for _, s := range stores[:tt.busy] {
					wg.Go(func() {
						var d headgate.Decision
						for n := int64(0); ; n++ {
							at := time.Since(began)
							if at >= (warm+seconds)*time.Second {
								return
							}
							if n >= int64(tt.perMilli)*(at.Milliseconds()+1) {
								time.Sleep(time.Millisecond - at%time.Millisecond)
							}
							if err := s.Take(context.Background(), []headgate.Charge{c}, &d); err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							decided++
							if d.Allowed {
								all++
								if at >= warm*time.Second {
									admitted++
								}
							}
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				calls := 0
				for _, up := range ups {
					takes, refunds := up.count()
					calls += takes + refunds
				}
				used := 100 * float64(admitted) / float64(tt.perSecond*seconds)
				law := 100 * float64(all) / float64(tt.perSecond*(1+warm+seconds))
				share := 100 * float64(calls) / float64(decided)
				t.Logf("%.2f %% of the limit, %.2f %% of all that is allowed, %.3f %% calls", used, law, share)
				if used < 98 || law > 100 || share > 1 {
					t.Errorf("want at least 98 %%, at most 100 %%, at most 1 %%")
				}
			})
		})
	}
}
