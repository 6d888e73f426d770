package replay

import (
	"fmt"
	"strconv"
)

// grouped writes a number with commas.
func grouped(n int64) string {
	digits, sign := strconv.FormatInt(n, 10), ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// counted is a number of things.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

func signed(n int64) string {
	if n > 0 {
		return "+" + grouped(n)
	}
	return grouped(n)
}

// percent never rounds something to nothing, nor nearly all to all.
func percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return percentOf(float64(part) / float64(whole))
}

func percentOf(share float64) string {
	switch p := share * 100; {
	case p > 0 && p < 0.1:
		return "<0.1 %"
	case p < 100 && p > 99.9:
		return ">99.9 %"
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

// String writes the number, with a mark if it is estimated.
func (c Count) String() string {
	if c.Estimated {
		return "about " + grouped(c.N)
	}
	return grouped(c.N)
}

// of writes the number of things.
func (c Count) of(thing string) string {
	if c.Estimated {
		return "about " + counted(c.N, thing)
	}
	return counted(c.N, thing)
}
