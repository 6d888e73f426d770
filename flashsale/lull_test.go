package flashsale

import (
	"fmt"
	"math/bits"
	"testing"
)

// TestMarks: instances of different versions, and a stock that outlives them, must agree on these.
func TestMarks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]uint64{"": 0xefd01f60ba992926, "a": 0x82a2a958a9bece5b, "MDEyMzQ1Njc4OWFiY2RlZg": 0xc61bc5b0271395bd} {
		if got := Mark(name); got != want {
			t.Errorf("the mark of %q is %#x, want %#x", name, got, want)
		}
	}
}

// TestMarksAreSpread: names that differ little share no mark, and every bit is as often set as not.
func TestMarksAreSpread(t *testing.T) {
	t.Parallel()
	const n = 200_000
	seen := make(map[uint64]struct{}, n)
	var set [64]int
	for i := range n {
		m := Mark(fmt.Sprint("user-", i))
		seen[m] = struct{}{}
		for ; m != 0; m &= m - 1 {
			set[bits.TrailingZeros64(m)]++
		}
	}
	if len(seen) != n {
		t.Errorf("%d marks of %d names", len(seen), n)
	}
	for bit, ones := range set {
		if ones < n*49/100 || ones > n*51/100 {
			t.Errorf("bit %d is set in %d of %d", bit, ones, n)
		}
	}
}
