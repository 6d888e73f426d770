package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Characters that are not seen, and that people write all the same.
const (
	nonJoiner   = '\u200c'     // between letters, such as of Persian
	joiner      = '\u200d'     // between letters, such as of Hindi, and in emoji of several people
	ideographic = '\u3000'     // the space between words of Chinese, as wide as a character
	blackFlag   = '\U0001f3f4' // with tags behind it a flag, such as that of Scotland
	firstTag    = '\U000e0020'
	lastTag     = '\U000e007f'
	replacement = '\ufffd'
)

// clean shows what others have written without what a terminal would obey, and without what is there unseen: control characters, separators of lines
// and paragraphs, orders and marks of direction. They are replaced, so that it is seen that there was something; newlines and tabs stay. Spaces
// of any kind are shown as one, but for the ideographic space, which stays as wide as it is.
func clean(text string) string {
	before := rune(0)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == ideographic || unicode.IsPrint(r) || unseen(before, r):
		case unicode.Is(unicode.Zs, r):
			r = ' '
		default:
			r = replacement
		}
		before = r
		return r
	}, text)
}

// unseen reports whether a character that is not seen has a meaning where it stands: a joiner behind a letter or a sign of a script that has them,
// or behind an emoji, and never two of them; a tag behind a black flag.
func unseen(before, r rune) bool {
	switch {
	case r == joiner || r == nonJoiner:
		return before > unicode.MaxASCII && before != replacement &&
			unicode.In(before, unicode.L, unicode.M, unicode.So, unicode.Sk) && !unicode.Is(unicode.Latin, before)
	case r >= firstTag && r <= lastTag:
		return before == blackFlag || before >= firstTag && before < lastTag
	}
	return false
}

// escaped is JSON whose texts are escaped where clean would replace them. JSON itself escapes none above U+001F, and a name that a
// shopper has chosen can have such as U+009B in it, with which orders to a terminal begin.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// cell is clean, on one line.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(text))
}
