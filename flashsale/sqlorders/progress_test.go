package sqlorders

import (
	"testing"
	"time"
)

// TestMatchSince: what begins with the oldest sale goes on where the last match began, also if the clock was set back meanwhile.
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
		for _, began := range []time.Time{clock.now(), clock.now().Add(time.Minute), clock.now().Add(-time.Hour)} {
			for range 2 {
				noError(t, "Matched", o.Matched(t.Context(), began))
				want("after a match", began)
			}
		}
	})
}
