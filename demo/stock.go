package demo

import "sync"

// Purchase is what became of an attempt to buy.
type Purchase uint8

const (
	// Bought: one unit is the buyer's.
	Bought Purchase = iota
	// AlreadyBought: the buyer has one from before; a second click takes no second unit.
	AlreadyBought
	// SoldOut: nothing is left.
	SoldOut
)

// Stock is a number of equal things to sell, one to a buyer. It is safe for concurrent use.
//
// What is left and what was ordered are counted apart, so that selling too much would show.
type Stock struct {
	mu     sync.Mutex
	total  int
	left   int
	orders []string // buyers, in the order of their purchases
	owner  map[string]bool
}

// NewStock returns a stock of total things.
func NewStock(total int) *Stock {
	return &Stock{total: total, left: total, owner: make(map[string]bool, total)}
}

// Buy gives one unit to a buyer, if it is the first for them and one is left.
func (s *Stock) Buy(buyer string) Purchase {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.owner[buyer]:
		return AlreadyBought
	case s.left == 0:
		return SoldOut
	}
	s.left--
	s.owner[buyer] = true
	s.orders = append(s.orders, buyer)
	return Bought
}

// Left returns how many are unsold.
func (s *Stock) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Sale is how a sale went, counted from its orders.
type Sale struct {
	Stock int `json:"stock"`
	// Sold is the number of orders, Oversold how many of them are beyond the stock.
	Sold     int `json:"sold"`
	Oversold int `json:"oversold"`
	// ToShoppers and ToBots add up to Sold.
	ToShoppers int `json:"to_shoppers"`
	ToBots     int `json:"to_bots"`
}

// Audit counts the orders.
func (s *Stock) Audit() Sale {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Sale{Stock: s.total, Sold: len(s.orders), Oversold: max(0, len(s.orders)-s.total)}
	for _, buyer := range s.orders {
		if kindOfUser(buyer) == Bot {
			a.ToBots++
		} else {
			a.ToShoppers++
		}
	}
	return a
}
