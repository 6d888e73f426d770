package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
)

func newAdmin(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Make tokens for the admin listener",
		Args:  subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say what: headgate admin token; see %s --help", cmd.CommandPath())
		},
	}
	cmd.AddCommand(newAdminToken(std))
	return cmd
}

// madeToken is a fresh token, as --json prints it.
type madeToken struct {
	Role  string `json:"role"`
	Name  string `json:"name"`
	Token string `json:"token"`
	Line  string `json:"line"`
}

func newAdminToken(std streams) *cobra.Command {
	var made madeToken
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a token for somebody, with a role",
		Long: "Token prints a fresh token, once and nowhere else, and the line for the file that HEADGATE_ADMIN_TOKENS names. The line\n" +
			"has a hash, from which nobody gets the token back. headgate serve reads the file again when it changes: a line that is\n" +
			"taken out revokes its token at once. Roles: viewer reads; operator also opens, pauses, drains and closes sales, sets rates,\n" +
			"revives dead letters and turns levels; admin also creates sales, changes how many units there are, and rebuilds.",
		Example: "  headgate admin token --role operator --name alice\n" +
			"  headgate admin token --role viewer --name wall-screen --json",
		Args: noArguments,
		RunE: func(*cobra.Command, []string) (err error) {
			switch {
			case made.Role == "":
				return usagef("--role is missing; write viewer, operator or admin")
			case made.Name == "":
				return usagef("--name is missing; say whose token it is: it stands with all that is done with it")
			}
			if made.Token, made.Line, err = app.NewAdminToken(made.Role, made.Name); err != nil {
				return err
			}
			if asJSON {
				return printJSON(std, made)
			}
			_, err = fmt.Fprintf(std.out, "The token of %s, shown only now:\n\n  %s\n\nThe line for the file that HEADGATE_ADMIN_TOKENS names:\n\n  %s\n", made.Name, made.Token, made.Line)
			return err
		},
	}
	cmd.Flags().StringVar(&made.Role, "role", "", "viewer, operator or admin")
	cmd.Flags().StringVar(&made.Name, "name", "", "whose token it is: 1 to 64 letters, digits and . _ @ + -")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
