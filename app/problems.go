package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headgate-io/headgate/policy"
)

// Bounds of what is shown of a policy that is refused.
const (
	logProblems    = 3
	statusProblems = 10
	shownWarnings  = 20
	problemBytes   = 300
)

// problemLines returns the first problems of an error, one in a line, and how many more there are.
func problemLines(err error, most int) []string {
	var invalid *policy.Error
	if !errors.As(err, &invalid) {
		return []string{clip(strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	return firstLines(invalid.Problems, invalid.More, most)
}

// warningLines returns the first warnings of a policy, one in a line, and how many more there are.
func warningLines(p *policy.Policy) []string { return firstLines(p.Warnings(), 0, shownWarnings) }

func firstLines(problems []policy.Problem, more, most int) []string {
	var lines []string
	for _, p := range problems[:min(len(problems), most)] {
		lines = append(lines, clip(p.String()))
	}
	if more += len(problems) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// oneLine returns the first problems of an error in one line of a log.
func oneLine(err error) string { return strings.Join(problemLines(err, logProblems), "; ") }

func clip(line string) string {
	if len(line) <= problemBytes {
		return line
	}
	return strings.ToValidUTF8(line[:problemBytes], "") + "…"
}
