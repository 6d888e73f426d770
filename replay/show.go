package replay

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clip cuts a text to at most most bytes, at a character's border, and marks the cut.
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

// readableKey takes the lengths out of a key of a policy, "ip=9:192.0.2.7,user!": they tell values apart that hold
// anything. A key of another form stays as it is.
func readableKey(key string) string {
	var b strings.Builder
	for rest := key; rest != ""; {
		end := strings.IndexAny(rest, "=!#")
		if end <= 0 {
			return key
		}
		name, mark := rest[:end], rest[end]
		rest = rest[end+1:]
		var value string
		var ok bool
		switch mark {
		case '=':
			value, rest, ok = cutCounted(rest)
			value = name + "=" + value
		case '#':
			value, rest, ok = cutHash(rest)
			value = name + "#" + value
		default:
			value, ok = "no "+name, true
		}
		if !ok || rest != "" && rest[0] != ',' {
			return key
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(value)
		rest = strings.TrimPrefix(rest, ",")
	}
	return b.String()
}

// cutCounted cuts "LENGTH:VALUE".
func cutCounted(s string) (value, rest string, ok bool) {
	digits, after, found := strings.Cut(s, ":")
	n, err := strconv.Atoi(digits)
	if !found || err != nil || n < 0 || n > len(after) {
		return "", "", false
	}
	return after[:n], after[n:], true
}

// cutHash cuts the 32 digits of a hash.
func cutHash(s string) (value, rest string, ok bool) {
	if len(s) < 32 {
		return "", "", false
	}
	return s[:32], s[32:], true
}
