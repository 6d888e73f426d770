package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/policy/lint"
)

// paper is what findings are written on: lines that end where they end, or a terminal of a width, with colours or without.
type paper struct {
	out     io.Writer
	width   int // 0: lines are not broken
	colours bool
}

// newPaper returns paper of the kind that a stream is, which writes to it.
func newPaper(out io.Writer) paper {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return paper{out: out}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return paper{out: out, width: width, colours: os.Getenv("NO_COLOR") == ""}
}

// line writes a line. On a terminal it is broken between words, and goes on further right.
func (p paper) line(indent, text string) { p.hang(indent, text, "         ") }

// hang is line, with what stands before the text where it goes on.
func (p paper) hang(indent, text, further string) {
	if p.width < 40 || ansi.StringWidth(indent+text) <= p.width {
		fmt.Fprintln(p.out, indent+text)
		return
	}
	line := indent
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line += word
		case ansi.StringWidth(line)+1+ansi.StringWidth(word) > p.width:
			fmt.Fprintln(p.out, line)
			line = further + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(p.out, line)
}

// mark colours a severity.
func (p paper) mark(severity lint.Severity) string {
	if !p.colours {
		return string(severity)
	}
	colour := map[lint.Severity]string{lint.Error: "31", lint.Warning: "33", lint.Info: "36"}[severity]
	return "\x1b[" + colour + "m" + string(severity) + "\x1b[0m"
}

// checked writes what there is to say of one policy; the last line sums it up.
func (p paper) checked(c *checked) {
	for _, problem := range c.Problems {
		p.line("", policy.Problem{File: c.File, Line: problem.Line, Column: problem.Column, Message: problem.Message}.String())
	}
	if c.More > 0 {
		p.line("", fmt.Sprintf("%s: and %d more", c.File, c.More))
	}
	for _, f := range c.Findings {
		p.line("", c.File+":"+strings.Replace(lint.Finding(f).String(), string(f.Severity), p.mark(f.Severity), 1))
		p.line("    ", "why: "+f.Reason)
		p.line("    ", "fix: "+f.Suggestion)
	}
	if !c.Valid {
		return
	}
	summary := []string{plural(c.Rules, "rule")}
	for _, severity := range []lint.Severity{lint.Error, lint.Warning, lint.Info} {
		if n := c.count(severity); n > 0 {
			summary = append(summary, plural(n, severityName(severity)))
		}
	}
	p.line("", fmt.Sprintf("%s: valid, %s", c.File, strings.Join(summary, ", ")))
}

func severityName(severity lint.Severity) string {
	if severity == lint.Info {
		return "note"
	}
	return string(severity)
}
