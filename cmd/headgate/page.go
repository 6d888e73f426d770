package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// page is where answers are written for people. On a terminal, lines that it has no room for are broken between words.
type page struct{ paper }

// pageOn is a page whose text goes to to, as wide as out is.
func pageOn(to, out io.Writer) page { return page{paper{out: to, width: newPaper(out).width}} }

// line writes a line, in which nothing is left that a terminal would obey.
func (p page) line(format string, args ...any) { p.paper.line("", cell(fmt.Sprintf(format, args...))) }

// maxColumn bounds the width of a column, but for the last: --json has all of it. It is that of the longest id, since what is shown of one is typed again.
const maxColumn = 64

// table writes rows under a heading, in columns as wide as they need. Figures stand to the right. A row of one text is a line by itself: it says
// more of the row before it.
func (p page) table(heading []string, rows [][]string) {
	for _, row := range rows {
		for i := range row[:len(row)-1] {
			row[i] = ansi.Truncate(row[i], maxColumn, "…")
		}
	}
	whole := append([][]string{heading}, rows...)
	widths, figures := make([]int, len(heading)), make([]bool, len(heading))
	for i := range heading {
		figures[i] = len(rows) > 0
		for k, row := range whole {
			if len(row) == 1 && len(heading) > 1 {
				continue
			}
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
			figures[i] = figures[i] && (k == 0 || isFigure(row[i]))
		}
	}
	for _, row := range whole {
		if len(row) == 1 && len(heading) > 1 {
			p.line("%s", row[0])
			continue
		}
		p.row(row, widths, figures)
	}
}

func (p page) row(row []string, widths []int, figures []bool) {
	var b strings.Builder
	for i, text := range row {
		pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
		if figures[i] {
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

// isFigure reports whether a text is a number, a length of time, or nothing.
func isFigure(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil || strings.Trim(text, "-0123456789.") == ""
}

func num(n int64) string { return strconv.FormatInt(n, 10) }
