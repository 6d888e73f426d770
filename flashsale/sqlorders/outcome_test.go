package sqlorders

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// cells is what comes of everything that a provider may say, by what the payment and its reservation are: every one of them, whether
// or not there is a way to it. "captured, not applied" is "loose", and applied to its reservation "applied".
//
//   - nothing changes
//     F V R   the payment has failed, is void, is refunded
//     C   the payment is captured, and kept for T8
//     T4  the payment is captured and applied, the reservation confirmed
//     T9  the payment is to be refunded, because the reservation is paid already
//     A U the payment is to be refunded, because of its amount, its currency
//     <   and the reservation goes back: reserved, or expired if its time is over
const cells = `
payment   reservation  open failed void captured amount currency refunded
live      reserved     -    F      V    T4       A      U        R
live      confirming   -    F<     V<   T4       A<     U<       R<
live      confirmed    -    F      V    T9       A      U        R
live      cancelled    -    F      V    C        A      U        R
live      expired      -    F      V    C        A      U        R
live      rejected     -    F      V    C        A      U        R
failed    reserved     -    -      -    T4       A      U        R
failed    confirming   -    -      -    T4       A      U        R
failed    confirmed    -    -      -    T9       A      U        R
failed    cancelled    -    -      -    C        A      U        R
failed    expired      -    -      -    C        A      U        R
failed    rejected     -    -      -    C        A      U        R
void      reserved     -    -      -    T4       A      U        R
void      confirming   -    -      -    T4       A      U        R
void      confirmed    -    -      -    T9       A      U        R
void      cancelled    -    -      -    C        A      U        R
void      expired      -    -      -    C        A      U        R
void      rejected     -    -      -    C        A      U        R
loose     reserved     -    -      -    -        -      -        R
loose     confirming   -    -      -    -        -      -        R
loose     confirmed    -    -      -    -        -      -        R
loose     cancelled    -    -      -    -        -      -        R
loose     expired      -    -      -    -        -      -        R
loose     rejected     -    -      -    -        -      -        R
applied   reserved     -    -      -    -        -      -        -
applied   confirming   -    -      -    -        -      -        -
applied   confirmed    -    -      -    -        -      -        -
applied   cancelled    -    -      -    -        -      -        -
applied   expired      -    -      -    -        -      -        -
applied   rejected     -    -      -    -        -      -        -
refunding reserved     -    -      -    -        -      -        R
refunding confirming   -    -      -    -        -      -        R
refunding confirmed    -    -      -    -        -      -        R
refunding cancelled    -    -      -    -        -      -        R
refunding expired      -    -      -    -        -      -        R
refunding rejected     -    -      -    -        -      -        R
refunded  reserved     -    -      -    -        -      -        -
refunded  confirming   -    -      -    -        -      -        -
refunded  confirmed    -    -      -    -        -      -        -
refunded  cancelled    -    -      -    -        -      -        -
refunded  expired      -    -      -    -        -      -        -
refunded  rejected     -    -      -    -        -      -        -
`

// cell is a case: a payment and a reservation, what is said, and what has to come of it, in time or late.
type cell struct {
	payment, reservation, said, want string
	late                             bool
}

func (c *cell) String() string {
	when := "in time"
	if c.late {
		when = "late"
	}
	return fmt.Sprintf("%s payment, %s reservation, %s, %s", c.payment, c.reservation, c.said, when)
}

func allCells(t *testing.T) []cell {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(cells), "\n")
	said := strings.Fields(lines[0])[2:]
	var all []cell
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		for i, s := range said {
			all = append(all, cell{f[0], f[1], s, f[2+i], false})
			if f[1] == "reserved" || f[1] == "confirming" { // what has ended has no time
				all = append(all, cell{f[0], f[1], s, f[2+i], true})
			}
		}
	}
	if want := 7*6*7 + 7*2*7; len(all) != want {
		t.Fatalf("%d cells, want %d", len(all), want)
	}
	return all
}

func TestOutcomeOfEverything(t *testing.T) {
	all := allCells(t)
	for _, name := range heavyDBs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openForgery(t, name)
			s.stockUp(all)
			for i := range all {
				s.runCell(&all[i], fmt.Sprintf("r%d", i))
			}
			s.checkBooksBut("payment") // the others must agree even so
		})
	}
}

// openForgery is a shop whose payments may be in states that there is no way to.
func openForgery(t *testing.T, name string) *shop {
	t.Helper()
	s := newShop(t, name, Config{})
	mustExec(t, s.o, "UPDATE sale_sku SET total = 10000 WHERE sku = 'sku'")
	return s
}

// stockUp reserves for all cells at once, but for those that begin with a tombstone.
func (s *shop) stockUp(all []cell) {
	s.Helper()
	var reserved []flashsale.Job
	for i := range all {
		if rid := fmt.Sprintf("r%d", i); all[i].reservation != "rejected" {
			reserved = append(reserved, job(rid, "user of "+rid, 1))
		}
	}
	s.decide(reserved...)
}

func (s *shop) runCell(c *cell, rid string) {
	s.Helper()
	key := s.forge(c, rid)
	before, was := s.reservation(rid), s.payment(key)
	said := &flashsale.ProviderPayment{IntentKey: key, Status: flashsale.PayStatus(c.said), Amount: was.Amount, Currency: was.Currency}
	switch c.said {
	case "amount":
		said.Status, said.Amount = flashsale.PayCaptured, was.Amount-1
	case "currency":
		said.Status, said.Currency = flashsale.PayCaptured, "USD"
	}
	for i, event := range []string{"event of " + rid, "event of " + rid, ""} {
		s.pass(time.Microsecond)
		out, err := s.o.Outcome(s.Context(), event, said)
		if err != nil {
			s.Fatalf("%s: %v", c, err)
		}
		if i == 0 {
			s.checkCell(c, before, was, out)
			before, was = &out.Reservation, &out.Payment
		}
		if out.Payment != *was || out.Reservation != *before || out.Key != testKey || i > 0 && len(out.Decided) > 0 {
			s.Errorf("%s: call %d has changed something again: %+v, was %+v, %+v", c, i+1, out, was, before)
		}
	}
	if r, p := s.reservation(rid), s.payment(key); *r != *before || *p != *was {
		s.Errorf("%s: the outcome is %+v, %+v, and the rows are %+v, %+v", c, before, was, r, p)
	}
	if seen, err := s.o.SeenEvent(s.Context(), "event of "+rid); err != nil || !seen {
		s.Errorf("%s: the event was seen: %v, %v", c, seen, err)
	}
}

// checkCell compares what came of a cell with what the table says.
func (s *shop) checkCell(c *cell, before *flashsale.Reservation, was *flashsale.Payment, out *flashsale.PaymentOutcome) {
	s.Helper()
	state, version := before.State, before.Version
	want, applied, reason := was.State, was.AppliedTo, was.Reason
	moved := func(to flashsale.State) { state, version = to, version+1 }
	letter, back := strings.CutSuffix(c.want, "<")
	switch letter {
	case "F":
		want = flashsale.PaymentFailed
	case "V":
		want = flashsale.PaymentVoid
	case "R":
		want = flashsale.PaymentRefunded
		if reason == "" {
			reason = "refunded_by_provider"
		}
	case "C":
		want = flashsale.PaymentCaptured
	case "T4":
		want, applied = flashsale.PaymentCaptured, before.RID
		moved(flashsale.Confirmed)
	case "T9":
		want, reason = flashsale.PaymentRefunding, "paid_twice"
	case "A":
		want, reason = flashsale.PaymentRefunding, "amount_mismatch"
	case "U":
		want, reason = flashsale.PaymentRefunding, "currency_mismatch"
	}
	if back {
		moved(map[bool]flashsale.State{false: flashsale.Reserved, true: flashsale.Expired}[c.late])
	}
	if p := out.Payment; p.State != want || p.AppliedTo != applied || p.Reason != reason {
		s.Errorf("%s: the payment is %s, applied to %q, reason %q; want %s, %q, %q", c, p.State, p.AppliedTo, p.Reason, want, applied, reason)
	}
	if r := out.Reservation; r.State != state || r.Version != version || !r.Until.Equal(before.Until) || r.PayGranted != before.PayGranted {
		s.Errorf("%s: the reservation is %s at %d, want %s at %d", c, r.State, r.Version, state, version)
	}
	decided := ""
	if version != before.Version {
		decided = before.RID + ":" + state.String()
		if state == flashsale.Expired {
			decided += "(payment_void)"
		}
	}
	if c.payment == "loose" && c.want == "R" {
		decided = flashsale.DerivedRID(was.IntentKey) + ":rejected(refunded_by_provider)"
	}
	if got := brief(out.Decided); got != decided {
		s.Errorf("%s: decided %q, want %q", c, got, decided)
	}
	if rival := letter == "T4" && c.reservation == "confirming" && c.payment != "live"; out.Rival != rival {
		s.Errorf("%s: another attempt is live: %v, want %v", c, out.Rival, rival)
	}
	for _, d := range out.Decided {
		if d.Outbox == 0 {
			s.Errorf("%s: nothing in the outbox for %+v", c, d)
		}
	}
}

// forge brings a reservation, and a payment for it, to where a cell begins, and returns the key of the payment.
func (s *shop) forge(c *cell, rid string) string {
	s.Helper()
	key := flashsale.IntentKey(rid, 1)
	if c.reservation == "rejected" {
		_, err := s.o.Tombstone(s.Context(), testKey, []flashsale.Entry{{RID: rid, User: "user of " + rid, Quantity: 1}})
		noError(s.T, "Tombstone", err)
	}
	switch c.reservation {
	case "cancelled":
		_, err := s.o.Cancel(s.Context(), rid, "", "")
		noError(s.T, "Cancel", err)
	case "confirming", "confirmed", "expired":
		s.begin(rid)
	}
	switch c.reservation {
	case "confirmed":
		s.outcome(key, flashsale.PayCaptured)
	case "expired":
		mustExec(s.T, s.o, "UPDATE reservation SET until_at = ? WHERE rid = ?", s.now.Load(), rid)
		s.outcome(key, flashsale.PayVoid)
	}
	// The clock moves on by one before it is asked: late begins at the very moment.
	until := s.now.Load() + 2
	if c.late {
		until--
	}
	mustExec(s.T, s.o, "UPDATE reservation SET until_at = ? WHERE rid = ?", until, rid)
	if c.payment == "live" && c.reservation == "confirming" || c.payment == "applied" && c.reservation == "confirmed" {
		return key
	}
	return s.forgePayment(c.payment, rid)
}

func (s *shop) forgePayment(kind, rid string) string {
	s.Helper()
	key := flashsale.IntentKey(rid, 2)
	state, live, applied, reason := kind, any(nil), any(nil), ""
	switch kind {
	case "live":
		live = int64(1)
	case "loose":
		state = "captured"
	case "applied":
		state, applied = "captured", rid
	case "refunding", "refunded":
		reason = "some reason"
	}
	mustExec(s.T, s.o, "INSERT INTO payment (intent_key, rid, attempt, amount, currency, state, live, applied_to, reason, created_at, changed_at) "+
		"VALUES (?, ?, 2, 19900, 'CNY', ?, ?, ?, ?, 1, 1)", key, rid, state, live, applied, reason)
	return key
}

func TestOutcomeOfNothing(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		key := s.begin("r").IntentKey
		for what, c := range map[string]struct {
			event string
			said  flashsale.ProviderPayment
			code  flashsale.Code
		}{
			"an unknown key":      {"e1", flashsale.ProviderPayment{IntentKey: "r:2", Status: flashsale.PayCaptured}, flashsale.CodeUnknownPayment},
			"no key":              {"e2", flashsale.ProviderPayment{Status: flashsale.PayCaptured}, flashsale.CodeUnknownPayment},
			"a key of no kind":    {"e3", flashsale.ProviderPayment{IntentKey: "\x00\xff'", Status: flashsale.PayCaptured}, flashsale.CodeUnknownPayment},
			"a number with zeros": {"e4", flashsale.ProviderPayment{IntentKey: "r:01", Status: flashsale.PayCaptured}, flashsale.CodeUnknownPayment},
			"no status":           {"e5", flashsale.ProviderPayment{IntentKey: key}, flashsale.CodeInvalidArgument},
			"another status":      {"e6", flashsale.ProviderPayment{IntentKey: key, Status: "paid"}, flashsale.CodeInvalidArgument},
			"an event of bytes":   {"\xff", flashsale.ProviderPayment{IntentKey: key, Status: flashsale.PayVoid}, flashsale.CodeInvalidArgument},
			"a long event":        {strings.Repeat("e", 256), flashsale.ProviderPayment{IntentKey: key, Status: flashsale.PayVoid}, flashsale.CodeInvalidArgument},
		} {
			_, err := s.o.Outcome(s.Context(), c.event, &c.said)
			wantCode(t, what, err, c.code)
			if seen, err := s.o.SeenEvent(s.Context(), c.event); err != nil || seen {
				t.Errorf("%s: the event was taken: %v, %v", what, seen, err)
			}
		}
		s.is("r", flashsale.Confirming, 2)
	})
}

// TestEventOfAnother: an event is taken once, whatever it says the second time.
func TestEventOfAnother(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("a")
		s.reserve("b")
		a, b := s.begin("a"), s.begin("b")
		_, err := s.o.Outcome(s.Context(), "e", &flashsale.ProviderPayment{IntentKey: a.IntentKey, Status: flashsale.PayOpen})
		noError(t, "Outcome", err)
		_, err = s.o.Outcome(s.Context(), "e", &flashsale.ProviderPayment{IntentKey: b.IntentKey, Status: flashsale.PayVoid})
		noError(t, "Outcome", err)
		_, err = s.o.Outcome(s.Context(), "e", &flashsale.ProviderPayment{IntentKey: a.IntentKey, Status: flashsale.PayVoid})
		noError(t, "Outcome", err)
		s.is("a", flashsale.Confirming, 2)
		s.is("b", flashsale.Confirming, 2)
	})
}
