package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func soldOutMemory(tb testing.TB) (*Engine, *memory, *shop) {
	tb.Helper()
	s := openShop(tb, shopPlan{total: 1000})
	e := s.another(func(c *Config) { c.Stock, c.Observer = s.stock, nobody{} })
	for i := range 1001 {
		_, _ = e.Reserve(tb.Context(), s.request(fmt.Sprint("u-", i)))
	}
	m := e.soldOut.get(phone)
	if l := m.underWay(); l != nil {
		<-l.done
	}
	c := m.calm.Load()
	long := &calm{epoch: c.epoch, marks: c.marks, above: c.above, until: time.Now().Add(time.Hour), next: time.Now().Add(time.Hour)}
	m.calm.Store(long)
	return e, m, s
}

// TestMemoryAllocatesNothing: neither does what decides a call, nor its error.
func TestMemoryAllocatesNothing(t *testing.T) {
	e, m, _ := soldOutMemory(t)
	ask := &flashsale.Ask{RID: "MDEyMzQ1Njc4OWFiY2RlZg", User: "late", Quantity: 1}
	var err error
	n := testing.AllocsPerRun(1000, func() {
		v, failed := e.recall(t.Context(), m, 1, ask)
		if failed != nil || v != isSoldOut {
			t.Fatalf("%d, %v", v, failed)
		}
		_, err = e.recalled(t.Context(), m, ask, v, nil)
	})
	if n != 0 || flashsale.CodeOf(err) != flashsale.CodeSoldOut {
		t.Errorf("%.0f allocations for %v", n, err)
	}
}

// BenchmarkSoldOutMemory is what decides a call, BenchmarkSoldOutReserve the whole of it, with its token.
func BenchmarkSoldOutMemory(b *testing.B) {
	e, m, _ := soldOutMemory(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ask := &flashsale.Ask{RID: "MDEyMzQ1Njc4OWFiY2RlZg", User: "late", Quantity: 1}
		for pb.Next() {
			v, _ := e.recall(b.Context(), m, 1, ask)
			if _, err := e.recalled(b.Context(), m, ask, v, nil); err != m.refused {
				b.Error(err)
			}
		}
	})
}

func BenchmarkSoldOutReserve(b *testing.B) {
	e, _, s := soldOutMemory(b)
	r := s.request("late")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.Reserve(b.Context(), r); flashsale.CodeOf(err) != flashsale.CodeSoldOut {
				b.Error(err)
			}
		}
	})
}
