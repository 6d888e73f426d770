package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
)

var errAway = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the log is away"}

// gatedLog is a log that can fail: before it has done what it was asked for, or after it.
type gatedLog struct {
	flashsale.RefusalLog
	mu            sync.Mutex
	before, after error
	appends       int
	entries       int
	slow          time.Duration
	once          bool // no page but the first is found
}

func newGatedLog(t testing.TB) *gatedLog {
	s := memstock.New(memstock.Config{})
	t.Cleanup(func() { _ = s.Close() })
	return &gatedLog{RefusalLog: s}
}

func (g *gatedLog) fail(before, after error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.after = before, after
}

func (g *gatedLog) counts() (appends, entries int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.appends, g.entries
}

func (g *gatedLog) AppendRefusals(ctx context.Context, entry []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.appends++; len(entry) > 0 {
		g.entries++
	}
	if g.before != nil {
		return g.before
	}
	return errors.Join(g.RefusalLog.AppendRefusals(ctx, entry), g.after)
}

func (g *gatedLog) FindRefusals(ctx context.Context, q flashsale.RefusalQuery) (flashsale.RefusalPage, error) {
	g.mu.Lock()
	before, slow := g.before, g.slow
	if g.once && q.Cursor != "" {
		before = errAway
	}
	g.mu.Unlock()
	if slow > 0 && !pause(ctx, slow) {
		return flashsale.RefusalPage{}, errAway
	}
	if before != nil {
		return flashsale.RefusalPage{}, before
	}
	return g.RefusalLog.FindRefusals(ctx, q)
}

// counter is an observer of the log.
type counter struct {
	nobody
	mu                sync.Mutex
	refusals, dropped int64
	codes             map[string]int
}

func (c *counter) RefusalsWritten(refusals, dropped int64, code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.codes == nil {
		c.codes = map[string]int{}
	}
	c.refusals, c.dropped = c.refusals+refusals, c.dropped+dropped
	c.codes[code]++
}

// chain is a shop whose instances share a log.
type chain struct {
	*shop
	log *gatedLog
}

func openChain(t testing.TB) *chain {
	return &chain{openShop(t, shopPlan{skus: 2, total: 1}), newGatedLog(t)}
}

// join is one more instance, which knows the skus.
func (f *chain) join(name string, change func(*Config)) *Engine {
	f.t.Helper()
	e := f.another(func(c *Config) {
		c.RefusalLog, c.Instance = f.log, name
		if change != nil {
			change(c)
		}
	})
	for _, key := range f.keys {
		if _, err := e.skus.get(context.Background(), key); err != nil {
			f.t.Fatal(err)
		}
	}
	return e
}

// refuse has an instance refuse a user, as often as told.
func refuse(e *Engine, user, code string, times int) {
	for range times {
		e.noteRefusal(&ReserveRequest{Key: phone, User: user, Quantity: 1}, &ReserveAnswer{}, &flashsale.Error{Code: flashsale.Code(code)})
	}
}

func write(t testing.TB, e *Engine) int64 {
	t.Helper()
	n, err := e.WriteRefusalsOnce(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lines are the refusals in short.
func lines(r Refusals) string {
	all := make([]string, 0, len(r.Of))
	for _, one := range r.Of {
		all = append(all, fmt.Sprintf("%s%s×%d", one.Code, one.Detail, one.Count))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func wantStory(t testing.TB, what string, r Refusals, want string) {
	t.Helper()
	if got := lines(r); got != want || !r.Fleet || len(r.Missing) > 0 || r.Dropped != 0 {
		t.Errorf("%s: %q, want %q: %+v", what, got, want, r)
	}
}

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

// TestRefusalsAreDroppedAloud: where the log is away for too long the memory stays what it is, and everybody hears how many are missing.
func TestRefusalsAreDroppedAloud(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	told := &counter{}
	const room, users = 64, 1000
	one, two := f.join("one", func(c *Config) { c.Observer, c.MaxRefusals = told, room }), f.join("two", nil)
	write(t, one)
	f.log.fail(errAway, nil)
	for i := range users {
		refuse(one, fmt.Sprint("user-", i), "sold_out", 2)
		if i%300 == 299 {
			_, _ = one.WriteRefusalsOnce(t.Context()) // what one entry takes is out of the way
		}
	}
	for i := range one.refusals.shards {
		s := &one.refusals.shards[i]
		if len(s.lines) > room/refusalShards+1 || cap(s.queue.lines) > 64 {
			t.Errorf("a shard has %d lines, and %d places in its queue", len(s.lines), cap(s.queue.lines))
		}
	}
	if r := one.Refusals(t.Context(), "", "nobody"); r.Fleet || r.Dropped == 0 {
		t.Errorf("while it is away: %+v", r)
	}
	f.log.fail(nil, nil)
	before := time.Now()
	written := write(t, one)
	if told.refusals != written || told.refusals+told.dropped != 2*users || told.dropped == 0 {
		t.Errorf("%d are written, told %+v", written, told)
	}
	for _, e := range []*Engine{one, two} {
		r := e.Refusals(t.Context(), "", "user-0")
		if !r.Fleet || r.Dropped != told.dropped || len(r.Missing) != 1 || r.Since.After(time.Now()) || r.Since.Before(before.Add(-time.Minute)) {
			t.Errorf("%s: %+v", e.cfg.Instance, r)
		}
		if late := e.Refusals(t.Context(), "", fmt.Sprint("user-", users-1)); lines(late) != "sold_out×2" {
			t.Errorf("%s of the last: %+v", e.cfg.Instance, late)
		}
	}
}

// TestWhatWasWrittenIsNotDropped: what gave way in memory is in the log, and counted once with what came after it.
func TestWhatWasWrittenIsNotDropped(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	one := f.join("one", func(c *Config) { c.MaxRefusals = refusalShards })
	write(t, one)
	for round := range 5 {
		for i := range 50 {
			refuse(one, fmt.Sprint("user-", i), "sold_out", 1)
			write(t, one)
		}
		for i := range 50 {
			wantStory(t, fmt.Sprint("user ", i, " in round ", round), one.Refusals(t.Context(), "", fmt.Sprint("user-", i)), fmt.Sprint("sold_out×", round+1))
		}
	}
}

// TestEveryRefusalIsAccountedFor: whatever is written when and gives way when, each refusal is in the log once, dropped and said to be so,
// or still waits.
func TestEveryRefusalIsAccountedFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(refusalShards*rapid.IntRange(1, 4).Draw(t, "limit of a shard"), time.Unix(0, 0), true)
		users := map[uint64]string{}
		for i := range 12 {
			users[refusalName(fmt.Sprint(i))] = fmt.Sprint(i)
		}
		noted, logged := map[string]int64{}, map[string]int64{}
		var all, dropped int64
		now := time.Unix(100, 0)
		drain := func() {
			var w entryWriter
			for j.drain(&w); w.n > 0; j.drain(&w) {
				_, records, err := readAll(string(w.entry(1, 1)))
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					if r.first > r.last || r.last > now.UnixMicro() || r.first < time.Unix(100, 0).UnixMicro() {
						t.Fatalf("%+v at %s", r, now)
					}
					if r.user == nobodysRefusals {
						dropped += r.count
					} else {
						logged[users[r.user]+r.kind.key.SKU] += r.count
					}
				}
			}
		}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			if now = now.Add(time.Millisecond); rapid.IntRange(0, 30).Draw(t, "step") == 0 {
				drain()
				continue
			}
			user, sku := fmt.Sprint(rapid.IntRange(0, 11).Draw(t, "user")), fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "sku"))
			j.note(user, kindOf(sku, flashsale.CodeSoldOut), refusalTold{at: now})
			noted[user+sku]++
			all++
		}
		drain()
		drain()
		for what, n := range logged {
			if n > noted[what] {
				t.Fatalf("%s was refused %d times, and the log has %d", what, noted[what], n)
			}
			all -= n
		}
		if left := j.untold(); all != dropped || left.count != 0 {
			t.Fatalf("%d are nowhere, and %d are said to be dropped, %d not yet", all, dropped, left.count)
		}
		for i := range j.shards {
			if n := j.shards[i].queue.len(); n != 0 {
				t.Fatalf("%d lines wait", n)
			}
		}
	})
}

// TestRefusalsRun: about once a second there is one call, none where there is nothing to say, more where much waits; while the log is
// away it is asked ever more rarely; what is left when all ends is written.
func TestRefusalsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openChain(t)
		one, two := f.join("one", func(c *Config) { c.MaxRefusals = 160 }), f.join("two", nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); one.runRefusals(ctx) }()
		synctest.Wait()
		expect := func(what string, appends, entries int) {
			t.Helper()
			synctest.Wait()
			if a, e := f.log.counts(); a != appends || e != entries {
				t.Errorf("%s: %d calls and %d entries, want %d and %d", what, a, e, appends, entries)
			}
		}
		expect("at the beginning", 1, 0)
		time.Sleep(10 * time.Second)
		expect("with nothing to say", 1, 0)
		for range 1000 {
			refuse(one, "bob", "sold_out", 1)
			time.Sleep(5 * time.Millisecond)
		}
		expect("with five seconds of refusals", 6, 5)
		wantStory(t, "the other's", two.Refusals(ctx, "", "bob"), "sold_out×1000")
		time.Sleep(touchRefusals + time.Second)
		expect("after a minute of nothing", 7, 5)
		for i := range 160 {
			refuse(one, fmt.Sprint("user-", i), "sold_out", 1)
			synctest.Wait()
		}
		if a, _ := f.log.counts(); a < 8 || a > 8+40 || one.refusals.untold().count > 0 {
			t.Errorf("a flood: %d calls, %+v", a, one.refusals.untold())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		f.log.fail(errAway, nil)
		before, _ := f.log.counts()
		for i := range 400 { // full all the time
			refuse(one, fmt.Sprint("user-", i), "busy", 1)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if a, _ := f.log.counts(); a-before > 20 || a-before < 10 {
			t.Errorf("in 400 s it was asked %d times", a-before)
		}
		f.log.fail(nil, nil)
		time.Sleep(time.Minute)
		refuse(one, "last", "sold_out", 3)
		cancel()
		<-done
		wantLines := two.Refusals(t.Context(), "", "last")
		if lines(wantLines) != "sold_out×3" {
			t.Errorf("the last: %+v", wantLines)
		}
		if loss := one.refusals.untold(); loss.count != 0 {
			t.Errorf("%d are not told of", loss.count)
		}
	})
}

// TestStoryHasLittleTime: what was not looked at in time is not said to be complete.
func TestStoryHasLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openChain(t)
		one, two := f.join("one", nil), f.join("two", nil)
		write(t, one)
		began := time.Now()
		for i := range 3000 { // six pages
			refuse(one, fmt.Sprint("u", i), "busy", 1)
			if i%1000 == 0 {
				refuse(one, "bob", "sold_out", 1)
			}
			write(t, one)
			time.Sleep(time.Second)
		}
		wantStory(t, "with time", two.Refusals(t.Context(), "", "bob"), "sold_out×3")
		f.log.mu.Lock()
		f.log.slow = 1100 * time.Millisecond // two pages in three seconds
		f.log.mu.Unlock()
		asked := time.Now()
		r := two.Refusals(t.Context(), "", "bob")
		if took := time.Since(asked); took > storyTime {
			t.Errorf("it took %s", took)
		}
		if lines(r) != "sold_out×1" || !r.Fleet || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "no time") || r.Since.Before(began.Add(1900*time.Second)) {
			t.Errorf("got %+v", r)
		}
		f.log.mu.Lock()
		f.log.slow, f.log.once = 0, true
		f.log.mu.Unlock()
		if r = two.Refusals(t.Context(), "", "bob"); lines(r) != "" || !r.Fleet || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "could not be read") || !strings.HasSuffix(r.Missing[0], errAway.Message) {
			t.Errorf("of a log that fails: %+v", r)
		}
		f.log.mu.Lock()
		f.log.slow = time.Hour
		f.log.mu.Unlock()
		if r = one.Refusals(t.Context(), "", "bob"); lines(r) != "sold_out×3" || r.Fleet || len(r.Missing) != 1 {
			t.Errorf("with none: %+v", r)
		}
	})
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
	one.MissTurnedAway()
	one.MissTurnedAway()
	if r = one.Refusals(t.Context(), "eleven", "bob"); r.Dropped != 2 || len(r.Missing) != 1 {
		t.Errorf("before it is written: %+v", r)
	}
	write(t, one)
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
