package simpay

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestAdopt: a provider that begins anew goes on with what another had told of.
func TestAdopt(t *testing.T) {
	b := newBench(t, 1, Config{MaxPayments: 6})
	b.create("known")
	b.pass(0)
	told := len(b.statuses())
	in := func(key string) flashsale.Intent { return flashsale.Intent{Key: key, Amount: 500, Currency: "EUR"} }
	for i, status := range []flashsale.PayStatus{open, captured, failed, void, flashsale.PayRefunded} {
		if err := b.Adopt(in(string(status)), status, b.now.Add(time.Duration(i-9)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		b.is(string(status), status)
	}
	if err := b.Adopt(in("known"), captured, b.now); err != nil {
		t.Fatal(err)
	}
	b.is("known", open)
	code(t, b.Adopt(in("one more"), open, b.now), flashsale.CodeUnavailable)
	if _, err := b.Refund(t.Context(), "captured"); err != nil {
		t.Error(err)
	}
	if err := b.Pay("open", captured); err != nil {
		t.Error(err)
	}
	for key, want := range map[string][2]int64{"captured": {1, 1}, "refunded": {1, 1}, "open": {1, 0}, "void": {0, 0}} {
		if r, ok := b.Record(key); !ok || r.Captures != want[0] || r.Refunds != want[1] {
			t.Errorf("%s: %+v %t, want %v", key, r, ok, want)
		}
	}
	if told != 1 {
		t.Errorf("told of %d changes before anything was adopted", told)
	}
	b.pass(0)
	if n := len(b.statuses()); n != 3 { // known, the refund, the capture
		t.Errorf("told of %v; what is adopted is not told", b.statuses())
	}
}
