package stocktest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// OpenRefusals makes an empty log of refusals whose clock is now, and that may take so many bytes, 0 for as many as by default. It
// closes it when t ends, and is called once for each test.
type OpenRefusals func(t *testing.T, now func() time.Time, bytes int) flashsale.RefusalLog

// ExerciseRefusals holds a log of refusals to the contract in flashsale/refusals.go. Times are compared to the millisecond.
func ExerciseRefusals(t *testing.T, open OpenRefusals) {
	for name, run := range map[string]func(*testing.T, OpenRefusals){
		"find": refusalsFound, "pages": refusalsPaged, "age": refusalsAge, "bytes": refusalsBytes, "began": refusalsBegan,
		"clock": refusalsClock, "hostile": refusalsHostile, "parallel": refusalsParallel,
	} {
		t.Run(name, func(t *testing.T) { run(t, open) })
	}
}

// ledger is a test's place at a log.
type ledger struct {
	*testing.T
	log   flashsale.RefusalLog
	clock *clock
}

func newLedger(t *testing.T, open OpenRefusals, bytes int) *ledger {
	t.Helper()
	c := &clock{}
	return &ledger{t, open(t, c.now, bytes), c}
}

func (l *ledger) append(entry string) {
	l.Helper()
	if err := l.log.AppendRefusals(l.Context(), []byte(entry)); err != nil {
		l.Fatalf("append %.40q: %v", entry, err)
	}
}

// walk reads the whole log, and returns the entries, the pages, and the last page, with what all of them have reached.
func (l *ledger) walk(needles ...string) (found []string, pages int, last flashsale.RefusalPage) {
	l.Helper()
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		p, err := l.log.FindRefusals(l.Context(), flashsale.RefusalQuery{Cursor: cursor, Needles: needles})
		if err != nil {
			l.Fatalf("page %d: %v", pages, err)
		}
		if p.Reached.IsZero() {
			p.Reached = last.Reached
		}
		found, cursor, last = append(found, p.Entries...), p.Cursor, p
	}
	return found, pages, last
}

// since fails the test unless a log reaches back to a moment, to the millisecond and not beyond it.
func (l *ledger) since(what string, got, want time.Time) {
	l.Helper()
	if late := got.Sub(want); late < 0 || late > time.Millisecond {
		l.Errorf("%s: it reaches back to %s, want %s", what, got, want)
	}
}

func same(got []string, want ...string) bool {
	return fmt.Sprintf("%q", got) == fmt.Sprintf("%q", want)
}

func refusalsFound(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	a, b, odd := "aaaaaaaa", "bbbbbbbb", "\x00\xff%.*\r\n["
	entries := []string{"1" + a, "2" + b + "!", a + b + "3", odd, "5" + odd + odd, "6nothing", a}
	for _, e := range entries {
		l.append(e)
		l.clock.advance(time.Millisecond)
	}
	for _, c := range []struct {
		needles []string
		want    []string
	}{
		{[]string{a}, []string{a, a + b + "3", "1" + a}},
		{[]string{a, b}, []string{a, a + b + "3", "2" + b + "!", "1" + a}},
		{[]string{odd}, []string{"5" + odd + odd, odd}},
		{[]string{"aaaaaaab", "AAAAAAAA"}, []string{a + b + "3"}},
		{[]string{"cccccccc"}, nil},
	} {
		if got, _, _ := l.walk(c.needles...); !same(got, c.want...) {
			t.Errorf("looking for %q finds %q, want %q", c.needles, got, c.want)
		}
	}
}

func refusalsPaged(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	needle := "needle.."
	var want []string
	for i := range 80 {
		e := fmt.Sprintf("%02d%s%s", i, needle, strings.Repeat("\xee", flashsale.MaxRefusalEntry-10))
		l.append(e)
		l.clock.advance(time.Second)
		want = append([]string{e}, want...)
	}
	began := l.clock.now()
	got, pages, last := l.walk(needle)
	if !same(got, want...) || pages < 2 || pages > 80 {
		t.Errorf("%d entries of %d in %d pages", len(got), len(want), pages)
	}
	if !last.Reached.Equal(start()) {
		t.Errorf("the oldest is said to be of %s", last.Reached)
	}
	l.since("a whole log", last.Since, start())
	for i := range 1200 { // many small ones are paged as well
		l.append(fmt.Sprint(i))
	}
	if got, pages, _ = l.walk("1199abcd", needle); len(got) != 80 || pages < 4 {
		t.Errorf("%d entries in %d pages", len(got), pages)
	}
	first, err := l.log.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{needle}})
	if err != nil || first.Cursor == "" || first.Reached.Before(began) {
		t.Errorf("the first page: %+v, %v", first, err)
	}
	l.append("later" + needle) // what comes meanwhile is not in what follows
	second, err := l.log.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{"later" + needle[:3]}, Cursor: first.Cursor})
	if err != nil || len(second.Entries) > 0 {
		t.Errorf("the second page: %+v, %v", second, err)
	}
}

func refusalsAge(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	l.append("old.....")
	l.clock.advance(time.Hour)
	l.append("new.....")
	l.clock.advance(flashsale.RefusalsFor - time.Hour - time.Millisecond)
	l.append("")
	if got, _, p := l.walk("old.....", "new....."); len(got) != 2 {
		t.Errorf("a millisecond before their time there are %q", got)
	} else {
		l.since("before", p.Since, start())
	}
	l.clock.advance(time.Millisecond)
	l.append("") // an empty one removes too, and is none
	got, _, p := l.walk("old.....", "new.....")
	if !same(got, "new.....") {
		t.Errorf("at the time of the first there are %q", got)
	}
	l.since("after", p.Since, start())
	l.clock.advance(2 * time.Hour)
	l.append("third...")
	got, _, p = l.walk("old.....", "new.....", "third...")
	if !same(got, "third...") {
		t.Errorf("later there are %q", got)
	}
	l.since("later", p.Since, start().Add(time.Hour))
}

func refusalsBytes(t *testing.T, open OpenRefusals) {
	const most = 40_000
	l := newLedger(t, open, most)
	needle := "needle.."
	for i := range 300 {
		l.append(fmt.Sprintf("%03d%s%s", i, needle, strings.Repeat("x", 989)))
		l.clock.advance(time.Second)
	}
	got, _, p := l.walk(needle)
	if n := len(got); n < most/2000 || n*1000 > most {
		t.Fatalf("%d entries of 1000 bytes in %d", n, most)
	}
	for i, e := range got {
		if e[:3] != fmt.Sprintf("%03d", 299-i) {
			t.Fatalf("entry %d is %.3s: the oldest are to go, and no other", i, e)
		}
	}
	l.since("what is left", p.Since, start().Add(time.Duration(299-len(got))*time.Second))
	l.append(needle + strings.Repeat("y", most)) // more than there may be
	if got, _, p = l.walk(needle); len(got) != 0 {
		t.Errorf("%d entries beyond the bound", len(got))
	}
	l.since("nothing", p.Since, l.clock.now())
	l.append(needle)
	if got, _, _ = l.walk(needle); !same(got, needle) {
		t.Errorf("and then there are %q", got)
	}
}

func refusalsBegan(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	l.clock.advance(time.Minute)
	got, pages, p := l.walk("anything")
	if len(got) != 0 || pages != 1 || !p.Reached.IsZero() {
		t.Errorf("nothing is %q, %+v", got, p)
	}
	l.since("no log knows nothing of before", p.Since, l.clock.now())
	l.append("")
	began := l.clock.now()
	l.clock.advance(time.Hour)
	_, _, p = l.walk("anything")
	l.since("an empty one", p.Since, began)
	if !p.Reached.IsZero() {
		t.Errorf("an empty log was looked at back to %s", p.Reached)
	}
}

// refusalsClock: a clock that goes back does not mix the entries up.
func refusalsClock(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	l.clock.advance(time.Hour)
	l.append("first...")
	l.clock.advance(-30 * time.Minute)
	l.append("second..")
	l.clock.advance(time.Millisecond)
	l.append("third...")
	if got, _, _ := l.walk("first...", "second..", "third..."); !same(got, "third...", "second..", "first...") {
		t.Errorf("got %q", got)
	}
}

func refusalsHostile(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	d := &desk{tb: t}
	ctx := t.Context()
	d.fails("an entry that is too long", l.log.AppendRefusals(ctx, make([]byte, flashsale.MaxRefusalEntry+1)), flashsale.CodeInvalidArgument)
	l.append(strings.Repeat("\x00", flashsale.MaxRefusalEntry))
	for what, q := range map[string]flashsale.RefusalQuery{
		"no needle":        {},
		"a short needle":   {Needles: []string{"short"}},
		"a long needle":    {Needles: []string{"long needle"}},
		"five needles":     {Needles: []string{"12345678", "12345678", "12345678", "12345678", "12345678"}},
		"a foreign cursor": {Needles: []string{"12345678"}, Cursor: "+ COUNT 1"},
		"a range":          {Needles: []string{"12345678"}, Cursor: "-"},
	} {
		_, err := l.log.FindRefusals(ctx, q)
		d.fails(what, err, flashsale.CodeInvalidArgument)
	}
	if got, _, _ := l.walk("\x00\x00\x00\x00\x00\x00\x00\x00"); len(got) != 1 || len(got[0]) != flashsale.MaxRefusalEntry {
		t.Errorf("%d entries", len(got))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	d.fails("appending for nobody", l.log.AppendRefusals(ended, []byte("x")), flashsale.CodeUnavailable)
	_, err := l.log.FindRefusals(ended, flashsale.RefusalQuery{Needles: []string{"12345678"}})
	d.fails("finding for nobody", err, flashsale.CodeUnavailable)
}

func refusalsParallel(t *testing.T, open OpenRefusals) {
	l := newLedger(t, open, 0)
	const writers, each = 8, 40
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := l.log.AppendRefusals(t.Context(), fmt.Appendf(nil, "needle..%d.%d", w, i)); err != nil {
					t.Error(err)
				}
				if _, err := l.log.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{"needle.."}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, _, _ := l.walk("needle..")
	last := map[string]string{}
	seen := map[string]bool{}
	for _, e := range got {
		w, i, _ := strings.Cut(strings.TrimPrefix(e, "needle.."), ".")
		if before, ok := last[w]; seen[e] || ok && number(i) >= number(before) {
			t.Fatalf("%s after %s", e, before)
		}
		last[w], seen[e] = i, true
	}
	if len(got) != writers*each {
		t.Errorf("%d entries of %d", len(got), writers*each)
	}
}

func number(digits string) (n int) {
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return n
}
