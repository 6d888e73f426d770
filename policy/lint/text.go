package lint

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// grouped writes a number with commas, so that a reader need not count zeros.
func grouped(n *big.Int) string {
	digits := n.String()
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func number(n int64) string { return grouped(big.NewInt(n)) }

// bytesText writes a size with two digits or three.
func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= 10*unit.size {
			return number((n+unit.size/2)/unit.size) + " " + unit.name
		}
		if n >= unit.size {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// period writes a duration as limits have it: 1m and not 1m0s.
func period(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ruleNames lists rules for a message, the first few of many.
func ruleNames(rules []*rule) string {
	const most = 5
	var names []string
	for i, r := range rules {
		if i == most {
			return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", len(rules)-most)
		}
		names = append(names, strconv.Quote(r.Name))
	}
	return strings.Join(names, ", ")
}

// oneLine writes an expression as it can be shown on one line: clipped, and with escapes for what does not print.
func oneLine(expression string) string {
	const most = 80
	text := []rune(strings.Join(strings.Fields(expression), " "))
	if len(text) > most {
		text = append(text[:most], '…')
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
