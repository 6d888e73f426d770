package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// saleCall is what all commands of sale have in common.
type saleCall struct {
	std   streams
	admin string
	json  bool
	// reason and id are those of a change.
	reason, id string
	sku        string
}

func newSale(std streams) *cobra.Command {
	s := &saleCall{std: std}
	cmd := &cobra.Command{
		Use:   "sale",
		Short: "Look after flash sales: create, open, watch, repair",
		Long: "Sale asks the admin listener of a running headgate serve. Everything that\n" +
			"changes something needs a reason, which is kept with the name of the token.\n\n" +
			"The token comes from HEADGATE_ADMIN_TOKEN or the file that\n" +
			"HEADGATE_ADMIN_TOKEN_FILE names; without either, that which a headgate serve\n" +
			"of this machine and user has generated is found by itself.\n\n" +
			"Exit codes: 0 it is so, or done; 1 the answer is no: it was refused, does not\n" +
			"hold, or could not be asked; 2 bad usage.",
		Example: "  headgate sale create spring.yaml --reason 'the spring sale'\n  headgate sale preflight spring\n" +
			"  headgate sale open spring --reason 'as planned'\n  headgate sale show spring",
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("say what to do; see %s --help", cmd.CommandPath())
		},
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.admin, "admin", "http://127.0.0.1:9090", "the admin listener; HEADGATE_ADMIN_URL")
	flags.BoolVar(&s.json, "json", false, "print the answer as one JSON object")
	flags.Lookup("admin").Annotations = map[string][]string{envAnnotation: {"HEADGATE_ADMIN_URL"}}
	cmd.AddCommand(s.list(), s.create(), s.drop(), s.show(), s.open())
	cmd.AddCommand(s.statuses()...)
	cmd.AddCommand(s.units("topup", "Add units to a sku", "take units away, headgate sale withdraw", (*saleadmin.Client).TopUp), s.units("withdraw", "Take units that nobody holds from a sku", "add units, headgate sale topup", (*saleadmin.Client).Withdraw))
	cmd.AddCommand(s.rate(), s.story(), s.dead(), s.revive(), s.report(), s.match(), s.rebuild(), s.preflight())
	return cmd
}

// changes gives a command the flags of a change.
func (s *saleCall) changes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&s.reason, "reason", "", "why; it is kept with what is done")
	cmd.Flags().StringVar(&s.id, "id", "", "name of the operation: the same command with the same one is done once (default a random one)")
	return cmd
}

// ofSKU gives a command the flag that names one sku.
func (s *saleCall) ofSKU(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&s.sku, "sku", "", "one sku alone (default all of the sale)")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("sku") {
			if err := badID(saleadmin.CheckID("--sku", s.sku)); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
	return cmd
}

// subcommand is for commands that have others and do nothing themselves.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // as cobra has it for the root
	hint := "see " + cmd.CommandPath() + " --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("there is no command %q of %s; %s", args[0], cmd.CommandPath(), hint)
}

// arguments takes as many as there are names.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing; write: %s %s", names[len(args)], cmd.CommandPath(), strings.Join(names, " "))
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many; write: %s %s", args[len(names)], cmd.CommandPath(), strings.Join(names, " "))
		}
		for i, name := range names {
			if err := checkArgument(name, args[i]); err != nil {
				return fmt.Errorf("%w; write: %s %s", err, cmd.CommandPath(), strings.Join(names, " "))
			}
		}
		return nil
	}
}

// checkArgument refuses what can be none, before anybody is asked.
func checkArgument(name, text string) error {
	switch {
	case name == "SALE" || name == "SKU":
		return saleadmin.CheckID(name, text)
	case text == "":
		return fmt.Errorf("%s is empty", name)
	}
	return nil
}

// client is one with the token that fits.
func (s *saleCall) client() (*saleadmin.Client, error) {
	token, err := adminToken()
	if err != nil {
		return nil, err
	}
	u, err := adminURL(s.admin)
	if err != nil {
		return nil, err
	}
	if token == "" {
		token, err = app.LocalAdminToken(withPort(u))
		if err != nil {
			return nil, fmt.Errorf("the token of the local listener cannot be read: %w", err)
		}
	}
	if token == "" {
		return nil, usagef("there is no token for %s: set HEADGATE_ADMIN_TOKEN, or HEADGATE_ADMIN_TOKEN_FILE; "+
			"that which headgate serve generates is found only where this user runs it", s.admin)
	}
	c, err := saleadmin.NewClient(saleadmin.ClientConfig{URL: s.admin, Token: token})
	if err != nil {
		return nil, usagef("--admin: %w", err)
	}
	return c, nil
}

func withPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// ask runs one call and prints its answer: with --json as it is, or as text says it.
func ask[T any](ctx context.Context, s *saleCall, call func(ctx context.Context, c *saleadmin.Client) (*T, error), text func(p page, answer *T)) (*T, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	answer, err := call(ctx, c)
	if err != nil {
		return nil, s.failed(err)
	}
	return answer, s.print(answer, func(p page) { text(p, answer) })
}

func (s *saleCall) print(answer any, text func(p page)) error {
	if s.json {
		return printJSON(s.std, answer)
	}
	var b strings.Builder
	text(pageOn(&b, s.std.out))
	_, err := fmt.Fprint(s.std.out, b.String())
	return err
}

// order is a change: it needs a reason, and gets a name by which it can be repeated.
func (s *saleCall) order() error {
	if strings.TrimSpace(s.reason) == "" {
		return usagef("--reason is missing: add --reason 'WHY'; whoever reads what was done will ask")
	}
	if s.id == "" {
		s.id = saleadmin.NewOperationID()
		return nil
	}
	return badID(saleadmin.CheckOperationID("--id", s.id))
}

// whose is the beginning of a line about a sku.
func whose(sku string) string {
	if sku == "" {
		return ""
	}
	return sku + ": "
}

// readWhole reads a file of at most so many bytes; "-" is the standard input.
func readWhole(std streams, file string, most int64) ([]byte, error) {
	from := std.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, pathless(file, err)
		}
		defer f.Close()
		from = f
	}
	text, err := readAtMost(from, most)
	if err != nil {
		return nil, pathless(file, err)
	}
	return text, nil
}
