package chaos

import (
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/internal/referee"
)

// second is a time of the test, in seconds.
func second(s float64) time.Time { return time.Unix(1_800_000_000, int64(s*1e9)) }

// admissions of one unit at a time in seconds.
func admissions(by int, at float64, n int) []referee.Admission {
	all := make([]referee.Admission, n)
	for i := range all {
		all[i] = referee.Admission{At: second(at).UnixMicro(), Units: 1, By: by}
	}
	return all
}

func entry(t *testing.T, slot, limit string, parts ...[]referee.Admission) referee.Entry {
	t.Helper()
	l, err := headgate.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	e := referee.Entry{Slot: slot, Key: "k", Limit: l}
	for _, p := range parts {
		e.Admissions = append(e.Admissions, p...)
	}
	return e
}

// TestCount: with the data to the last unit, and one more; at the bounds, and one more.
func TestCount(t *testing.T) {
	t.Parallel()
	const limit = "sliding_log 10/1h"
	dead := second(10)
	for name, c := range map[string]struct {
		parts                          [][]referee.Admission
		over, without, after           int64
		withoutKept, afterKept         bool
		spentBefore, here, bound       int64 // without the store
		spentAtAll, hereAfter, boundAt int64 // after the empty restart
	}{
		"by the limit": {
			parts: [][]referee.Admission{admissions(byStore, 1, 10)}, withoutKept: true, afterKept: true,
		},
		"one too many with the data": {
			parts: [][]referee.Admission{admissions(byStore, 1, 11)}, over: 1, without: 1, withoutKept: true, afterKept: true,
		},
		"local limits at their bound": {
			parts:   [][]referee.Admission{admissions(byStore, 1, 10), admissions(byLocal, 2, 13)},
			without: 13, withoutKept: true, afterKept: true, spentBefore: 10, here: 13, bound: 23,
		},
		"local limits beyond their bound": {
			parts:   [][]referee.Admission{admissions(byStore, 1, 10), admissions(byLocal, 2, 14)},
			without: 14, withoutKept: false, afterKept: true, spentBefore: 10, here: 14, bound: 23,
		},
		"beyond their bound in two parts": {
			parts:   [][]referee.Admission{admissions(byStore, 1, 4), admissions(byLocal, 2, 7), admissions(byStore, 3, 6), admissions(byLocal, 4, 7)},
			without: 14, withoutKept: false, afterKept: true, spentBefore: 4, here: 14, bound: 17,
		},
		"the store is back and does not know": {
			parts:   [][]referee.Admission{admissions(byLocal, 2, 3), admissions(byStore, 3, 10)},
			without: 3, withoutKept: true, afterKept: true, spentBefore: 0, here: 3, bound: 13,
		},
		"the limit once more": {
			parts: [][]referee.Admission{admissions(byStore, 10, 10), admissions(byStore, 11, 10)},
			after: 10, withoutKept: true, afterKept: true, spentAtAll: 10, hereAfter: 10, boundAt: 20,
		},
		"more than the limit once more": {
			parts: [][]referee.Admission{admissions(byStore, 10, 10), admissions(byStore, 11, 11)},
			over:  1, after: 11, withoutKept: true, afterKept: false, spentAtAll: 10, hereAfter: 11, boundAt: 20,
		},
		"nothing before the loss": {
			parts: [][]referee.Admission{admissions(byStore, 11, 10)}, withoutKept: true, afterKept: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := count([]referee.Entry{entry(t, "login-device/00", limit, c.parts...)}, 3, dead)
			if err != nil {
				t.Fatal(err)
			}
			if got.withData.Over != c.over {
				t.Errorf("with the data: %+v, want %d over", got.withData, c.over)
			}
			check(t, "without the store", got.without, demo.Without{Over: c.without, SpentBefore: c.spentBefore, Here: c.here, Bound: c.bound, BoundKept: c.withoutKept})
			check(t, "after the loss", got.after, demo.Without{Over: c.after, SpentBefore: c.spentAtAll, Here: c.hereAfter, Bound: c.boundAt, BoundKept: c.afterKept})
		})
	}
}

// check compares all but the limits, whose sums must be those of the whole. Of one key over by the data that the store had,
// nothing is said of what was spent before.
func check(t *testing.T, when string, got, want demo.Without) {
	t.Helper()
	var sum demo.Without
	for _, l := range got.ByLimit {
		sum.Over, sum.SpentBefore, sum.Here, sum.Bound = sum.Over+l.Over, sum.SpentBefore+l.SpentBefore, sum.Here+l.Here, sum.Bound+l.Bound
		if l.Rule != "login-device" || l.Limit != "sliding_log 10/1h" || l.Keys != 1 {
			t.Errorf("%s: %+v", when, l)
		}
	}
	sum.BoundKept, got.ByLimit = got.BoundKept, nil
	if got.Over != want.Over || got.SpentBefore != want.SpentBefore || got.Here != want.Here || got.Bound != want.Bound || got.BoundKept != want.BoundKept {
		t.Errorf("%s: got %+v, want %+v", when, got, want)
	}
	if got.Over != sum.Over || got.Here != sum.Here || got.Bound != sum.Bound || got.SpentBefore != sum.SpentBefore {
		t.Errorf("%s: the limits add up to %+v, not %+v", when, sum, got)
	}
}

// TestCountRequests: a request is counted once, by who decided it.
func TestCountRequests(t *testing.T) {
	t.Parallel()
	all := [][]referee.Admission{admissions(byStore, 1, 5), admissions(byLocal, 2, 4), admissions(byStore, 11, 3)}
	got, err := count([]referee.Entry{
		entry(t, "login/00", "sliding_log 100/1h", all...), entry(t, everybody, "token_bucket 20000/s burst=40000", all...),
	}, 3, second(10))
	if err != nil {
		t.Fatal(err)
	}
	if got.withData.Admitted != 8 || got.without.Admitted != 4 || got.after.Admitted != 3 {
		t.Errorf("got %+v", got)
	}
	if got, err := count(nil, 3, time.Time{}); err != nil || !got.without.BoundKept || got.without.ByLimit == nil {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	if _, err := count([]referee.Entry{{Slot: "x/00"}}, 3, time.Time{}); err == nil {
		t.Error("what has no limit is judged")
	}
}
