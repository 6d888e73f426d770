package memstock_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
)

// asks returns n asks by n users, with what they say made beforehand.
func asks(key flashsale.Key, n int) []flashsale.Ask {
	all := make([]flashsale.Ask, n)
	body := flashsale.BodyHash(key, "user", 1)
	for i := range all {
		id := strconv.Itoa(i)
		all[i] = flashsale.Ask{RID: "AAAAAAAAAAAAAAAA" + id, User: "user" + id, Quantity: 1, Body: body}
	}
	return all
}

func onSale(b *testing.B, key flashsale.Key, total int64) *memstock.Stock {
	b.Helper()
	s := memstock.New(memstock.Config{MaxReservations: 1 << 40})
	now := time.Now()
	if _, err := s.Point(b.Context(), key, 1); err != nil {
		b.Fatal(err)
	}
	if err := s.Load(b.Context(), key, 1, &flashsale.LoadPart{Last: true, Total: total}); err != nil {
		b.Fatal(err)
	}
	if err := s.Configure(b.Context(), key, 1, &flashsale.Settings{
		Version: 1, Status: flashsale.Open, OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), PurchaseLimit: 1, Rate: flashsale.MaxRate,
	}); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkTwoMaps is the least that any stock in memory must do for a reservation: remember it by its rid, and its user. What Reserve
// costs is told as a multiple of this, in one run.
func BenchmarkTwoMaps(b *testing.B) {
	all := asks(flashsale.Key{}, b.N)
	var mu sync.Mutex
	byRID, byUser := map[string]*flashsale.Ask{}, map[string]int64{}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range all {
		mu.Lock()
		kept := all[i]
		byRID[kept.RID] = &kept
		byUser[kept.User] += kept.Quantity
		mu.Unlock()
	}
}

// BenchmarkReserve takes a unit for another user each time.
func BenchmarkReserve(b *testing.B) {
	key := flashsale.Key{Sale: "s", SKU: "a"}
	all, s := asks(key, b.N), onSale(b, key, int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range all {
		if a, err := s.Reserve(b.Context(), key, 1, &all[i]); err != nil || !a.Accepted {
			b.Fatal(a, err)
		}
	}
}

// BenchmarkSoldOut refuses: what a sale does for most of its time.
func BenchmarkSoldOut(b *testing.B) {
	key := flashsale.Key{Sale: "s", SKU: "a"}
	all, s := asks(key, 1024), onSale(b, key, 0)
	b.ReportAllocs()
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if a, err := s.Reserve(b.Context(), key, 1, &all[n.Add(1)%1024]); err != nil || a.Code != flashsale.CodeSoldOut {
				b.Error(a, err)
			}
		}
	})
}

// BenchmarkCycle is a reservation's whole way: taken, pulled with 255 others, reserved, cancelled.
func BenchmarkCycle(b *testing.B) {
	key := flashsale.Key{Sale: "s", SKU: "a"}
	all, s := asks(key, b.N), onSale(b, key, int64(b.N))
	effects, acks := make([]flashsale.Effect, 0, 256), make([]string, 0, 256)
	apply := func(state flashsale.State, version int64) {
		for i := range effects {
			effects[i].State, effects[i].Version = state, version
		}
		if _, err := s.Apply(b.Context(), key, 1, effects, acks); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range all {
		if a, err := s.Reserve(b.Context(), key, 1, &all[i]); err != nil || !a.Accepted {
			b.Fatal(a, err)
		}
		if i%256 != 255 {
			continue
		}
		jobs, err := s.Pull(b.Context(), key, 1, "c", 256, time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		effects, acks = effects[:0], acks[:0]
		for _, j := range jobs {
			effects, acks = append(effects, flashsale.Effect{RID: j.RID, User: j.User, Quantity: 1}), append(acks, j.ID)
		}
		apply(flashsale.Reserved, 1)
		acks = acks[:0]
		apply(flashsale.Cancelled, 2)
	}
}
