package headgate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseWhole reads a whole decimal number of plain digits. A number too large for int64 is cut to the largest one, which
// every bound refuses with its own words.
func parseWhole(text string) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
			return 0, fmt.Errorf("is not a whole number in plain digits; nearest is %.0f", min(max(math.Round(f), 0), MaxCount))
		}
		return 0, errors.New("is not a number")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if digits != text {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	return n, nil
}

// parseDecimal reads digits with an optional fraction as an exact fraction.
func parseDecimal(text string) (num, den int64, err error) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if !dotted {
		num, err = parseWhole(text)
		return num, 1, err
	}
	if digits, negative := strings.CutPrefix(text, "-"); negative {
		if _, _, err := parseDecimal(digits); err == nil && digits != "" && digits[0] != '-' {
			return 0, 0, errors.New("is negative; nearest is 0")
		}
	}
	fraction = strings.TrimRight(fraction, "0")
	if strings.Trim(whole+fraction, "0123456789") != "" || whole == "" || strings.HasSuffix(text, ".") {
		return 0, 0, errors.New("is not a number of digits such as 10 or 0.2")
	}
	if len(fraction) > 18 {
		return 0, 0, errors.New("has more than 18 decimal places; round it")
	}
	for den = 1; len(fraction) > 0 && den < pow10(len(fraction)); {
		den *= 10
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, 1, nil
	}
	if num, err = strconv.ParseInt(digits, 10, 64); err != nil {
		return 0, 0, errors.New("has too many digits; keep 15")
	}
	return num, den, nil
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// parsePeriod reads a Go duration, a bare unit (s, m, h, d), or a number of days (7d).
func parsePeriod(text string) (time.Duration, error) {
	switch text {
	case "ms", "us", "µs":
		text = "1" + text
	case "s", "m", "h", "d":
		text = "1" + text
	}
	if days, ok := strings.CutSuffix(text, "d"); ok && !wordy(days) {
		n, err := parseWhole(days)
		if err != nil {
			return 0, newError(CodeInvalidLimit, "%q is not a number of days such as 7d", text)
		}
		if n < 0 || n > int64(MaxPeriod/(24*time.Hour)) {
			return 0, newError(CodeInvalidLimit, "%s is outside 1us to 36500d; nearest is %s", text, map[bool]string{true: "1us", false: "36500d"}[n < 0])
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err == nil:
		return d, nil
	case strings.Trim(text, "0123456789") == "" && text != "":
		return 0, newError(CodeInvalidLimit, "%q has no unit; nearest is %ss", text, text)
	case wordy(text):
		return 0, newError(CodeInvalidLimit, "%q is not a period; nearest is %s", text, nearest(text, []string{"s", "m", "h", "d", "hour", "day", "week", "month"}))
	case overlong(text):
		return 0, newError(CodeInvalidLimit, "%s is outside 1us to 36500d; nearest is 36500d", text)
	}
	return 0, newError(CodeInvalidLimit, "%q is not a period such as 1m, 1h30m or 7d", text)
}

func wordy(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// overlong tells whether a text has the form of a duration, so that only its length can be wrong with it.
func overlong(text string) bool {
	unit := strings.TrimLeft(text, "0123456789")
	return unit != text && slices.Contains([]string{"us", "µs", "ms", "s", "m", "h"}, unit)
}

// calendarPeriod returns the period that comes nearest to a calendar unit, "" if the word is none.
func calendarPeriod(word string) string {
	switch word {
	case "hour":
		return "1h"
	case "day":
		return "1d"
	case "week":
		return "7d"
	case "month":
		return "30d"
	}
	return ""
}

// nearest returns the candidate that begins with the word or, failing that, the one with the fewest edits to it.
func nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDistance := "", math.MaxInt
	for _, c := range candidates {
		if word != "" && strings.HasPrefix(c, word) {
			return c
		}
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
