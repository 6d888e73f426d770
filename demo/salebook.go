package demo

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Sale is how a sale went, counted from the tables of its database. Stock = Sold + Unsold; Reserved = Sold + Returned + Held;
// Paid = orders of Sold units + Refunded, once nothing is under way.
type Sale struct {
	// Stock is how many units there are.
	Stock int `json:"stock"`
	// Sold counts the units that were paid for. ToShoppers and ToBots add up to it.
	Sold       int `json:"sold"`
	ToShoppers int `json:"to_shoppers"`
	ToBots     int `json:"to_bots"`
	// Oversold counts the units that were paid for or are held beyond the stock: it is 0.
	Oversold int `json:"oversold"`
	// Unsold is what is left of the stock.
	Unsold int `json:"unsold"`
	// Reserved counts the units that were held for somebody at some time: each was paid for, returned, or is held still.
	Reserved int `json:"reserved"`
	// Held counts the units that are kept for somebody at this moment: 0 when the sale has come to its end.
	Held int `json:"held"`
	// Paid counts the payments that were taken, Refunded those of them that were given back: for a second payment of the same thing, or
	// one that came when its unit was gone.
	Paid     int `json:"paid"`
	Refunded int `json:"refunded"`
	// Expired counts the reservations that ended since nobody paid in time.
	Expired int `json:"expired"`
	// Returned counts the units that came back to the stock, from those and from shoppers who cancelled.
	Returned int `json:"returned"`
	// DuplicatesRefused counts the reserve calls of somebody who has, or had with the same token, a unit already: a second click, a
	// second tab, a repeated request. They took nothing. It is the one count that is the engine's, since they leave no row.
	DuplicatesRefused int `json:"duplicates_refused"`
}

// salebook counts a sale. It reads what has changed since it looked last, and belongs to one goroutine at a time.
type salebook struct {
	orders   flashsale.Orders
	key      flashsale.Key
	since    time.Time                         // of what was read last
	owners   map[string]Kind                   // of paid reservations, which stay paid
	payments map[string]flashsale.PaymentState // by the intent's key
}

const bookPage = 500

// overlap is how far the next look goes back: a transaction that began earlier may be seen later.
const overlap = 2 * time.Second

// newSalebook counts from a time of the database's clock on.
func newSalebook(orders flashsale.Orders, key flashsale.Key, since time.Time) *salebook {
	return &salebook{orders: orders, key: key, since: since, owners: make(map[string]Kind), payments: make(map[string]flashsale.PaymentState)}
}

// read counts the sale as it is now.
func (b *salebook) read(ctx context.Context) (Sale, *flashsale.Books, error) {
	now, err := b.orders.Now(ctx)
	if err != nil {
		return Sale{}, nil, err
	}
	if err := b.readPaid(ctx); err != nil {
		return Sale{}, nil, err
	}
	if err := b.readPayments(ctx); err != nil {
		return Sale{}, nil, err
	}
	books, err := b.orders.Books(ctx, b.key) // last, so that no more are owners than have paid
	if err != nil {
		return Sale{}, nil, err
	}
	b.since = now.Add(-overlap)
	return b.count(books), books, nil
}

// readPaid notes whose the reservations are that were paid.
func (b *salebook) readPaid(ctx context.Context) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := b.orders.PaidSince(ctx, b.since, cursor, bookPage)
		if err != nil {
			return err
		}
		for i := range page {
			if r := &page[i].Reservation; r.Key == b.key && r.State == flashsale.Confirmed {
				b.owners[r.RID] = kindOfUser(r.User)
			}
		}
		cursor = next
	}
	return nil
}

func (b *salebook) readPayments(ctx context.Context) error {
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := b.orders.PaymentsSince(ctx, b.since, cursor, bookPage)
		if err != nil {
			return err
		}
		if err := b.note(ctx, page); err != nil {
			return err
		}
		cursor = next
	}
	return nil
}

// note notes where payments stand that are of this sale: of a database that is used again there are others.
func (b *salebook) note(ctx context.Context, page []flashsale.Payment) error {
	var unknown []string
	for i := range page {
		if _, known := b.payments[page[i].IntentKey]; !known {
			unknown = append(unknown, page[i].RID)
		}
	}
	ours := make(map[string]bool, len(unknown))
	if len(unknown) > 0 {
		rows, err := b.orders.Reservations(ctx, unknown)
		if err != nil {
			return err
		}
		for i := range rows {
			ours[rows[i].RID] = rows[i].Key == b.key
		}
	}
	for i := range page {
		p := &page[i]
		if _, known := b.payments[p.IntentKey]; known || ours[p.RID] {
			b.payments[p.IntentKey] = p.State
		}
	}
	return nil
}

func (b *salebook) count(books *flashsale.Books) Sale {
	s, sold := &books.State, books.ByState[flashsale.Confirmed]
	held := books.ByState[flashsale.Reserved] + books.ByState[flashsale.Confirming]
	sale := Sale{
		Stock: int(s.Total), Sold: int(sold), Held: int(held), Unsold: int(max(0, s.Total-sold)), Oversold: int(max(0, sold+held-s.Total)),
		Reserved: int(books.LedgerReserved), Returned: int(books.LedgerReleased), Expired: int(books.Rows[flashsale.Expired]),
	}
	for _, kind := range b.owners {
		if kind == Bot {
			sale.ToBots++
		}
	}
	sale.ToShoppers = sale.Sold - sale.ToBots
	for _, state := range b.payments {
		switch state {
		case flashsale.PaymentCaptured, flashsale.PaymentRefunding:
			sale.Paid++
		case flashsale.PaymentRefunded:
			sale.Paid++
			sale.Refunded++
		}
	}
	return sale
}

// owed counts the payments that are to be given back.
func (b *salebook) owed() (n int) {
	for _, state := range b.payments {
		if state == flashsale.PaymentRefunding {
			n++
		}
	}
	return n
}
