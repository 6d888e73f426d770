package httppay

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// twins are two providers that behave alike, at one clock: one is asked directly, the other through HTTP.
type twins struct {
	t            *testing.T
	clock        *clock
	rng          *rand.Rand
	near, far    *simpay.Provider
	direct, over flashsale.Payments
	told         int
}

func newTwins(t *testing.T, seed uint64) *twins {
	t.Helper()
	c := newClock()
	cfg := simpay.Config{Behaviour: simpay.Behaviour{
		Capture: .3, Fail: .2, Shopper: simpay.Range{Max: 20 * time.Second}, WrongCapture: .1, VoidLater: .3, VoidTime: simpay.Range{Max: 20 * time.Second},
		VoidTooLate: .2, Undone: .2, FailBefore: .05, FailAfter: .05,
	}}
	w := &twins{t: t, clock: c, rng: rand.New(rand.NewPCG(seed, 9)), near: newBank(c, seed, cfg), far: newBank(c, seed, cfg)}
	w.direct, w.over = w.near, connect(t, c, serve(t, c, w.far).URL, nil)
	return w
}

// same makes a call to both, and reports what differs.
func (w *twins) same(what string, call func(p flashsale.Payments) (any, error)) {
	w.t.Helper()
	want, err1 := call(w.direct)
	got, err2 := call(w.over)
	if flashsale.CodeOf(err1) != flashsale.CodeOf(err2) || (err1 == nil) != (err2 == nil) || !reflect.DeepEqual(got, want) {
		w.t.Fatalf("%s:\ndirectly  %+v, %v\nover HTTP %+v, %v", what, want, err1, got, err2)
	}
	w.told++
}

// value is a payment that can be compared, for tests print pointers badly.
func value(p *flashsale.ProviderPayment, err error) (any, error) {
	if p == nil {
		return nil, err
	}
	return *p, err
}

func (w *twins) step() {
	key := fmt.Sprintf("r%d:%d", w.rng.IntN(6), 1+w.rng.IntN(2))
	ctx := w.t.Context()
	switch w.rng.IntN(9) {
	case 0, 1:
		in := intent(key)
		if w.rng.IntN(8) == 0 {
			in.Amount++
		}
		if w.rng.IntN(16) == 0 {
			in.Currency = ""
		}
		w.same("create "+key, func(p flashsale.Payments) (any, error) { return value(p.Create(ctx, in)) })
	case 2, 3:
		w.same("query "+key, func(p flashsale.Payments) (any, error) { return value(p.Query(ctx, key)) })
	case 4:
		w.same("void "+key, func(p flashsale.Payments) (any, error) { return value(p.Void(ctx, key)) })
	case 5:
		w.same("refund "+key, func(p flashsale.Payments) (any, error) { return value(p.Refund(ctx, key)) })
	case 6:
		w.list()
	case 7:
		if e1, e2 := w.near.Pay(key, flashsale.PayCaptured), w.far.Pay(key, flashsale.PayCaptured); flashsale.CodeOf(e1) != flashsale.CodeOf(e2) {
			w.t.Fatalf("pay %s: %v, %v", key, e1, e2)
		}
	default:
		w.clock.pass(time.Duration(w.rng.Int64N(int64(10 * time.Second))))
		w.near.Step(ctx)
		w.far.Step(ctx)
	}
}

// page is what List returns.
type page struct {
	payments []flashsale.ProviderPayment
	next     string
}

func (w *twins) list() {
	since, limit, cursor := w.clock.now().Add(-time.Duration(w.rng.Int64N(int64(time.Minute)))), 1+w.rng.IntN(4), ""
	if w.rng.IntN(8) == 0 {
		cursor = "not of this provider"
	}
	for more := true; more; more = cursor != "" {
		next := ""
		w.same("list", func(p flashsale.Payments) (any, error) {
			all, n, err := p.List(w.t.Context(), since, cursor, limit)
			next = n
			if len(all) == 0 {
				all = nil
			}
			return page{all, n}, err
		})
		cursor = next
	}
}

// TestSameAsDirectly: whatever is asked of a provider, in whatever order, over HTTP it is answered as directly: the same payments, the
// same codes, the same pages, to the nanosecond; also where the provider fails before a call or after it.
func TestSameAsDirectly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		w := newTwins(t, seed)
		for range 200 {
			w.step()
		}
		if w.told < 100 {
			t.Errorf("only %d calls were compared", w.told)
		}
	}
}

// TestIntent: everything that an intent says arrives, and where shoppers come back to.
func TestIntent(t *testing.T) {
	t.Parallel()
	c := newClock()
	bank := newBank(c, 1, simpay.Config{})
	client := connect(t, c, serve(t, c, bank).URL, func(cfg *Config) { cfg.ReturnURL = "https://shop.example.com/{rid}?order={order}" })
	for key, in := range map[string]flashsale.Intent{
		"r1:1":   {Amount: 1250, Currency: "EUR", OrderID: "o.1", User: "安妮 <&>"},
		"-_.:2":  {Amount: 0, Currency: "JPY", OrderID: "o.2", User: "\xff\xfe"},
		"r3:1":   {Amount: 1 << 49, Currency: "CNY", OrderID: "o&3", User: "u", ReturnURL: "https://other.example.com/"},
		"noattm": {Amount: 1, Currency: "EUR"},
	} {
		in.Key = key
		p, err := client.Create(t.Context(), &in)
		if err != nil || p.Status != flashsale.PayOpen || p.Amount != in.Amount || p.URL != "https://pay.example/"+key {
			t.Errorf("%s: %+v, %v", key, p, err)
			continue
		}
		want := in
		switch key {
		case "r1:1":
			want.ReturnURL = "https://shop.example.com/r1?order=o.1"
		case "-_.:2":
			want.User, want.ReturnURL = "", "https://shop.example.com/-_.?order=o.2"
		case "noattm":
			want.ReturnURL = "https://shop.example.com/noattm?order="
		}
		if record, _ := bank.Record(key); record.Intent != want {
			t.Errorf("%s arrives as %+v, want %+v", key, record.Intent, want)
		}
	}
	for _, key := range []string{"", ".", "..", "a/b", "a b", "a%2fb", "ä:1", "a?b", string(make([]byte, 10)), "x" + string(make([]byte, 300))} {
		_, err := client.Create(t.Context(), intent(key))
		wantCode(t, fmt.Sprintf("%q", key), err, flashsale.CodeInvalidArgument)
	}
	if n := bank.Stats().Calls; n != 4 {
		t.Errorf("%d calls; want 4", n)
	}
}
