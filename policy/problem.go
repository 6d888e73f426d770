package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/policy/internal/spelling"
)

// maxProblems bounds what one load reports; more are kept until they are sorted by place.
const (
	maxProblems     = 50
	maxKeptProblems = 100
)

// Problem is one thing that is wrong in a policy.
type Problem struct {
	// File is the name of the document.
	File string
	// Line and Column count from 1; 0 if the problem has no place.
	Line, Column int
	// Message says what is wrong and what to write instead.
	Message string
}

// String returns FILE:LINE:COLUMN: MESSAGE.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Error is what Load and Parse return for a document that is not a policy: everything that is wrong with it, in the order
// of the document.
type Error struct {
	// Problems has at least one entry and at most 50.
	Problems []Problem
	// More is how many were left out.
	More int
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// pos is a place in the document.
type pos struct{ line, column int }

// reporter collects problems.
type reporter struct {
	file     string
	problems []Problem
	dropped  int
}

func (r *reporter) report(at pos, format string, args ...any) {
	if len(r.problems) == maxKeptProblems {
		r.dropped++
		return
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...)})
}

// err returns nil if nothing was reported.
func (r *reporter) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	sortProblems(r.problems)
	kept := min(len(r.problems), maxProblems)
	return &Error{Problems: r.problems[:kept], More: len(r.problems) - kept + r.dropped}
}

// sortProblems brings problems into the order of the document.
func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// scope reports problems of one part of the document.
type scope struct {
	*decoder
	where string
}

// fail reports a problem, with the name of the part in front.
func (s scope) fail(at pos, format string, args ...any) {
	if s.where != "" {
		format = "%s: " + format
		args = append([]any{s.where}, args...)
	}
	s.report(at, format, args...)
}

// nearest returns the candidate with the fewest edits to word, compared without regard to case. For a problem that
// is only counted it does not look: a document of misspelt words must not cost the product of its words and its names.
func (r *reporter) nearest(word string, candidates []string) string {
	if len(r.problems) >= maxKeptProblems {
		return ""
	}
	best, least := "", int(^uint(0)>>1)
	word = strings.ToLower(clip(word, 64))
	for _, c := range candidates {
		if d := spelling.Distance(word, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// clip shortens a text for a message.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
