package testlang

import (
	"errors"
	"fmt"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// maxErrors is how many mistakes of a file are reported.
const maxErrors = 10

// SyntaxError says what is wrong where, and what to write.
type SyntaxError struct {
	File string
	// Line and Column count from 1; Column counts bytes.
	Line, Column int
	Message      string
}

// Error returns file:line:column: message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Parse reads the text of a .test file. The name is for messages, and policies are found relative to its folder. The
// error joins the first [*SyntaxError]s of the file, at most 10.
func Parse(name string, text []byte) (*File, error) {
	if len(text) > MaxFileSize {
		return nil, &SyntaxError{name, 1, 1, fmt.Sprintf("the file has %d bytes; %d are allowed: split it", len(text), MaxFileSize)}
	}
	p := fileParser{
		file:  &File{Name: name},
		lines: strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n"),
		start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for p.at < len(p.lines) && len(p.errs) < maxErrors {
		p.at++
		if err := p.line(p.lines[p.at-1]); err != nil {
			p.fail(err)
		}
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return p.file, nil
}

// fileParser is what is known of a file up to the line at hand.
type fileParser struct {
	file  *File
	lines []string
	at    int // the number of the line at hand
	errs  []error

	start       time.Time
	current     *Case
	steps, runs int64
}

func (p *fileParser) fail(err error) {
	column := 1
	var f *fault
	if errors.As(err, &f) {
		column = f.column
	}
	p.errs = append(p.errs, &SyntaxError{p.file.Name, p.at, column, err.Error()})
}

func (p *fileParser) line(text string) error {
	text = strings.TrimSuffix(text, "\r")
	if len(text) > MaxLine {
		return faultf(1, "the line has %d bytes; %d are allowed", len(text), MaxLine)
	}
	words, end, err := split(text)
	if err != nil || len(words) == 0 {
		return err
	}
	rest := words[1:]
	switch words[0].raw {
	case "start":
		return p.startLine(rest)
	case "limit":
		return p.limitLine(rest)
	case "policy":
		return p.policyLine(rest)
	case "at":
		return p.step(rest, strings.TrimSpace(text[:end]))
	}
	return faultf(words[0].column, "%q does not begin a line: write start, limit, policy or at", words[0].raw)
}

func (p *fileParser) startLine(words []word) error {
	if len(words) != 1 {
		return faultf(1, "write start and one time, as in start 2026-01-01T00:00:00Z")
	}
	t, err := time.Parse(time.RFC3339Nano, words[0].plain)
	if err != nil {
		return faultf(words[0].column, "%q is not a time: write one as in 2026-01-01T00:00:00Z or 2026-01-01T08:00:00+08:00", words[0].plain)
	}
	if t.Nanosecond()%1000 != 0 {
		return faultf(words[0].column, "%s has a part of a microsecond: write at most six decimals", words[0].plain)
	}
	if _, err := headgate.Micros(t); err != nil {
		return faultf(words[0].column, "%v", err)
	}
	p.start = t
	return nil
}

func (p *fileParser) limitLine(words []word) error {
	if len(words) == 0 {
		return faultf(1, "write a limit, as in limit token_bucket 3/1m burst=3 or limit site: token_bucket 10/1m")
	}
	name, words, err := limitName(words)
	if err != nil {
		return err
	}
	limit, err := limitOf(words)
	if err != nil {
		return err
	}
	switch {
	case name == "" || p.current == nil || p.current.Policy != nil:
		p.begin(&Case{Line: p.at})
	default:
		if i := p.current.find(name); i >= 0 {
			return faultf(1, "limit %s stands in line %d already: use another name, change it with reload %s:, or begin a new case with a limit without a name",
				name, p.current.Limits[i].Line, name)
		}
	}
	p.current.Limits = append(p.current.Limits, NamedLimit{p.at, name, limit})
	return nil
}

func (p *fileParser) begin(c *Case) {
	p.current = c
	p.file.Cases = append(p.file.Cases, c)
}

func (c *Case) find(name string) int {
	for i := range c.Limits {
		if c.Limits[i].Name == name {
			return i
		}
	}
	return -1
}

// limitName takes the NAME: off the words of a limit.
func limitName(words []word) (string, []word, error) {
	w := words[0]
	name, colon := strings.CutSuffix(w.plain, ":")
	switch {
	case !colon && strings.Contains(w.plain, ":"):
		return "", nil, faultf(w.column, "put a space after the colon of %q", w.plain)
	case !colon:
		return "", words, nil
	case !isName(name):
		return "", nil, faultf(w.column, "%q is not a name: write letters, digits, _, - and .", name)
	}
	return name, words[1:], nil
}

func isName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != ""
}

func limitOf(words []word) (headgate.Limit, error) {
	if len(words) == 0 {
		return nil, faultf(1, "the limit is missing: write one, as in token_bucket 10/1m")
	}
	raw := make([]string, len(words))
	for i := range words {
		raw[i] = words[i].raw
	}
	limit, err := headgate.ParseLimit(strings.Join(raw, " "))
	if err != nil {
		return nil, faultf(words[0].column, "%v", err)
	}
	return limit, nil
}

func (p *fileParser) policyLine(words []word) error {
	policy := &Policy{Line: p.at}
	switch {
	case len(words) != 1:
		return faultf(1, "write policy and one file, as in policy shop.yaml, or policy <<END and the document up to a line END")
	case strings.HasPrefix(words[0].raw, "<<"):
		text, err := p.heredoc(words[0])
		if err != nil {
			return err
		}
		policy.Text = text
	case words[0].plain == "":
		return faultf(words[0].column, "the name of the policy's file is empty")
	default:
		policy.Path = words[0].plain
	}
	p.begin(&Case{Line: policy.Line, Policy: policy})
	return nil
}

// heredoc returns the lines up to the one that is the word after <<.
func (p *fileParser) heredoc(w word) ([]byte, error) {
	end := strings.TrimPrefix(w.raw, "<<")
	if !isName(end) {
		return nil, faultf(w.column, "a word must follow <<, as in policy <<END")
	}
	for i := p.at; i < len(p.lines); i++ {
		if strings.TrimRight(p.lines[i], " \t\r") == end {
			text := strings.Join(p.lines[p.at:i], "\n") + "\n"
			p.at = i + 1
			return []byte(text), nil
		}
	}
	from := p.at
	p.at = len(p.lines)
	return nil, &fault{w.column, fmt.Sprintf("the document that begins in line %d has no end: write %s on a line of its own", from, end)}
}
