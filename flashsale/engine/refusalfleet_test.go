package engine

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestFleetTellsTheSame: whichever instance is asked, the story is the same, and it outlives those who refused.
func TestFleetTellsTheSame(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	ctx := t.Context()
	one, two := f.join("one", nil), f.join("two", nil)
	write(t, one) // begins the log
	refuse(one, "bob", "sold_out", 2)
	refuse(two, "bob", "sold_out", 3)
	refuse(two, "bob", "purchase_limit", 1)
	refuse(two, "eve", "invalid_token", 7)
	wantStory(t, "before anything is written", one.Refusals(ctx, "eleven", "bob"), "sold_out×2")
	if n := write(t, one) + write(t, two); n != 13 {
		t.Errorf("%d were written", n)
	}
	for _, e := range []*Engine{one, two} {
		wantStory(t, e.cfg.Instance+" of bob", e.Refusals(ctx, "eleven", "bob"), "purchase_limit×1 sold_out×5")
		wantStory(t, e.cfg.Instance+" of eve", e.Refusals(ctx, "", "eve"), "invalid_token×7")
		wantStory(t, e.cfg.Instance+" of ann", e.Refusals(ctx, "", "ann"), "")
		wantStory(t, e.cfg.Instance+" of another sale", e.Refusals(ctx, "twelve", "bob"), "")
	}
	refuse(one, "bob", "sold_out", 1)
	wantStory(t, "with what is not written", one.Refusals(ctx, "", "bob"), "purchase_limit×1 sold_out×6")
	wantStory(t, "without it", two.Refusals(ctx, "", "bob"), "purchase_limit×1 sold_out×5")
	if n := write(t, one); n != 1 {
		t.Errorf("%d were written", n)
	}
	again := f.join("one", nil) // as after a restart
	wantStory(t, "after a restart", again.Refusals(ctx, "", "bob"), "purchase_limit×1 sold_out×6")
	if n := write(t, one) + write(t, two); n != 0 {
		t.Errorf("%d were written twice", n)
	}
	for _, user := range []string{"\x00", "\xff\xfe", strings.Repeat("u", flashsale.MaxUser), "a ", "a"} {
		refuse(one, user, "busy", 1)
		write(t, one)
		wantStory(t, fmt.Sprintf("%q", user), two.Refusals(ctx, "", user), "busy×1")
	}
}

// TestFleetTimes: first and last are those of all, what the last call asked for and was told is that of the latest.
func TestFleetTimes(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	now := time.Now()
	at := func(d time.Duration) func(*Config) {
		return func(c *Config) { c.Now = func() time.Time { return now.Add(d) } }
	}
	note := func(e *Engine, quantity int64, retry time.Duration) {
		e.noteRefusal(&ReserveRequest{Key: phone, User: "bob", Quantity: quantity}, &ReserveAnswer{RetryAfter: retry}, &flashsale.Error{Code: flashsale.CodeBusy})
		write(t, e)
	}
	early, late, asked := f.join("early", at(-time.Minute)), f.join("late", at(time.Minute)), f.join("asked", at(0))
	note(late, 3, 2*time.Second)
	note(early, 2, time.Second)
	note(asked, 1, 0)
	r := asked.Refusals(t.Context(), "", "bob")
	if len(r.Of) != 1 {
		t.Fatalf("got %+v", r)
	}
	one := r.Of[0]
	if d := one.First.Sub(now) + time.Minute; d.Abs() > time.Millisecond || one.Last.Sub(one.First) != 2*time.Minute || one.Count != 3 || one.Quantity != 3 || one.RetryAfter != 2*time.Second {
		t.Errorf("got %+v", one)
	}
}

// TestLogIsAway: what could not be written is kept and written later, once; stories say what they lack.
func TestLogIsAway(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	ctx := t.Context()
	told := &counter{}
	one, two := f.join("one", func(c *Config) { c.Observer = told }), f.join("two", nil)
	write(t, one)
	refuse(two, "bob", "sold_out", 2)
	write(t, two)
	f.log.fail(errAway, nil)
	for range 3 {
		refuse(one, "bob", "sold_out", 1)
		if n, err := one.WriteRefusalsOnce(ctx); n != 0 || !errors.Is(err, errAway) {
			t.Fatalf("%d, %v", n, err)
		}
	}
	r := one.Refusals(ctx, "", "bob")
	if lines(r) != "sold_out×3" || r.Fleet || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "the log is away") {
		t.Errorf("while it is away: %+v", r)
	}
	f.log.fail(nil, errAway) // it is written, and nobody hears of it
	if n, err := one.WriteRefusalsOnce(ctx); n != 0 || !errors.Is(err, errAway) {
		t.Fatalf("%d, %v", n, err)
	}
	if r = one.Refusals(ctx, "", "bob"); lines(r) != "sold_out×5" || !r.Fleet || len(r.Missing) != 1 {
		t.Errorf("when it can be read again: %+v", r)
	}
	f.log.fail(nil, nil)
	if n := write(t, one); n != 3 {
		t.Errorf("%d were written", n)
	}
	for _, e := range []*Engine{one, two, f.join("three", nil)} {
		wantStory(t, "afterwards "+e.cfg.Instance, e.Refusals(ctx, "", "bob"), "sold_out×5")
	}
	if told.refusals != 3 || told.dropped != 0 || told.codes["unavailable"] != 4 || told.codes[""] != 3 {
		t.Errorf("told %+v", told)
	}
}

// TestLogOfAnotherVersion: what cannot be read is said to be there.
func TestLogOfAnotherVersion(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	one := f.join("one", nil)
	refuse(one, "bob", "sold_out", 1)
	write(t, one)
	for _, entry := range []string{"\x02 of tomorrow" + needle(refusalName("bob")), "\x01" + needle(refusalName("bob")), "\x02 of somebody else"} {
		if err := f.log.AppendRefusals(t.Context(), []byte(entry)); err != nil {
			t.Fatal(err)
		}
	}
	r := f.join("two", nil).Refusals(t.Context(), "", "bob")
	if lines(r) != "sold_out×1" || !r.Fleet || len(r.Missing) != 1 || !strings.HasPrefix(r.Missing[0], "2 entries") {
		t.Errorf("got %+v", r)
	}
}

// TestManyKinds: a story is bounded, and says that there is more.
func TestManyKinds(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	now := time.Unix(1_800_000_000, 0)
	one := f.join("one", func(c *Config) { c.Now = func() time.Time { return now } })
	for i := range storyRefusals + 50 {
		now = now.Add(time.Second)
		refuse(one, "bob", fmt.Sprint("code-", i), 1)
		write(t, one)
	}
	r := f.join("two", nil).Refusals(t.Context(), "", "bob")
	if len(r.Of) != storyRefusals || string(r.Of[0].Code) != fmt.Sprint("code-", storyRefusals+49) || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "50 more") {
		t.Errorf("%d, the first %+v, missing %q", len(r.Of), r.Of[0], r.Missing)
	}
}

// TestTurnedAway: who was denied before the sale has that in the story, if the sku is known, and nothing is allocated for it.
func TestTurnedAway(t *testing.T) {
	f := openChain(t)
	one := f.join("one", nil)
	write(t, one)
	away := TurnedAway{Key: phone, User: "bob", Rule: "tries", Code: "limited", Detail: "token", RetryAfter: 90 * time.Second}
	one.NoteTurnedAway(&away)
	if n := testing.AllocsPerRun(100, func() { one.NoteTurnedAway(&away) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	ofSale := TurnedAway{Key: flashsale.Key{Sale: "eleven"}, User: "bob", Rule: "list:bots", Code: "list_denied", Detail: "sale"}
	one.NoteTurnedAway(&ofSale)
	for _, unknown := range []TurnedAway{
		{Key: flashsale.Key{Sale: "eleven", SKU: "none"}, User: "bob"}, {Key: flashsale.Key{Sale: "none"}, User: "bob"}, {User: "bob"},
		{Key: phone}, {Key: phone, User: strings.Repeat("u", flashsale.MaxUser+1)},
	} {
		one.NoteTurnedAway(&unknown)
	}
	for _, key := range []flashsale.Key{phone, {Sale: "eleven"}, {Sale: "eleven", SKU: "made up"}, {Sale: "made up"}} {
		one.MissTurnedAway(key)
	}
	if r := one.Refusals(t.Context(), "eleven", "bob"); r.Dropped != 2 || len(r.Missing) != 1 {
		t.Errorf("before it is written: %+v", r)
	}
	one.skus.forget(phone)
	one.NoteTurnedAway(&away)
	one.NoteTurnedAway(&ofSale) // its other sku is known
	one.skus.forget(f.keys[1])
	one.NoteTurnedAway(&ofSale)
	write(t, one)
	r := f.join("two", nil).Refusals(t.Context(), "eleven", "bob")
	got := map[string]Refusal{}
	for _, one := range r.Of {
		one.First, one.Last = time.Time{}, time.Time{}
		got[one.Rule] = one
	}
	want := map[string]Refusal{
		"tries":     {Key: phone, Code: "limited", Detail: "token", Rule: "tries", RetryAfter: 90 * time.Second, Count: 102},
		"list:bots": {Key: flashsale.Key{Sale: "eleven"}, Code: "list_denied", Detail: "sale", Rule: "list:bots", Count: 2},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	if r = f.join("two", nil).Refusals(t.Context(), "eleven", "ann"); r.Dropped != 2 || len(r.Missing) != 1 {
		t.Errorf("got %+v", r)
	}
}

// TestRefusalsWithoutALog: an instance alone knows its own, and says so.
func TestRefusalsWithoutALog(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 1})
	s.token("bob") // the sku is known now
	refuse(s.engine, "bob", "sold_out", 2)
	if n, err := s.engine.WriteRefusalsOnce(t.Context()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if r := s.engine.Refusals(t.Context(), "", "bob"); lines(r) != "sold_out×2" || r.Fleet || len(r.Missing) > 0 {
		t.Errorf("got %+v", r)
	}
	if one := s.another(func(c *Config) { c.Stock = s.stock }); one.cfg.RefusalLog != flashsale.RefusalLog(s.stock) {
		t.Error("a stock that is a log is not taken for one")
	}
}
