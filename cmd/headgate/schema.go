package main

import (
	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/policy"
)

func newSchema(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a policy, for editors",
		Long: "Schema prints a JSON Schema (draft 2020-12) of the policy document. An editor that has it completes fields, shows\n" +
			"what they mean, and marks what is misspelt; docs/check.md says how. headgate check sees more.",
		Example: "  headgate schema > headgate.schema.json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			text, err := policy.Schema()
			if err != nil {
				return err
			}
			_, err = std.out.Write(text)
			return err
		},
	}
}
