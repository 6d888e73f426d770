package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// book is as much of the truth as consumers and shoppers meet: T1 with its guards, in memory. The stores of SQL are put through the
// engine elsewhere; here their faults are what matters.
type book struct {
	flashsale.Orders // what is not here is not called
	now              func() time.Time

	mu     sync.Mutex
	skus   map[flashsale.Key]*flashsale.SKUState
	rows   map[string]*flashsale.Reservation
	poison func(j *flashsale.Job) error
	outbox int64
	sent   []int64
	// slow is how long a batch holds the lock of its sku.
	slow time.Duration
}

func (b *book) SKU(_ context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.skus[key]; s != nil {
		state := *s
		return &state, nil
	}
	for known := range b.skus {
		if known.Sale == key.Sale {
			return nil, errorf(flashsale.CodeUnknownSKU, "there is no sku %s", key)
		}
	}
	return nil, errorf(flashsale.CodeUnknownSale, "there is no sale %s", key.Sale)
}

func (b *book) SKUs(context.Context) ([]flashsale.SKUState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []flashsale.SKUState
	for _, s := range b.skus {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(x, y flashsale.SKUState) int {
		if x.Key.SKU < y.Key.SKU {
			return -1
		}
		return 1
	})
	return all, nil
}

func (b *book) Sale(ctx context.Context, id string) (*flashsale.Sale, error) {
	_, err := b.SKU(ctx, flashsale.Key{Sale: id})
	if flashsale.CodeOf(err) == flashsale.CodeUnknownSale {
		return nil, err
	}
	return &flashsale.Sale{ID: id}, nil
}

func (b *book) change(key flashsale.Key, f func(*flashsale.SKUState)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.skus[key])
}

func (b *book) Decide(ctx context.Context, batch *flashsale.Batch) ([]flashsale.Decided, error) {
	if b.slow > 0 && !pause(ctx, b.slow) {
		return nil, interrupted(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.skus[batch.Key]
	if s.Epoch != batch.Epoch {
		return nil, errorf(flashsale.CodeStaleEpoch, "epoch %d", s.Epoch)
	}
	if s.Rebuilding {
		return nil, rebuilding(batch.Key)
	}
	for i := range batch.Jobs {
		if b.poison != nil {
			if err := b.poison(&batch.Jobs[i]); err != nil {
				return nil, err
			}
		}
	}
	decided := make([]flashsale.Decided, len(batch.Jobs))
	for i := range batch.Jobs {
		decided[i] = b.decide(s, &batch.Jobs[i])
	}
	return decided, nil
}

func (b *book) decide(s *flashsale.SKUState, j *flashsale.Job) flashsale.Decided {
	if row := b.rows[j.RID]; row != nil {
		return flashsale.Decided{
			RID: row.RID, User: row.User, Quantity: row.Quantity, State: row.State, Version: row.Version, Reason: row.Reason, Replayed: true,
		}
	}
	now := b.now()
	row := &flashsale.Reservation{
		RID: j.RID, Key: s.Key, User: j.User, Quantity: j.Quantity, State: flashsale.Reserved, Version: 1, Until: now.Add(flashsale.DefaultHold),
		OrderID: "o-" + j.RID, Amount: s.Price * j.Quantity, Currency: s.Currency, CreatedAt: now, ChangedAt: now,
	}
	switch {
	case !s.Settings.Status.Decides():
		row.State, row.Reason = flashsale.Rejected, flashsale.ReasonNotOpen
	case s.Available() < j.Quantity:
		row.State, row.Reason = flashsale.Rejected, flashsale.ReasonSoldOut
	default:
		s.Reserved += j.Quantity
	}
	b.rows[j.RID] = row
	b.outbox++
	return flashsale.Decided{RID: j.RID, User: j.User, Quantity: j.Quantity, State: row.State, Version: 1, Reason: row.Reason, Outbox: b.outbox}
}

func (b *book) Sent(_ context.Context, _ flashsale.Lane, _ int64, ids []int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, ids...)
	return nil
}

func (b *book) Reservations(_ context.Context, rids []string) (rows []flashsale.Reservation, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rid := range rids {
		if row := b.rows[rid]; row != nil {
			rows = append(rows, *row)
		}
	}
	return rows, nil
}

func (b *book) OfUser(_ context.Context, sale, user string, limit int) (rows []flashsale.Reservation, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range b.rows {
		if row.Key.Sale == sale && row.User == user && len(rows) < limit {
			rows = append(rows, *row)
		}
	}
	slices.SortFunc(rows, func(x, y flashsale.Reservation) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return rows, nil
}

// count returns how many rows are in a state.
func (b *book) count(state flashsale.State) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range b.rows {
		if row.State == state {
			n++
		}
	}
	return n
}
