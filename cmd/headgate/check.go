package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/policy"
)

// checked is the answer for one policy, as --json prints it.
type checked struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Rules    int       `json:"rules"`
	Problems []problem `json:"problems"`
	// More is how many problems were left out.
	More int `json:"more"`
}

type problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func newCheck(std streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check POLICY…",
		Short: "Say whether policies are valid, and everything that is wrong with them",
		Long: "Check reads policies as serve would, and lists everything that is wrong with each, with file, line and column.\n" +
			"Exit codes: 0 all are valid, 1 one is not, 2 one cannot be read.",
		Example: "  headgate check examples/shop/policy.yaml",
		Args:    atLeastOne("policy"),
		RunE: func(_ *cobra.Command, files []string) error {
			all := []checked{}
			code := exitGood
			var unread error
			for _, file := range files {
				c, err := check(file)
				if err != nil {
					unread = errors.Join(unread, err)
					continue
				}
				if !c.Valid {
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
	return cmd
}

// check reads one policy. An error means that there is nothing to judge.
func check(file string) (checked, error) {
	p, err := app.LoadPolicy(file)
	var bad *policy.Error
	switch {
	case err == nil:
		return checked{File: file, Valid: true, Rules: len(p.Rules()), Problems: []problem{}}, nil
	case !errors.As(err, &bad):
		return checked{}, err
	}
	c := checked{File: file, More: bad.More}
	for _, p := range bad.Problems {
		c.Problems = append(c.Problems, problem{Line: p.Line, Column: p.Column, Message: p.Message})
	}
	return c, nil
}

func showChecked(std streams, all []checked, asJSON bool) error {
	if asJSON {
		return printJSON(std, struct {
			Policies []checked `json:"policies"`
		}{all})
	}
	var text strings.Builder
	for _, c := range all {
		if c.Valid {
			fmt.Fprintf(&text, "%s: valid, %s\n", c.File, plural(c.Rules, "rule"))
		}
		for _, p := range c.Problems {
			fmt.Fprintln(&text, policy.Problem{File: c.File, Line: p.Line, Column: p.Column, Message: p.Message})
		}
		if c.More > 0 {
			fmt.Fprintf(&text, "%s: and %d more\n", c.File, c.More)
		}
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
