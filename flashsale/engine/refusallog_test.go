package engine

import (
	"context"
	"errors"
	"fmt"
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
		// No refusal comes at the moment of a look of the writer, at which whoever is quicker would come first.
		time.Sleep(10*time.Second + 302*time.Millisecond)
		expect("with nothing to say", 1, 0)
		for range 1000 {
			refuse(one, "bob", "sold_out", 1)
			time.Sleep(5 * time.Millisecond)
		}
		expect("with five seconds of refusals", 6, 5)
		time.Sleep(time.Second)
		expect("with what was left", 7, 6)
		wantStory(t, "the other's", two.Refusals(ctx, "", "bob"), "sold_out×1000")
		time.Sleep(touchRefusals + time.Second)
		expect("after a minute of nothing", 8, 6)
		for i := range 160 {
			refuse(one, fmt.Sprint("user-", i), "sold_out", 1)
			synctest.Wait()
		}
		if a, _ := f.log.counts(); a < 9 || a > 9+40 || one.refusals.untold().count > 0 {
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
