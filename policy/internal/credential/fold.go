package credential

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxFold is how much text is composed, in bytes.
const maxFold = 1 << 10

// Fold gives a value one spelling: white space at its ends removed, lower case, and composed (Unicode's NFC). Folding what
// is folded changes nothing. It is for values that a service treats alike however they are written, such as addresses of
// mail and codes.
//
// It does no more than that, since a service is not likely to. It leaves apart what only looks alike or means the same:
// full-width digits and plain ones, ligatures and their letters, "ß" and "ss", the two small sigmas, letters of different
// alphabets, spaces, hyphens and invisible characters within the value, "+86 138…" and "138…". A service that takes those for the
// same must send or accept one form of them.
//
// Text that is not UTF-8 only has its ends trimmed and its ASCII letters made lower: to replace what is wrong in it would
// make different values one. So has text of more than 1 kB that is not ASCII: no name is so long, and composing can be made
// to take long.
func Fold(s string) string {
	s = strings.TrimSpace(s)
	if isASCII(s) {
		return strings.ToLower(s)
	}
	if len(s) > maxFold || !utf8.ValidString(s) {
		return lowerASCII(s)
	}
	// Composed first, so that two forms of one letter become the same small one; and composed again, since small letters
	// can have a composed form where the capital ones have none.
	return norm.NFC.String(strings.ToLower(norm.NFC.String(s)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lowerASCII(s string) string {
	lower := []byte(s)
	for i, b := range lower {
		if 'A' <= b && b <= 'Z' {
			lower[i] = b + ('a' - 'A')
		}
	}
	return string(lower)
}
