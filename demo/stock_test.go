package demo

import (
	"fmt"
	"sync"
	"testing"
)

func TestStockIsSoldOnceEach(t *testing.T) {
	t.Parallel()
	const stock, buyers, clicks = 100, 500, 3
	s := NewStock(stock)
	got := make(chan Purchase, buyers*clicks)
	var all sync.WaitGroup
	for n := range buyers {
		buyer := fmt.Sprintf("user-%d", n)
		if n%5 == 0 {
			buyer = fmt.Sprintf("bot-%d", n)
		}
		for range clicks {
			all.Go(func() { got <- s.Buy(buyer) })
		}
	}
	all.Wait()
	close(got)
	count := map[Purchase]int{}
	for p := range got {
		count[p]++
	}
	a := s.Audit()
	if count[Bought] != stock || a.Sold != stock || a.Oversold != 0 || s.Left() != 0 || a.ToBots+a.ToShoppers != stock {
		t.Errorf("bought %d, left %d, audit %+v; want %d sold and none left", count[Bought], s.Left(), a, stock)
	}
	if again := s.Buy("user-nobody"); again != SoldOut {
		t.Errorf("a purchase after the last one: %v", again)
	}
}

func TestAuditSeesWhatIsOversold(t *testing.T) {
	t.Parallel()
	s := NewStock(2)
	s.Buy("user-1")
	s.left = 5 // a shop that counts wrong
	for _, buyer := range []string{"user-2", "bot-1", "user-3"} {
		s.Buy(buyer)
	}
	if want := (Sale{Stock: 2, Sold: 4, Oversold: 2, ToShoppers: 3, ToBots: 1}); s.Audit() != want {
		t.Errorf("got %+v, want %+v", s.Audit(), want)
	}
}

func TestBuyAgain(t *testing.T) {
	t.Parallel()
	s := NewStock(1)
	for _, want := range []Purchase{Bought, AlreadyBought, AlreadyBought} {
		if got := s.Buy("user-1"); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
