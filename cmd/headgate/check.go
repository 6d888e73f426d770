package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/policy/lint"
)

// checked is the answer for one policy, as --json prints it.
type checked struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Rules    int       `json:"rules"`
	Problems []problem `json:"problems"`
	// More is how many problems were left out.
	More     int       `json:"more"`
	Findings []finding `json:"findings"`
}

type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

type finding struct {
	ID         string        `json:"id"`
	Severity   lint.Severity `json:"severity"`
	Rule       string        `json:"rule,omitempty"`
	Line       int           `json:"line"`
	Column     int           `json:"column"`
	Message    string        `json:"message"`
	Reason     string        `json:"reason"`
	Suggestion string        `json:"suggestion"`
}

func newCheck(std streams) *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "check POLICY…",
		Short: "Say what is wrong with policies, and what is valid and probably not meant",
		Long: "Check reads policies as serve would, and lists everything that is wrong with each, with file, line and column.\n" +
			"Of one that is valid it says what is probably not meant, why it matters and what to write instead; docs/check.md\n" +
			"describes each finding by the word in brackets.\n" +
			"Exit codes: 0 all are good, 1 one is not valid or has a finding of severity error (with --strict also a warning),\n" +
			"2 one cannot be read.",
		Example: "  headgate check examples/shop/policy.yaml\n  headgate check --strict --json policy.yaml",
		Args:    atLeastOne("policy"),
		RunE: func(_ *cobra.Command, files []string) error {
			all := []checked{}
			code := exitGood
			var unread error
			for _, file := range files {
				c, err := check(file, time.Now())
				if err != nil {
					unread = errors.Join(unread, err)
					continue
				}
				if !c.good(strict) {
					code = exitNo
				}
				all = append(all, c)
			}
			if err := errors.Join(showChecked(std, all, asJSON), unread); err != nil {
				return err
			}
			return exitWith(code)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 on warnings too")
	return cmd
}

// check reads one policy, and judges it by a day. An error means that there is nothing to judge.
func check(file string, now time.Time) (checked, error) {
	c := checked{File: file, Problems: []problem{}, Findings: []finding{}}
	p, err := app.LoadPolicy(file)
	var bad *policy.Error
	switch {
	case errors.As(err, &bad):
		c.More = bad.More
		for _, p := range bad.Problems {
			c.Problems = append(c.Problems, problem{Line: p.Line, Column: p.Column, Message: p.Message})
		}
		return c, nil
	case err != nil:
		return checked{}, err
	}
	c.Valid, c.Rules = true, len(p.Rules())
	for _, f := range lint.Check(lint.Of(p, now)) {
		c.Findings = append(c.Findings, finding(f))
	}
	return c, nil
}

// good tells whether the policy can be used as it is.
func (c *checked) good(strict bool) bool {
	return c.Valid && c.count(lint.Error) == 0 && (!strict || c.count(lint.Warning) == 0)
}

func (c *checked) count(severity lint.Severity) int {
	n := 0
	for _, f := range c.Findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}

func showChecked(std streams, all []checked, asJSON bool) error {
	if asJSON {
		return printJSON(std, struct {
			Policies []checked `json:"policies"`
		}{all})
	}
	var text strings.Builder
	paper := newPaper(std.out)
	paper.out = &text
	for i := range all {
		paper.checked(&all[i])
	}
	_, err := io.WriteString(std.out, text.String())
	return err
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
