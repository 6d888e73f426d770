package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/flashsale"
)

func kindOf(sku string, code flashsale.Code) refusalKind {
	return refusalKind{key: flashsale.Key{Sale: "eleven", SKU: sku}, code: code}
}

// TestJournalKeepsWhatItSays holds the journal to a list of all that was refused: what it has is true, and what is later than Since is there.
func TestJournalKeepsWhatItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		began := time.Unix(1_800_000_000, 0)
		j := newJournal(refusalShards*rapid.IntRange(1, 5).Draw(t, "limit of a shard"), began, rapid.Bool().Draw(t, "logged"))
		type event struct {
			user string
			kind refusalKind
			at   time.Time
		}
		var all []event
		now := began
		users := []string{"", "a", "b", "c", "\xff", "d", "e", "f"}
		for range rapid.IntRange(0, 200).Draw(t, "refusals") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "ms")) * time.Millisecond)
			e := event{rapid.SampledFrom(users).Draw(t, "user"), kindOf(fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "sku")), flashsale.CodeSoldOut), now}
			all = append(all, e)
			j.note(e.user, e.kind, refusalTold{quantity: 1, at: e.at})
		}
		kept := int64(0)
		for _, user := range users {
			r := j.of(user)
			lines := map[refusalKind]Refusal{}
			for i := range r.Of {
				one := r.Of[i]
				lines[refusalKind{key: one.Key, code: one.Code, detail: one.Detail}] = one
				kept += one.Count
				n, last := int64(0), time.Time{}
				for _, e := range all {
					if e.user == user && e.kind.key == one.Key && !e.at.Before(one.First) {
						n, last = n+1, e.at
					}
				}
				// A line that was dropped and begun again at the same moment counts from its new beginning.
				if n < one.Count || !last.Equal(one.Last) {
					t.Fatalf("%q: the line %+v; there were %d, the last at %s", user, one, n, last)
				}
			}
			if len(lines) != len(r.Of) || len(r.Of) > maxUserRefusals || !slices.IsSortedFunc(r.Of, func(a, b Refusal) int { return b.Last.Compare(a.Last) }) {
				t.Fatalf("%q: the lines %+v", user, r.Of)
			}
			for _, e := range all {
				if line, ok := lines[e.kind]; e.user == user && e.at.After(r.Since) && (!ok || line.First.After(e.at)) {
					t.Fatalf("%q was refused %v at %s, after %s, and that is not there", user, e.kind, e.at, r.Since)
				}
			}
		}
		if dropped := j.dropped(); kept+dropped != int64(len(all)) {
			t.Fatalf("%d are kept and %d dropped of %d", kept, dropped, len(all))
		}
	})
}

func TestJournalAllocatesNothing(t *testing.T) {
	j := newJournal(1024, time.Unix(1, 0), true)
	users := make([]string, 4096)
	for i := range users {
		users[i] = fmt.Sprintf("user-%d", i)
	}
	now, i := time.Unix(2, 0), 0
	kind := kindOf("phone", flashsale.CodeSoldOut)
	note := func() { j.note(users[i%len(users)], kind, refusalTold{quantity: 1, at: now}); i++ }
	for range 5 * len(users) {
		note()
	}
	if n := testing.AllocsPerRun(len(users), note); n > 0.1 {
		t.Errorf("%v allocations for each refusal", n)
	}
}

// TestRefusalsOfAShopper: every refusal of a known sku is remembered, of this user and no other, and counted.
func TestRefusalsOfAShopper(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{skus: 2, total: 1})
	ctx := t.Context()
	first := s.reserve("ann")
	requests := []struct {
		r    ReserveRequest
		code flashsale.Code
	}{
		{s.request("bob"), flashsale.CodeSoldOut},
		{s.request("bob"), flashsale.CodeSoldOut},
		{ReserveRequest{Token: "forged", Key: phone, User: "bob", Quantity: 1}, flashsale.CodeInvalidToken},
		{ReserveRequest{Token: "forged", Key: flashsale.Key{Sale: "eleven", SKU: "none"}, User: "bob", Quantity: 1}, flashsale.CodeInvalidToken},
		{s.request("ann"), flashsale.CodePurchaseLimit},
		{s.request("ann"), flashsale.CodePurchaseLimit},
		{ReserveRequest{Token: s.token("ann"), Key: phone, User: "ann", Quantity: 2}, flashsale.CodeInvalidQuantity},
	}
	for i := range requests {
		if _, err := s.engine.Reserve(ctx, requests[i].r); !errors.Is(err, &flashsale.Error{Code: requests[i].code}) && flashsale.CodeOf(err) != requests[i].code {
			t.Fatalf("call %d: %v, want %s", i, err, requests[i].code)
		}
	}
	says := func(r Refusals) string {
		var lines []string
		for _, one := range r.Of {
			lines = append(lines, fmt.Sprintf("%s %s%s ×%d of %d", one.Key, one.Code, one.Detail, one.Count, one.Quantity))
		}
		slices.Sort(lines)
		return strings.Join(lines, ", ")
	}
	for user, want := range map[string]string{
		"bob": "eleven/phone-0 invalid_token ×1 of 1, eleven/phone-0 sold_out ×2 of 1",
		"ann": "eleven/phone-0 invalid_quantity ×1 of 2, eleven/phone-0 purchase_limit ×2 of 1",
		"eve": "",
	} {
		if got := s.engine.Refusals(ctx, "eleven", user); says(got) != want || got.Dropped != 0 || got.Instance == "" {
			t.Errorf("%s: %s, want %s", user, says(got), want)
		}
		if got := s.engine.Refusals(ctx, "twelve", user); len(got.Of) != 0 {
			t.Errorf("%s in another sale: %s", user, says(got))
		}
	}
	if first == "" {
		t.Error("ann has nothing")
	}
}

// TestRefusalsBeforeTheOpening: who asks too early for a token was refused as well.
func TestRefusalsBeforeTheOpening(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 1, opens: time.Now().Add(time.Hour), closes: time.Now().Add(2 * time.Hour)})
	if _, _, err := s.engine.Token(t.Context(), TokenRequest{Key: phone, User: "ann"}); flashsale.CodeOf(err) != flashsale.CodeNotOpen {
		t.Fatal(err)
	}
	if r := s.engine.Refusals(t.Context(), "", "ann"); len(r.Of) != 1 || r.Of[0].Detail != "not_yet" || r.Of[0].Count != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestAlarmsAreRemembered(t *testing.T) {
	t.Parallel()
	told := &recorder{}
	now := time.Unix(100, 0)
	var log bytes.Buffer
	plain := slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	b := newAlarmBook(told, func() time.Time { return now }, slog.New(plain))
	b.Alarm(AlarmDrift, "eleven/phone", true, 3, "they differ by 3")
	now = now.Add(time.Second)
	b.Alarm(AlarmDrift, "eleven/phone", true, 4, "they differ by 4")
	b.Alarm(AlarmSQL, "", true, 1, "silence")
	b.Alarm(AlarmLost, "eleven/phone", false, 0, "rebuilt")
	want := []AlarmOn{
		{Kind: AlarmSQL, Value: 1, Why: "silence", Since: time.Unix(101, 0)},
		{Kind: AlarmDrift, SKU: "eleven/phone", Value: 4, Why: "they differ by 4", Since: time.Unix(100, 0)},
	}
	if got := b.list(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	b.Alarm(AlarmSQL, "", false, 0, "")
	b.Alarm(AlarmDrift, "eleven/phone", false, 0, "")
	if got := b.list(); len(got) != 0 || told.count("alarm drift eleven/phone true") != 2 {
		t.Errorf("got %+v, told %v", got, told.lines)
	}
	const lines = `level=WARN msg="an alarm is on" alarm=drift sku=eleven/phone why="they differ by 3"
level=WARN msg="an alarm is on" alarm=sql why=silence
level=INFO msg="an alarm is over" alarm=sql
level=INFO msg="an alarm is over" alarm=drift sku=eleven/phone
`
	if log.String() != lines {
		t.Errorf("the log has:\n%s", log.String())
	}
}

func BenchmarkRefusal(b *testing.B) {
	for name, users := range map[string]int{"of 1,000 users": 1000, "of 131,072 users": 1 << 17} {
		for _, logged := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/logged=%t", name, logged), func(b *testing.B) {
				j := newJournal(1<<16, time.Unix(1, 0), logged)
				names := make([]string, users)
				for i := range names {
					names[i] = fmt.Sprintf("user-%d", i)
				}
				kind, told := kindOf("phone", flashsale.CodeSoldOut), refusalTold{quantity: 1, at: time.Unix(2, 0)}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					j.note(names[i%users], kind, told)
				}
			})
		}
	}
}
