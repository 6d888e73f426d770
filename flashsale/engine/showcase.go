package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// shownAge is how old what shoppers are shown may be; unknownAge how old that by which a sale is said not to be there. While it is
	// read again, what is younger than staleAge is good enough for the others.
	shownAge   = time.Second
	unknownAge = 100 * time.Millisecond
	staleAge   = 10 * time.Second
	// maxShown bounds the list of sales, maxKnown the sales that are known at all: the newest.
	maxShown, maxKnown = 500, 10_000
	// viewsAtATime bounds the figures of one sale that are read together.
	viewsAtATime = 8
)

// StockSignal says in a word what is left: never a number.
type StockSignal string

// The signals.
const (
	StockPlenty  StockSignal = "plenty"
	StockLow     StockSignal = "low"      // at most 10 units, or a tenth of the total
	StockAllHeld StockSignal = "all_held" // nothing now; what is held and not paid comes back
	StockGone    StockSignal = "gone"     // all of it is sold
)

// signalOf makes a signal of figures.
func signalOf(total, sold, available int64) StockSignal {
	switch {
	case sold >= total:
		return StockGone
	case available <= 0:
		return StockAllHeld
	case available <= max(10, total/10):
		return StockLow
	}
	return StockPlenty
}

// ShownSale is a sale as everybody may see it. It is shared: it must not be changed.
type ShownSale struct {
	ID, Title, Currency, Zone string
	OpensAt, ClosesAt         time.Time
	// SKUs are those that are no drafts, in the order of the sale. In a list of sales there are none.
	SKUs []ShownSKU
}

// ShownSKU is a sku as everybody may see it.
type ShownSKU struct {
	ID, Title            string
	Price, PurchaseLimit int64
	Status               flashsale.Status
	Stock                StockSignal
}

// SKU returns one of its skus, nil if there is none with this id.
func (s *ShownSale) SKU(id string) *ShownSKU {
	for i := range s.SKUs {
		if s.SKUs[i].ID == id {
			return &s.SKUs[i]
		}
	}
	return nil
}

// showcase is what this instance shows of sales. However many look, and whatever they ask for, SQL and the Stock are asked about once a
// second: for all skus together, and for the figures of those sales that somebody looks at.
type showcase struct {
	orders flashsale.Orders
	stock  flashsale.Stock
	board  kept[*showBoard]
	ids    kept[map[string]bool]
	docs   *gather[string, saleAnswer]

	mu    sync.Mutex
	known map[string]*flashsale.Sale   // what sales say of themselves does not change
	sales map[string]*kept[*ShownSale] // of the board
}

// showBoard is all that SQL has on sale, of one moment.
type showBoard struct {
	states map[string][]flashsale.SKUState
	list   []ShownSale
}

type saleAnswer struct {
	sale *flashsale.Sale
	err  error
}

func newShowcase(e *Engine) *showcase {
	c := &showcase{orders: e.orders, stock: e.stock, known: map[string]*flashsale.Sale{}, sales: map[string]*kept[*ShownSale]{}}
	c.board.read, c.ids.read = c.readBoard, c.readIDs
	c.docs = newGather(skuReads, skuBatch, c.readSales)
	return c
}

// Showcase lists the sales that shoppers may see, by their opening: those of which a sku was opened, until a day after the last was closed.
// It is at most about a second old. At most 500: of more, those that opened last or will.
func (e *Engine) Showcase(ctx context.Context) ([]ShownSale, error) {
	board, err := e.showcase.board.get(ctx, shownAge, staleAge)
	if err != nil {
		return nil, err
	}
	return board.list, nil
}

// Shown returns a sale that shoppers may see, with its skus. It is at most about two seconds old, and older while SQL does not answer.
// CodeUnknownSale also of one whose skus are all drafts.
func (e *Engine) Shown(ctx context.Context, sale string) (*ShownSale, error) {
	c := e.showcase
	states, err := c.find(ctx, sale)
	if err != nil {
		return nil, err
	}
	if states == nil {
		return nil, unknownSale(sale)
	}
	return c.keptSale(sale).get(ctx, shownAge, staleAge)
}

// CheckShown says that there is no such sku, or sale if the sku is "": CodeUnknownSale, CodeUnknownSKU. Calls with whatever ids, however many,
// ask SQL for no more than a few lists a second. Sales that have ended are known as long as they are among the 10,000 newest.
func (e *Engine) CheckShown(ctx context.Context, key flashsale.Key) error {
	c := e.showcase
	states, err := c.find(ctx, key.Sale)
	if err != nil {
		return err
	}
	if states == nil {
		return c.checkEnded(ctx, key)
	}
	if key.SKU == "" || hasShown(states, key.SKU) {
		return nil
	}
	board, err := c.board.get(ctx, unknownAge, 0)
	if err != nil || hasShown(board.states[key.Sale], key.SKU) {
		return err
	}
	return errorf(flashsale.CodeUnknownSKU, "sale %q has no sku %q", key.Sale, key.SKU)
}

func hasShown(states []flashsale.SKUState, sku string) bool {
	return slices.ContainsFunc(states, func(s flashsale.SKUState) bool { return s.Key.SKU == sku && s.Settings.Status != flashsale.Draft })
}

// find returns the skus of a sale that is shown, nil if there is none.
func (c *showcase) find(ctx context.Context, sale string) ([]flashsale.SKUState, error) {
	board, err := c.board.get(ctx, shownAge, staleAge)
	if err == nil && !isShown(board.states[sale]) {
		board, err = c.board.get(ctx, unknownAge, 0)
	}
	if err != nil || !isShown(board.states[sale]) {
		return nil, err
	}
	return board.states[sale], nil
}

func isShown(states []flashsale.SKUState) bool {
	return slices.ContainsFunc(states, func(s flashsale.SKUState) bool { return s.Settings.Status != flashsale.Draft })
}

// checkEnded is CheckShown for a sale that is not shown: a draft, or one that has ended more than a day ago.
func (c *showcase) checkEnded(ctx context.Context, key flashsale.Key) error {
	board, err := c.board.get(ctx, shownAge, staleAge)
	if err != nil {
		return err
	}
	ids, err := c.ids.get(ctx, shownAge, staleAge)
	if err != nil {
		return err
	}
	if !ids[key.Sale] || board.states[key.Sale] != nil {
		return unknownSale(key.Sale)
	}
	if key.SKU == "" {
		return nil
	}
	sale, err := c.sale(ctx, key.Sale)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(sale.SKUs, func(s flashsale.SKU) bool { return s.ID == key.SKU }) {
		return errorf(flashsale.CodeUnknownSKU, "sale %q has no sku %q", key.Sale, key.SKU)
	}
	return nil
}

func unknownSale(sale string) error {
	return errorf(flashsale.CodeUnknownSale, "there is no sale %.100q", sale)
}

// readBoard asks SQL for all skus, and for what it does not know yet of their sales.
func (c *showcase) readBoard(ctx context.Context) (*showBoard, error) {
	all, err := c.orders.SKUs(ctx)
	if err != nil {
		return nil, err
	}
	board := &showBoard{states: map[string][]flashsale.SKUState{}}
	for i := range all {
		board.states[all[i].Key.Sale] = append(board.states[all[i].Key.Sale], all[i])
	}
	for id, states := range board.states {
		if !isShown(states) {
			continue
		}
		sale, err := c.sale(ctx, id)
		if err != nil {
			return nil, err
		}
		board.list = append(board.list, *shownSale(sale))
	}
	slices.SortFunc(board.list, func(a, b ShownSale) int { return cmp.Or(a.OpensAt.Compare(b.OpensAt), cmp.Compare(a.ID, b.ID)) })
	board.list = board.list[max(0, len(board.list)-maxShown):]
	c.keepOnly(board)
	return board, nil
}

// keepOnly forgets the sales that are not on the board any more, and what drafts say of themselves.
func (c *showcase) keepOnly(board *showBoard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.sales {
		if board.states[id] == nil {
			delete(c.sales, id)
		}
	}
	for id, states := range board.states {
		if !isShown(states) { // it can be dropped, and another may come in its place
			delete(c.known, id)
		}
	}
}

func (c *showcase) readIDs(ctx context.Context) (map[string]bool, error) {
	list, err := c.orders.SaleIDs(ctx, maxKnown)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool, len(list))
	for _, id := range list {
		ids[id] = true
	}
	return ids, nil
}

// sale returns what a sale says of itself.
func (c *showcase) sale(ctx context.Context, id string) (*flashsale.Sale, error) {
	c.mu.Lock()
	sale := c.known[id]
	c.mu.Unlock()
	if sale != nil {
		return sale, nil
	}
	answer, _, err := c.docs.get(ctx, id)
	if err != nil {
		return nil, err
	}
	return answer.sale, answer.err
}

func (c *showcase) readSales(ctx context.Context, ids []string) (map[string]saleAnswer, error) {
	answers := make(map[string]saleAnswer, len(ids))
	for _, id := range ids {
		sale, err := c.orders.Sale(ctx, id)
		if err == nil {
			c.learn(sale)
		}
		answers[id] = saleAnswer{sale, err}
	}
	if ctx.Err() != nil {
		return nil, interrupted(ctx)
	}
	return answers, nil
}

func (c *showcase) learn(sale *flashsale.Sale) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[sale.ID] = sale
}

// keptSale is where a sale of the board is kept.
func (c *showcase) keptSale(id string) *kept[*ShownSale] {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.sales[id]
	if k == nil {
		k = &kept[*ShownSale]{read: func(ctx context.Context) (*ShownSale, error) { return c.readShown(ctx, id) }}
		c.sales[id] = k
	}
	return k
}

// readShown puts together what SQL and the Stock say of a sale. Where the Stock says nothing, SQL is good enough.
func (c *showcase) readShown(ctx context.Context, id string) (*ShownSale, error) {
	board, err := c.board.get(ctx, shownAge, staleAge)
	if err != nil {
		return nil, err
	}
	sale, err := c.sale(ctx, id)
	if err != nil {
		return nil, err
	}
	states := slices.DeleteFunc(slices.Clone(board.states[id]), func(s flashsale.SKUState) bool { return s.Settings.Status == flashsale.Draft })
	available := c.availables(ctx, states)
	shown := shownSale(sale)
	for i := range states {
		s := &states[i]
		shown.SKUs = append(shown.SKUs, ShownSKU{
			ID: s.Key.SKU, Title: s.Title, Price: s.Price, PurchaseLimit: s.Settings.PurchaseLimit, Status: s.Settings.Status,
			Stock: signalOf(s.Total, s.Sold, available[i]),
		})
	}
	return shown, nil
}

// availables returns what is left of each sku, by the Stock where that is loaded and answers. One that cannot be reached is asked no more.
func (c *showcase) availables(ctx context.Context, states []flashsale.SKUState) []int64 {
	left := make([]int64, len(states))
	var silent atomic.Bool
	inTurns(len(states), viewsAtATime, func(i int) {
		s := &states[i]
		left[i] = s.Available()
		if s.Settings.Status == flashsale.Closed || silent.Load() {
			return
		}
		v, err := c.stock.View(ctx, s.Key)
		if flashsale.CodeOf(err) == flashsale.CodeUnavailable {
			silent.Store(true)
		}
		if err == nil && v.Loaded && v.Epoch == s.Epoch {
			left[i] = v.Available
		}
	})
	return left
}

func shownSale(s *flashsale.Sale) *ShownSale {
	return &ShownSale{ID: s.ID, Title: s.Title, Currency: s.Currency, Zone: s.Zone, OpensAt: s.OpensAt, ClosesAt: s.ClosesAt}
}
