package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/charmbracelet/x/ansi"
)

// page is where answers are written for people.
type page struct{ out io.Writer }

func (p page) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// clean shows what others have written without what a terminal would obey.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, text)
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
func cell(text string) string { return strings.ReplaceAll(clean(text), "\n", " ") }

// maxColumn bounds the width of a column, but for the last: --json has all of it. It is that of the longest id, since what is shown of one is typed again.
const maxColumn = 64

// table writes rows under a heading, in columns as wide as they need. Numbers stand to the right.
func (p page) table(heading []string, rows [][]string) {
	for _, row := range rows {
		for i := range row[:len(row)-1] {
			row[i] = ansi.Truncate(row[i], maxColumn, "…")
		}
	}
	widths := make([]int, len(heading))
	numeric := make([]bool, len(heading))
	for i := range heading {
		numeric[i] = len(rows) > 0
		for _, row := range append([][]string{heading}, rows...) {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		for _, row := range rows {
			_, err := strconv.ParseInt(strings.TrimSuffix(row[i], "s"), 10, 64)
			numeric[i] = numeric[i] && (err == nil || row[i] == "" || row[i] == "-")
		}
	}
	for _, row := range append([][]string{heading}, rows...) {
		var b strings.Builder
		for i, text := range row {
			pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
			if numeric[i] {
				text = pad + text
			} else {
				text += pad
			}
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(text)
		}
		p.line("%s", strings.TrimRight(b.String(), " "))
	}
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

// clockIn shows a time as clocks in a zone do; in UTC where the zone is not known here.
func clockIn(zone string) func(time.Time) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return func(at time.Time) string { return at.In(location).Format("2006-01-02 15:04:05 -07:00") }
}
