package testlang

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word of a line. A Go string literal, at its beginning or right after its first "=", is part of it.
type word struct {
	column int // of its first byte, from 1
	raw    string
	// plain is raw with its literal replaced by what it stands for.
	plain string
	// quoted tells that there was a literal.
	quoted bool
	// equals is where the first "=" outside a literal stands in plain, -1 if nowhere.
	equals int
}

// option splits name=value; ok is false without a name or without "=".
func (w *word) option() (name, value string, ok bool) {
	if w.equals < 1 {
		return "", "", false
	}
	return w.plain[:w.equals], w.plain[w.equals+1:], true
}

// split cuts a line into words and drops its comment. end is where the comment begins.
func split(line string) (words []word, end int, err error) {
	at := 0
	for {
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
		if at == len(line) || line[at] == '#' {
			return words, at, nil
		}
		w, size, err := scanWord(line[at:], at+1)
		if err != nil {
			return nil, 0, err
		}
		words = append(words, w)
		at += size
	}
}

// scanWord reads the word that text begins with; column is where that is.
func scanWord(text string, column int) (w word, size int, err error) {
	w = word{column: column, equals: -1}
	var plain strings.Builder
	for size < len(text) {
		c := text[size]
		if c == ' ' || c == '\t' {
			break
		}
		if c == '"' || c == '`' {
			literal, err := scanLiteral(text, size, column, &w)
			if err != nil {
				return word{}, 0, err
			}
			value, _ := strconv.Unquote(literal) // a literal by scanLiteral
			plain.WriteString(value)
			size += len(literal)
			break
		}
		if c == '=' && w.equals < 0 {
			w.equals = plain.Len()
		}
		r, n := utf8.DecodeRuneInString(text[size:])
		if r == utf8.RuneError && n == 1 || unicode.IsControl(r) {
			return word{}, 0, faultf(column+size, "the byte 0x%02x may stand in a Go string literal only: write %q", c, `\x`+fmt.Sprintf("%02x", c))
		}
		plain.WriteString(text[size : size+n])
		size += n
	}
	w.raw, w.plain = text[:size], plain.String()
	return w, size, nil
}

// scanLiteral returns the Go string literal at text[at:], which must begin a word or a value and end the word.
func scanLiteral(text string, at, column int, w *word) (string, error) {
	if at != 0 && (w.equals < 0 || at != w.equals+1) {
		return "", faultf(column+at, `a quote inside a value: write the whole value as a Go string literal, as in key="a\"b"`)
	}
	literal, err := strconv.QuotedPrefix(text[at:])
	if err != nil {
		return "", faultf(column+at, `the Go string literal is not valid or not closed: write one as in key="a b"`)
	}
	if end := at + len(literal); end < len(text) && text[end] != ' ' && text[end] != '\t' {
		return "", faultf(column+end, "text follows the closing quote: put a space after it")
	}
	w.quoted = true
	return literal, nil
}

// fault is what is wrong at a column of the line at hand.
type fault struct {
	column int
	text   string
}

func (f *fault) Error() string { return f.text }

func faultf(column int, format string, args ...any) error {
	return &fault{column, fmt.Sprintf(format, args...)}
}
