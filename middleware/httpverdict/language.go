package httpverdict

import (
	"net/http"
	"strings"
)

// maxRanges is how many language ranges are looked at: browsers send a handful.
const maxRanges = 32

// Language returns the language that a request's Accept-Language (RFC 9110, section 12.5.4) prefers: [English] or [Chinese],
// and English where it prefers neither. A range such as zh-Hant-TW counts as Chinese.
func Language(h http.Header) string {
	en, zh, rest := -1, -1, -1 // weights in thousandths, -1 for not named
	zhFirst, left := false, maxRanges
	for _, line := range h["Accept-Language"] {
		for item := range strings.SplitSeq(line, ",") {
			if left--; left < 0 {
				break
			}
			tag, weight := weighted(item)
			switch tag, _, _ = strings.Cut(tag, "-"); {
			case strings.EqualFold(tag, Chinese):
				zhFirst, zh = zhFirst || en < 0, max(zh, weight)
			case strings.EqualFold(tag, English):
				en = max(en, weight)
			case tag == "*":
				rest = max(rest, weight)
			}
		}
	}
	if en < 0 {
		en = rest
	}
	if zh < 0 {
		zh = rest
	}
	if zh > 0 && (zh > en || zh == en && zhFirst) {
		return Chinese
	}
	return English
}

// weighted splits "zh-CN;q=0.8" into its tag and its weight in thousandths. A weight that is none counts as 0.
func weighted(item string) (tag string, weight int) {
	tag, param, given := strings.Cut(item, ";")
	tag = strings.TrimSpace(tag)
	if !given {
		return tag, 1000
	}
	digits := strings.TrimSpace(param)
	if len(digits) < 3 || digits[0]|0x20 != 'q' || digits[1] != '=' || len(digits) > len("q=0.000") {
		return tag, 0
	}
	whole, fraction, _ := strings.Cut(digits[2:], ".")
	switch whole {
	case "0":
	case "1":
		weight = 1000
	default:
		return tag, 0
	}
	place := 100
	for _, c := range []byte(fraction) {
		if c < '0' || c > '9' {
			return tag, 0
		}
		weight += int(c-'0') * place
		place /= 10
	}
	return tag, min(weight, 1000)
}
