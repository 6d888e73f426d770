package replay

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clip cuts a text to a number of bytes, or a few less at a character's border, and marks the cut.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// shown is a text of a client's making as it can be shown on a terminal: clipped, and with escapes for whatever does not
// print, marks that change the direction of writing among them.
func shown(s string, most int) string {
	s = clip(s, most)
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hidden(r) {
			escapeBytes(&b, s[i:i+size])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

func escapeBytes(b *strings.Builder, s string) {
	const digits = "0123456789abcdef"
	for i := range len(s) {
		b.WriteString(`\x`)
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
}
