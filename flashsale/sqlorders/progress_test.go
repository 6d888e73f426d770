package sqlorders

import (
	"sync"
	"testing"
	"time"
)

// TestMatchSince: what begins with the oldest sale goes on where the last match has said, also if the clock was set back meanwhile.
func TestMatchSince(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		want := func(what string, at time.Time) {
			t.Helper()
			if since, err := o.MatchSince(t.Context()); err != nil || !since.Equal(at) {
				t.Fatalf("%s: %s, %v; want %s", what, since, err, at)
			}
		}
		want("with no sale", clock.now())
		first := clock.now()
		createSale(t, o)
		clock.advance(48 * time.Hour)
		noError(t, "CreateSale", o.CreateSale(t.Context(), testSale("later")))
		want("before the first match", first)
		was := first
		for _, from := range []time.Time{clock.now(), clock.now(), clock.now().Add(time.Minute), clock.now().Add(-time.Hour)} {
			noted, err := o.Matched(t.Context(), was, from)
			if noError(t, "Matched", err); !noted {
				t.Fatalf("%s is not noted", from)
			}
			want("after a match", from)
			was = from
		}
	})
}

// TestMatchAgain: who matches sees that it was asked to look again, and what it has done meanwhile does not hide it.
func TestMatchAgain(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		createSale(t, o)
		begin := func() time.Time {
			t.Helper()
			since, err := o.MatchSince(t.Context())
			noError(t, "MatchSince", err)
			return since
		}
		again := func(since, want time.Time) {
			t.Helper()
			noError(t, "MatchAgain", o.MatchAgain(t.Context(), since))
			if got := begin(); !got.Equal(want) {
				t.Fatalf("asked to look at what is after %s, it is noted as %s, want %s", since, got, want)
			}
		}
		first := begin()
		again(first.Add(time.Hour), first.Add(-time.Microsecond)) // before there is anything noted
		was := begin()
		again(was, was.Add(-time.Microsecond))
		if noted, err := o.Matched(t.Context(), was, clock.now()); noted || err != nil {
			t.Fatalf("a match that began before it was asked to look again hides that: %v", err)
		}
		was = begin()
		if noted, err := o.Matched(t.Context(), was, first.Add(time.Hour)); !noted || err != nil {
			t.Fatalf("not noted: %v", err)
		}
		again(first, first.Add(-time.Microsecond))
		again(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), first.Add(-2*time.Microsecond)) // no payment is older than the oldest sale
	})
}

// TestMatchAgainAtOnce: whoever is first, nobody's wish is lost.
func TestMatchAgainAtOnce(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, _ *handClock) {
		createSale(t, o)
		first, err := o.MatchSince(t.Context())
		noError(t, "MatchSince", err)
		var all sync.WaitGroup
		const askers = 4
		for range askers {
			all.Go(func() {
				if err := o.MatchAgain(t.Context(), first); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		since, err := o.MatchSince(t.Context())
		if noError(t, "MatchSince", err); !since.Equal(first.Add(-askers * time.Microsecond)) {
			t.Fatalf("%s from the first, after %d have asked", since.Sub(first), askers)
		}
	})
}
