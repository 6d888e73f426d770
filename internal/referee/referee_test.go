package referee_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/referee"
	"github.com/headgate-io/headgate/memstore"
)

func parse(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func judge(t *testing.T, limit headgate.Limit, terms referee.Terms) *referee.Judge {
	t.Helper()
	j, err := referee.New(limit, terms)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// at returns microseconds after a day's beginning.
func at(d time.Duration) int64 {
	return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).Add(d).UnixMicro() // a Monday
}

// TestEdges: the last that fits fits, and a microsecond or a unit more does not.
func TestEdges(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	type admission struct {
		at    time.Duration
		units int64
		over  bool
	}
	for name, c := range map[string]struct {
		limit string
		terms referee.Terms
		all   []admission
	}{
		"bucket":                     {"token_bucket 10/s burst=3", referee.Terms{}, []admission{{0, 3, false}, {100*time.Millisecond - us, 1, true}, {100 * time.Millisecond, 1, false}, {100 * time.Millisecond, 1, true}}},
		"bucket of thirds":           {"token_bucket 3/s burst=1", referee.Terms{}, []admission{{0, 1, false}, {333_333 * us, 1, true}, {333_334 * us, 1, false}, {666_667 * us, 1, true}, {666_668 * us, 1, false}}},
		"bucket is full at its most": {"token_bucket 10/s burst=3", referee.Terms{}, []admission{{0, 1, false}, {time.Hour, 3, false}, {time.Hour, 1, true}}},
		"bucket with extra":          {"token_bucket 10/s burst=3", referee.Terms{Extra: 2}, []admission{{0, 5, false}, {0, 1, true}}},
		"bucket leased":              {"token_bucket 10/s burst=3", referee.Terms{Early: time.Second}, []admission{{0, 13, false}, {0, 1, true}, {100 * time.Millisecond, 1, false}}},
		"bucket of nothing":          {"token_bucket 0/s burst=3", referee.Terms{}, []admission{{0, 1, true}}},
		"window":                     {"fixed_window 2/1s", referee.Terms{}, []admission{{0, 2, false}, {time.Second - us, 1, true}, {time.Second, 2, false}, {time.Second, 1, true}}},
		"window with extra":          {"fixed_window 2/1s", referee.Terms{Extra: 1}, []admission{{0, 3, false}, {0, 1, true}}},
		"day in Shanghai":            {"fixed_window 1/day zone=Asia/Shanghai", referee.Terms{}, []admission{{16*time.Hour - us, 1, false}, {16 * time.Hour, 1, false}, {40*time.Hour - us, 1, true}, {40 * time.Hour, 1, false}}},
		"week":                       {"fixed_window 1/week", referee.Terms{}, []admission{{-us, 1, false}, {0, 1, false}, {7*24*time.Hour - us, 1, true}, {7 * 24 * time.Hour, 1, false}}},
		"month":                      {"fixed_window 1/month", referee.Terms{}, []admission{{0, 1, false}, {27*24*time.Hour - us, 1, true}, {27 * 24 * time.Hour, 1, false}}},
		"hour":                       {"fixed_window 1/hour", referee.Terms{}, []admission{{0, 1, false}, {time.Hour - us, 1, true}, {time.Hour, 1, false}}},
		"log":                        {"sliding_log 2/1s", referee.Terms{}, []admission{{0, 1, false}, {us, 1, false}, {time.Second - us, 1, true}, {time.Second, 1, false}, {time.Second, 1, true}, {time.Second + us, 1, false}}},
		"one cell":                   {"sliding_window 10/1s", referee.Terms{}, []admission{{0, 10, false}, {time.Second, 1, true}, {1100*time.Millisecond - us, 1, true}, {1100 * time.Millisecond, 1, false}, {1100 * time.Millisecond, 1, true}, {1200 * time.Millisecond, 1, false}}},
		"two cells":                  {"sliding_window 4/2s cells=2", referee.Terms{}, []admission{{0, 4, false}, {2*time.Second - us, 1, true}, {2250*time.Millisecond - us, 1, true}, {2250 * time.Millisecond, 1, false}}},
		"queue by its capacity":      {"leaky_bucket 10/s capacity=2", referee.Terms{}, []admission{{0, 2, false}, {100*time.Millisecond - us, 1, true}, {100 * time.Millisecond, 1, false}}},
		"queue by its wait":          {"leaky_bucket 10/s max_wait=100ms", referee.Terms{}, []admission{{0, 2, false}, {100*time.Millisecond - us, 1, true}, {100 * time.Millisecond, 1, false}}},
		"concurrency by its ttl":     {"concurrency 2 ttl=1s", referee.Terms{}, []admission{{0, 1, false}, {us, 1, false}, {time.Second - us, 1, true}, {time.Second, 1, false}}},
		"nothing asked":              {"token_bucket 0/s burst=3", referee.Terms{}, []admission{{0, 0, false}}},
		"time that goes back":        {"token_bucket 10/s burst=1", referee.Terms{}, []admission{{time.Second, 1, false}, {0, 1, true}, {1100 * time.Millisecond, 1, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := judge(t, parse(t, c.limit), c.terms)
			var want referee.Sum
			for _, a := range c.all {
				over := j.Admit(referee.Admission{At: at(a.at), Units: a.units})
				if over != a.over {
					t.Errorf("%d at %s: over is %v", a.units, a.at, over)
				}
				want.Admitted += a.units
				if a.over {
					want.Over += a.units
				}
			}
			got := j.Sum()
			if got.Admitted != want.Admitted || got.Over != want.Over {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got.Admitted-got.Over > j.Most() && parse(t, c.limit).Algorithm() != headgate.AlgConcurrency {
				t.Errorf("%d fit, and at most %d do", got.Admitted-got.Over, j.Most())
			}
		})
	}
}

func TestConcurrencyReleased(t *testing.T) {
	t.Parallel()
	j := judge(t, parse(t, "concurrency 1 ttl=60s"), referee.Terms{})
	for _, c := range []struct {
		at, until time.Duration
		over      bool
	}{{0, time.Second, false}, {time.Second - time.Microsecond, 2 * time.Second, true}, {time.Second, 2 * time.Second, false}} {
		if over := j.Admit(referee.Admission{At: at(c.at), Until: at(c.until), Units: 1}); over != c.over {
			t.Errorf("at %s: over is %v", c.at, over)
		}
	}
}

func TestUsed(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string][3]int64{ // right after 3 at 0, after 1 s, after a day and a half
		"token_bucket 2/3s burst=5":     {3, 3, 0},
		"fixed_window 5/1m":             {3, 3, 0},
		"fixed_window 5/day":            {3, 3, 0},
		"sliding_log 5/1s":              {3, 0, 0},
		"sliding_window 5/2s cells=1":   {3, 3, 0},
		"leaky_bucket 2/3s capacity=5":  {3, 3, 0},
		"concurrency 5 ttl=1s":          {3, 0, 0},
		"sliding_window 5/10s cells=10": {3, 3, 0},
	} {
		j := judge(t, parse(t, limit), referee.Terms{})
		if got := j.Used(at(0)); got != 0 {
			t.Errorf("%s: %d before anything", limit, got)
		}
		j.Admit(referee.Admission{At: at(0), Units: 3})
		for i, d := range []time.Duration{0, time.Second, 36 * time.Hour} {
			if got := j.Used(at(d)); got != want[i] {
				t.Errorf("%s after %s: %d, want %d", limit, d, got, want[i])
			}
		}
	}
}

var limits = []string{
	"token_bucket 7/s burst=5", "token_bucket 3/7s burst=2", "token_bucket 0.3/s burst=4", "fixed_window 5/1s", "fixed_window 9/hour",
	"sliding_log 6/2s", "sliding_window 10/3s cells=3", "sliding_window 7/1s", "leaky_bucket 5/s capacity=4", "leaky_bucket 5/s max_wait=700ms",
}

// trace lets a store decide at random times, and returns what it admitted and what it denied.
func trace(t *testing.T, limit headgate.Limit, seed uint64) (admitted, denied []referee.Admission) {
	t.Helper()
	store := memstore.New(memstore.Config{})
	defer store.Close()
	dice := rand.New(rand.NewPCG(seed, 1))
	now := time.UnixMicro(at(0) - 3_000_000)
	for range 400 {
		now = now.Add(time.Duration(dice.ExpFloat64() * float64(100*time.Millisecond))).Truncate(time.Microsecond)
		c := headgate.One("s", "k", limit)
		c.Cost = 1 + int64(dice.IntN(2))
		d, err := headgate.Take(t.Context(), store.At(now), c)
		if err != nil {
			t.Fatal(err)
		}
		a := referee.Admission{At: now.UnixMicro(), Units: c.Cost}
		if !d.Allowed {
			denied = append(denied, a)
			continue
		}
		admitted = append(admitted, a)
		if got, own := referee.Moment(limit, &d.Outcomes[0], now, now); got != now.UnixMicro() || !own {
			t.Errorf("%v: the outcome of %d says %d, %v", limit, now.UnixMicro(), got, own)
		}
	}
	return admitted, denied
}

// TestAgainstAStore: a store that keeps to its limits is found to, and with one of its denials turned into an admission that
// one is found.
func TestAgainstAStore(t *testing.T) {
	t.Parallel()
	for i, text := range limits {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			limit := parse(t, text)
			admitted, denied := trace(t, limit, uint64(i))
			if len(admitted) < 9 || len(denied) < 20 {
				t.Fatalf("%d admitted and %d denied", len(admitted), len(denied))
			}
			entry := referee.Entry{Limit: limit, Admissions: admitted}
			j, err := entry.Judge(referee.Terms{}, nil)
			if err != nil || j.Sum().Over != 0 || j.Sum().Admitted > j.Most() {
				t.Fatalf("%+v of at most %d, %v", j.Sum(), j.Most(), err)
			}
			for _, one := range denied {
				with := referee.Entry{Limit: limit, Admissions: insert(admitted, one)}
				j, err := with.Judge(referee.Terms{}, nil)
				if err != nil || j.Sum().Over == 0 {
					t.Fatalf("%d more at %d is not found: %v", one.Units, one.At, err)
				}
				if j, _ = with.Judge(referee.Terms{Extra: 2 * one.Units}, nil); j.Sum().Over != 0 {
					t.Fatalf("%d more at %d is over a limit with room for it", one.Units, one.At)
				}
			}
		})
	}
}

func insert(all []referee.Admission, one referee.Admission) []referee.Admission {
	i := slices.IndexFunc(all, func(a referee.Admission) bool { return a.At > one.At })
	if i < 0 {
		i = len(all)
	}
	return slices.Insert(slices.Clone(all), i, one)
}

func TestMoment(t *testing.T) {
	t.Parallel()
	began := time.UnixMicro(at(0) - 100_000)
	ended := time.UnixMicro(at(0) + 100_000)
	mark := func(charged, mark int64, reset time.Duration) headgate.Outcome {
		return headgate.Outcome{Receipt: headgate.Receipt{Charged: charged, Mark: mark}, ResetAfter: reset}
	}
	for name, c := range map[string]struct {
		limit   string
		outcome headgate.Outcome
		at      int64
		own     bool
	}{
		"bucket":             {"token_bucket 10/s", mark(1, at(50*time.Millisecond), time.Second/10), at(-50 * time.Millisecond), true},
		"window":             {"fixed_window 1/1s", mark(1, at(-time.Second), 1), at(0), true},
		"log before":         {"sliding_log 1/1s", mark(1, at(-200*time.Millisecond), time.Second), at(-100 * time.Millisecond), false},
		"log after":          {"sliding_log 1/1s", mark(1, at(200*time.Millisecond), time.Second), at(100 * time.Millisecond), false},
		"nothing charged":    {"sliding_log 1/1s", mark(0, at(0), time.Second), at(100 * time.Millisecond), false},
		"old calendar day":   {"fixed_window 1/day", mark(1, at(-24*time.Hour), 0), at(-100 * time.Millisecond), true},
		"new calendar day":   {"fixed_window 1/day", mark(1, at(0), 24*time.Hour), at(0), true},
		"calendar day ahead": {"fixed_window 1/day", mark(1, at(24*time.Hour), 0), at(100 * time.Millisecond), false},
		"concurrency":        {"concurrency 1 ttl=1s", mark(1, 0, time.Second), at(100 * time.Millisecond), false},
	} {
		got, own := referee.Moment(parse(t, c.limit), &c.outcome, began, ended)
		if got != c.at || own != c.own {
			t.Errorf("%s: got %d (%v), want %d (%v)", name, got-at(0), own, c.at-at(0), c.own)
		}
	}
}

func TestBook(t *testing.T) {
	t.Parallel()
	limit := parse(t, "sliding_log 2/1s")
	book := referee.Book{Most: 5}
	for _, a := range []struct {
		slot, key string
		at        int
	}{{"b", "x", 2}, {"a", "y", 0}, {"b", "x", 1}, {"a", "x", 3}, {"b", "x", 3}} {
		book.Add(a.slot, a.key, limit, referee.Admission{At: at(time.Duration(a.at) * time.Millisecond), Units: 1, By: a.at})
	}
	all, err := book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		j, err := e.Judge(referee.Terms{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Slot, e.Key, j.Sum()))
	}
	if want := []string{"ax{1 0 1}", "ay{1 0 1}", "bx{3 1 2}"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	j, err := all[2].Judge(referee.Terms{}, func(a referee.Admission) bool { return a.By != 2 })
	if err != nil || j.Sum() != (referee.Sum{Admitted: 2, Peak: 2}) {
		t.Errorf("a part of them: %+v, %v", j.Sum(), err)
	}
	book.Add("c", "x", limit, referee.Admission{})
	if _, err := book.Entries(); err == nil {
		t.Error("a book that is full says nothing of it")
	}
}

func TestUnknownLimit(t *testing.T) {
	t.Parallel()
	if _, err := referee.New(nil, referee.Terms{}); err == nil {
		t.Error("a limit that is none is judged")
	}
}
