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
	problemBytes   = 300
)

// problemLines returns the first problems of an error, one in a line, and how many more there are.
func problemLines(err error, most int) []string {
	var invalid *policy.Error
	if !errors.As(err, &invalid) {
		return []string{clip(strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	var lines []string
	for _, p := range invalid.Problems[:min(len(invalid.Problems), most)] {
		lines = append(lines, clip(p.String()))
	}
	if more := len(invalid.Problems) + invalid.More - len(lines); more > 0 {
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
