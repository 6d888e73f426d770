package simpay

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	open     = flashsale.PayOpen
	captured = flashsale.PayCaptured
	failed   = flashsale.PayFailed
	void     = flashsale.PayVoid
	refunded = flashsale.PayRefunded
)

func TestAnIntentIsMadeOnce(t *testing.T) {
	b := newBench(t, 1, Config{})
	b.create("r:1")
	b.create("r:1")
	if n := b.Stats().Payments; n != 1 {
		t.Fatalf("%d payments", n)
	}
	in := flashsale.Intent{Key: "r:1", Amount: 501, Currency: "EUR"}
	_, err := b.Create(t.Context(), &in)
	code(t, err, flashsale.CodeConflict)
	for _, bad := range []flashsale.Intent{{Amount: 1, Currency: "EUR"}, {Key: "k", Amount: -1, Currency: "EUR"}, {Key: "k", Amount: 1}} {
		_, err := b.Create(t.Context(), &bad)
		code(t, err, flashsale.CodeInvalidArgument)
	}
	for name, call := range map[string]func(context.Context, string) (*flashsale.ProviderPayment, error){"query": b.Query, "void": b.Void, "refund": b.Refund} {
		if _, err := call(t.Context(), "nobody"); flashsale.CodeOf(err) != flashsale.CodeUnknownPayment {
			t.Errorf("%s of an unknown payment: %v", name, err)
		}
	}
	code(t, b.Pay("nobody", captured), flashsale.CodeUnknownPayment)
	code(t, b.Pay("r:1", void), flashsale.CodeInvalidArgument)
}

func TestAPaymentEndsOnce(t *testing.T) {
	b := newBench(t, 1, Config{})
	for _, c := range []struct {
		name string
		do   func(key string) error
		want []flashsale.PayStatus // what is told of it
	}{
		{"captured", func(k string) error { return b.Pay(k, captured) }, []flashsale.PayStatus{open, captured}},
		{"failed", func(k string) error { return b.Pay(k, failed) }, []flashsale.PayStatus{open, failed}},
		{"void", b.void, []flashsale.PayStatus{open, void}},
		{"refunded", func(k string) error {
			if err := b.Pay(k, captured); err != nil {
				return err
			}
			_, err := b.Refund(t.Context(), k)
			return err
		}, []flashsale.PayStatus{open, captured, refunded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.got = nil
			b.create(c.name)
			if err := c.do(c.name); err != nil {
				t.Fatal(err)
			}
			end := c.want[len(c.want)-1]
			b.is(c.name, end)
			code(t, b.Pay(c.name, captured), flashsale.CodeInvalidState)
			if err := b.void(c.name); err != nil {
				t.Fatalf("a void of what has ended is answered: %v", err)
			}
			_, err := b.Refund(t.Context(), c.name)
			if end == captured || end == refunded {
				end, c.want = refunded, []flashsale.PayStatus{open, captured, refunded}
			} else {
				code(t, err, flashsale.CodeInvalidState)
			}
			b.is(c.name, end)
			b.pass(0)
			if !slices.Equal(b.statuses(), c.want) {
				t.Fatalf("told %v; want %v", b.statuses(), c.want)
			}
		})
	}
}

func (b *bench) void(key string) error {
	_, err := b.Void(b.t.Context(), key)
	return err
}

func TestAVoidThatComesLater(t *testing.T) {
	minute := Range{Min: time.Minute}
	for _, c := range []struct {
		name    string
		b       Behaviour
		shopper flashsale.PayStatus // who pays while the void is not decided
		want    flashsale.PayStatus
	}{
		{"is void", Behaviour{VoidLater: 1, VoidTime: minute}, "", void},
		{"is too late", Behaviour{VoidLater: 1, VoidTime: minute, VoidTooLate: 1}, "", captured},
		{"meets a payer", Behaviour{VoidLater: 1, VoidTime: minute}, captured, captured},
		{"meets one who fails", Behaviour{VoidLater: 1, VoidTime: minute, VoidTooLate: 1}, failed, failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1, Config{Behaviour: c.b})
			b.create("k")
			for range 2 {
				if pay, err := b.Void(t.Context(), "k"); err != nil || pay.Status != open {
					t.Fatalf("%+v, %v", pay, err)
				}
			}
			if r, _ := b.Record("k"); !r.Voiding {
				t.Fatal("the void is not under way")
			}
			if c.shopper != "" {
				if err := b.Pay("k", c.shopper); err != nil {
					t.Fatal(err)
				}
			}
			b.pass(time.Minute)
			b.is("k", c.want)
			if want := []flashsale.PayStatus{open, c.want}; !slices.Equal(b.statuses(), want) {
				t.Fatalf("told %v; want %v", b.statuses(), want)
			}
		})
	}
}

func TestAVoidPaymentMayBeCapturedAfterAll(t *testing.T) {
	b := newBench(t, 1, Config{Behaviour: Behaviour{Undone: 1, VoidTime: Range{Min: time.Minute}}})
	b.create("k")
	if pay, err := b.Void(t.Context(), "k"); err != nil || pay.Status != void {
		t.Fatalf("%+v, %v", pay, err)
	}
	b.pass(time.Minute)
	b.is("k", captured)
	code(t, b.Capture("k", 500, "EUR"), flashsale.CodeInvalidState)
	if _, err := b.Refund(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if r, _ := b.Record("k"); r.Captures != 1 || r.Refunds != 1 || r.Charged() {
		t.Fatalf("%+v", r)
	}
}

func TestOutages(t *testing.T) {
	b := newBench(t, 1, Config{})
	b.create("k")
	b.SetOutage(DownBefore)
	_, err := b.Void(t.Context(), "k")
	code(t, err, flashsale.CodeUnavailable)
	b.SetOutage(Up)
	b.is("k", open)
	b.SetOutage(DownAfter)
	_, err = b.Void(t.Context(), "k")
	code(t, err, flashsale.CodeUnavailable)
	_, _, err = b.List(t.Context(), time.Time{}, "", 10)
	code(t, err, flashsale.CodeUnavailable)
	b.SetOutage(Up)
	b.is("k", void)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Query(ctx, "k")
	code(t, err, flashsale.CodeUnavailable)

	b.SetBehaviour(Behaviour{FailBefore: 0.3, FailAfter: 0.3})
	away := 0
	for range 1000 {
		if _, err := b.Query(t.Context(), "k"); err != nil {
			code(t, err, flashsale.CodeUnavailable)
			away++
		}
	}
	if away < 430 || away > 590 { // 51 %, and five standard deviations
		t.Fatalf("%d of 1000 calls failed; want about 510", away)
	}
}

func TestListHasWhatHasChanged(t *testing.T) {
	b := newBench(t, 1, Config{})
	for i := range 25 {
		b.create(fmt.Sprintf("k%02d", i))
		b.now = b.now.Add(time.Second)
	}
	since := b.now
	for _, i := range []int{7, 3} {
		if err := b.Pay(fmt.Sprintf("k%02d", i), captured); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.keys(since, 10); !slices.Equal(got, []string{"k07", "k03"}) {
		t.Fatalf("changed since: %v", got)
	}
	all := b.keys(time.Time{}, 4)
	if len(all) != 25 || all[23] != "k07" || all[24] != "k03" || all[0] != "k00" {
		t.Fatalf("all: %v", all)
	}
	_, _, err := b.List(t.Context(), time.Time{}, "mine", 10)
	code(t, err, flashsale.CodeInvalidArgument)

	for range 5000 { // what has been superseded does not pile up
		b.move(b.payments["k05"], captured, b.now)
	}
	if n := len(b.changes.entries); n > 1100 {
		t.Fatalf("%d entries are kept for 25 payments", n)
	}
}

func (b *bench) keys(since time.Time, limit int) (keys []string) {
	b.t.Helper()
	for cursor := ""; ; {
		page, next, err := b.List(b.t.Context(), since, cursor, limit)
		if err != nil || len(page) > limit {
			b.t.Fatalf("%d payments, %v", len(page), err)
		}
		for i := range page {
			keys = append(keys, page[i].IntentKey)
		}
		if cursor = next; cursor == "" {
			return keys
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	b := newBench(t, 1, Config{MaxPayments: 3, MaxWebhooks: 2, Keep: time.Hour})
	for _, k := range []string{"a", "b", "c"} {
		b.create(k)
	}
	if s := b.Stats(); s.Planned != 2 || s.Lost != 1 {
		t.Fatalf("%+v", s)
	}
	in := flashsale.Intent{Key: "d", Amount: 500, Currency: "EUR"}
	if err := b.Pay("b", captured); err != nil {
		t.Fatal(err)
	}
	_, err := b.Create(t.Context(), &in)
	code(t, err, flashsale.CodeUnavailable)
	b.pass(time.Hour)
	b.create("d")
	if got := b.keys(time.Time{}, 10); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Fatalf("kept: %v", got)
	}
}

// TestTheSameChancesHaveTheSameResults runs everything that can go wrong twice with one seed, and once with another.
func TestTheSameChancesHaveTheSameResults(t *testing.T) {
	run := func(seed uint64) (events []flashsale.ProviderEvent, records []Record) {
		b := newBench(t, seed, Config{Behaviour: wild()})
		for i := range 200 {
			key := fmt.Sprintf("k%d", i)
			in := flashsale.Intent{Key: key, Amount: 500, Currency: "EUR"}
			_, _ = b.Create(t.Context(), &in)
			if i%3 == 0 {
				_, _ = b.Void(t.Context(), key)
			}
			b.pass(time.Second)
		}
		b.pass(time.Hour)
		for _, e := range b.got {
			events = append(events, *e)
		}
		return events, slices.Collect(b.Records())
	}
	events, records := run(42)
	again, same := run(42)
	if !reflect.DeepEqual(events, again) || !reflect.DeepEqual(records, same) {
		t.Fatal("one seed, two histories")
	}
	if other, _ := run(43); reflect.DeepEqual(events, other) {
		t.Fatal("two seeds, one history")
	}
	seen := map[flashsale.PayStatus]int{}
	for i := range records {
		seen[records[i].Status]++
		if r := &records[i]; r.Captures > 1 || r.Refunds > r.Captures {
			t.Fatalf("%+v", r)
		}
	}
	for _, s := range []flashsale.PayStatus{open, captured, failed, void} {
		if seen[s] == 0 {
			t.Errorf("no payment is %s: %v", s, seen)
		}
	}
}

func wild() Behaviour {
	return Behaviour{
		Capture: 0.5, Fail: 0.2, Shopper: Range{Max: time.Minute}, WrongCapture: 0.1,
		VoidLater: 0.5, VoidTime: Range{Max: time.Minute}, VoidTooLate: 0.3, Undone: 0.1,
		FailBefore: 0.1, FailAfter: 0.1,
		Webhook: Range{Max: 10 * time.Second}, LateBy: time.Minute, Lost: 0.1, Twice: 0.2, Late: 0.2, Reordered: 0.2, Misreport: 0.1,
	}
}

func TestRunFollowsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, Config{Behaviour: Behaviour{Capture: 1, Shopper: Range{Min: 10 * time.Second}, Webhook: Range{Min: time.Second}}})
		b.cfg.Now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		synctest.Wait() // nothing is planned yet
		b.create("k")
		time.Sleep(11*time.Second - time.Millisecond)
		synctest.Wait()
		if want := []flashsale.PayStatus{open}; !slices.Equal(b.statuses(), want) {
			t.Fatalf("after 11 s less 1 ms: %v", b.statuses())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if want := []flashsale.PayStatus{open, captured}; !slices.Equal(b.statuses(), want) {
			t.Fatalf("after 11 s: %v", b.statuses())
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
