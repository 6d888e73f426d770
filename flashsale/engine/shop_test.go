package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds calls of real stores: the machine may stand still for a while, and these tests are not about that.
const patience = time.Minute

// shop is a sale of one or more skus on a stock in memory and a book, each behind a gate.
type shop struct {
	t      testing.TB
	stock  *memstock.Stock
	book   *book
	faults *faults
	told   *recorder
	engine *Engine
	keys   []flashsale.Key
}

// shopPlan says what is sold.
type shopPlan struct {
	skus          int // default 1
	total         int64
	limit         int64 // default 1
	rate          int64 // default flashsale.MaxRate
	opens, closes time.Time
	status        flashsale.Status
	config        func(*Config)
}

var phone = flashsale.Key{Sale: "eleven", SKU: "phone-0"}

func openShop(t testing.TB, plan shopPlan) *shop {
	t.Helper()
	s := &shop{t: t, stock: memstock.New(memstock.Config{}), faults: &faults{}, told: &recorder{}}
	s.book = &book{now: time.Now, skus: map[flashsale.Key]*flashsale.SKUState{}, rows: map[string]*flashsale.Reservation{}}
	t.Cleanup(func() { _ = s.stock.Close() })
	plan = plan.withDefaults()
	for i := range plan.skus {
		s.addSKU(flashsale.Key{Sale: phone.Sale, SKU: fmt.Sprintf("phone-%d", i)}, &plan)
	}
	s.engine = s.another(plan.config)
	return s
}

func (p shopPlan) withDefaults() shopPlan {
	p.skus, p.limit = max(p.skus, 1), max(p.limit, 1)
	if p.rate == 0 {
		p.rate = flashsale.MaxRate
	}
	if p.opens.IsZero() {
		p.opens = time.Now().Add(-time.Hour)
	}
	if p.closes.IsZero() {
		p.closes = time.Now().Add(time.Hour)
	}
	if p.status == "" {
		p.status = flashsale.Open
	}
	return p
}

// another is one more instance on the same stores.
func (s *shop) another(change func(*Config)) *Engine {
	s.t.Helper()
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		s.t.Fatal(err)
	}
	gate := s.faults.gate()
	cfg := Config{
		Stock: porttest.NewStock(s.stock, gate), Orders: porttest.NewOrders(s.book, gate), Keys: keys, Observer: s.told,
	}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

func (s *shop) addSKU(key flashsale.Key, plan *shopPlan) {
	s.t.Helper()
	state := &flashsale.SKUState{
		Key: key, Total: plan.total, Epoch: 1, Price: 100, Currency: "CNY",
		Settings: flashsale.Settings{
			Version: 1, Status: plan.status, OpensAt: plan.opens, ClosesAt: plan.closes, PurchaseLimit: plan.limit, Rate: plan.rate,
		},
	}
	s.book.skus[key] = state
	s.keys = append(s.keys, key)
	s.load(key, 1)
}

// load gives the stock the keys of an epoch, with what the book has.
func (s *shop) load(key flashsale.Key, epoch int64) {
	s.t.Helper()
	ctx := s.t.Context()
	if _, err := s.stock.Point(ctx, key, epoch); err != nil {
		s.t.Fatal(err)
	}
	state, err := s.book.SKU(ctx, key)
	if err != nil {
		s.t.Fatal(err)
	}
	part := &flashsale.LoadPart{Last: true, Total: state.Total, Reserved: state.Reserved, Sold: state.Sold}
	if err := s.stock.Load(ctx, key, epoch, part); err != nil {
		s.t.Fatal(err)
	}
	if err := s.stock.Configure(ctx, key, epoch, &state.Settings); err != nil {
		s.t.Fatal(err)
	}
}

// token gets a token of a user.
func (s *shop) token(user string) string {
	s.t.Helper()
	token, _, err := s.engine.Token(s.t.Context(), TokenRequest{Key: phone, User: user})
	if err != nil {
		s.t.Fatalf("a token for %s: %v", user, err)
	}
	return token
}

// request asks for one unit with a new token.
func (s *shop) request(user string) ReserveRequest {
	s.t.Helper()
	return ReserveRequest{Token: s.token(user), Key: phone, User: user, Quantity: 1}
}

// reserve takes a unit that there must be.
func (s *shop) reserve(user string) string {
	s.t.Helper()
	answer, err := s.engine.Reserve(s.t.Context(), s.request(user))
	if err != nil {
		s.t.Fatalf("%s reserves: %v", user, err)
	}
	return answer.RID
}

// consume makes one pass that must decide n jobs.
func (s *shop) consume(n int) {
	s.t.Helper()
	if got, err := s.engine.ConsumeOnce(s.t.Context(), phone, "c"); err != nil || got != n {
		s.t.Fatalf("a pass decides %d jobs: %v; want %d", got, err, n)
	}
}

// view returns the figures of the stock.
func (s *shop) view() flashsale.StockView {
	s.t.Helper()
	v, err := s.stock.View(s.t.Context(), phone)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// agree checks that stock and book agree, with nothing left to decide.
func (s *shop) agree(sku flashsale.Key) {
	s.t.Helper()
	v, err := s.stock.View(s.t.Context(), sku)
	if err != nil {
		s.t.Fatal(err)
	}
	state, _ := s.book.SKU(s.t.Context(), sku)
	if v.Queue.Depth != 0 || v.Queue.Pending != 0 || v.Available != state.Available() || v.Held != state.Reserved || v.Available+v.Held+v.Sold != v.Total {
		s.t.Errorf("%s: the stock has %+v, the book reserved %d of %d", sku, v, state.Reserved, state.Total)
	}
}

func wantCode(t testing.TB, what string, err error, want flashsale.Code) {
	t.Helper()
	if got := flashsale.CodeOf(err); got != want {
		t.Errorf("%s: the code is %q (%v), want %q", what, got, err, want)
	}
}

// faults refuse calls of the stores.
type faults struct {
	mu            sync.Mutex
	before, after func(call string) error
	calls         map[string]int
}

func (f *faults) gate() *porttest.Gate {
	return &porttest.Gate{
		Before: func(_ context.Context, call string) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.calls == nil {
				f.calls = map[string]int{}
			}
			f.calls[call]++
			if f.before == nil {
				return nil
			}
			return f.before(call)
		},
		After: func(_ context.Context, call string, _ error) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.after == nil {
				return nil
			}
			return f.after(call)
		},
	}
}

func (f *faults) set(before, after func(call string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faults) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// lose refuses the first n calls of some names with CodeUnavailable.
func lose(n int, calls ...string) func(string) error {
	return func(call string) error {
		if n == 0 || !slices.Contains(calls, call) {
			return nil
		}
		n--
		return errorf(flashsale.CodeUnavailable, "%s: the line is cut", call)
	}
}

// recorder is an observer that remembers.
type recorder struct {
	mu      sync.Mutex
	nobody  // what is not remembered
	lines   []string
	batches []int
	workers []int
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Reserved(sku, outcome string, _ time.Duration) {
	r.note("reserved %s %s", sku, outcome)
}
func (r *recorder) Alarm(kind, sku string, on bool, _ float64, _ string) {
	r.note("alarm %s %s %v", kind, sku, on)
}

func (r *recorder) Rebuilt(sku string, epoch int64, _ time.Duration, code string) {
	r.note("rebuilt %s %d %s", sku, epoch, code)
}

func (r *recorder) Moved(sku, transition, reason string, quantity int64) {
	r.note("moved %s %s %s %d", sku, transition, reason, quantity)
}

func (r *recorder) Batch(_ string, jobs, retries int, _, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, jobs)
	if retries > 0 {
		r.lines = append(r.lines, fmt.Sprintf("repeated %d", retries))
	}
}

func (r *recorder) Workers(n int, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = append(r.workers, n)
}

func (r *recorder) count(line string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if l == line {
			n++
		}
	}
	return n
}
