package credential

import (
	"strings"
	"unicode/utf8"
)

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) take(b byte) bool {
	if s.at == len(s.data) || s.data[s.at] != b {
		return false
	}
	s.at++
	return true
}

// text reads a string. The raw text is what stands between the quotes.
func (s *scanner) text() (raw []byte, escaped, ok bool) {
	if !s.take('"') {
		return nil, false, false
	}
	for i := s.at; i < len(s.data); {
		switch b := s.data[i]; {
		case b == '"':
			raw, s.at = s.data[s.at:i], i+1
			return raw, escaped, true
		case b < ' ':
			return nil, false, false
		case b == '\\':
			_, n := escape(s.data[i:])
			if n == 0 {
				return nil, false, false
			}
			escaped = true
			i += n
		default:
			i++
		}
	}
	return nil, false, false
}

// escape reads an escape and returns what it stands for and how long it is. The length is 0 if it stands for nothing, for
// half a pair of surrogates, or for NUL.
func escape(data []byte) (r rune, n int) {
	if len(data) < 2 {
		return 0, 0
	}
	if data[1] == 'u' {
		return unicodeEscape(data)
	}
	const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(letters, data[1])
	if i < 0 {
		return 0, 0
	}
	return rune(meanings[i]), 2
}

// unicodeEscape reads one escape of four digits, or two that are a pair of surrogates.
func unicodeEscape(data []byte) (r rune, n int) {
	high, ok := fourDigits(data)
	switch {
	case !ok || high == 0 || 0xDC00 <= high && high < 0xE000:
		return 0, 0
	case high < 0xD800 || high >= 0xE000:
		return high, 6
	}
	low, ok := fourDigits(data[6:])
	if !ok || low < 0xDC00 || low >= 0xE000 {
		return 0, 0
	}
	return 0x10000 + (high-0xD800)<<10 + (low - 0xDC00), 12
}

func fourDigits(data []byte) (r rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	for _, b := range data[2:6] {
		switch {
		case isDigit(b):
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	return r, true
}

// unescape puts what a text means into s.unescaped. The text was read, so its escapes are good.
func (s *scanner) unescape(raw []byte) {
	s.unescaped = s.unescaped[:0]
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			s.unescaped = append(s.unescaped, raw[i])
			i++
			continue
		}
		r, n := escape(raw[i:])
		var encoded [utf8.UTFMax]byte
		s.unescaped = append(s.unescaped, encoded[:utf8.EncodeRune(encoded[:], r)]...)
		i += max(n, 1)
	}
}

// number reads a number: a sign, digits without a leading zero, a fraction and an exponent.
func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if !s.take('e') && !s.take('E') {
		return true
	}
	if !s.take('+') {
		s.take('-')
	}
	return s.digits()
}

// digits reads at least one.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.data) && isDigit(s.data[s.at]) {
		s.at++
	}
	return s.at > start
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// word reads true, false or null.
func (s *scanner) word() (word []byte, ok bool) {
	start := s.at
	for s.at < len(s.data) && 'a' <= s.data[s.at] && s.data[s.at] <= 'z' {
		s.at++
	}
	word = s.data[start:s.at]
	switch string(word) {
	case "true", "false", "null":
		return word, true
	}
	return nil, false
}
