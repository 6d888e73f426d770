package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// Bounds of what is listed.
const (
	maxListed     = 100_000
	maxDeadListed = 500
)

// maxSaleFile bounds the file of a sale, in bytes.
const maxSaleFile = 512 << 10

func (s *saleCall) list() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "list", Short: "List the sales, newest first", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := limited(limit, maxListed); err != nil {
				return err
			}
			_, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.List, error) {
				return listSales(ctx, c, limit)
			}, page.list)
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 500, fmt.Sprintf("at most so many of the newest, 1 to %d", maxListed))
	return cmd
}

func (s *saleCall) create() *cobra.Command {
	return s.changes(&cobra.Command{
		Use: "create FILE", Short: "Create a sale from a file in YAML or JSON, as a draft", Args: arguments("FILE"),
		Long: "Create reads a sale from a file (- for the standard input) and creates it as a\n" +
			"draft; nothing is sold until it is opened. The same file again is fine.\n" +
			"docs/sale-admin.md describes the fields.",
		Example: "  headgate sale create spring.yaml --reason 'the spring sale'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.order(); err != nil {
				return err
			}
			sale, err := readSale(s.std, args[0])
			if err != nil {
				return err
			}
			_, err = ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Created, error) {
				return c.Create(ctx, s.id, saleadmin.CreateOrder{Reason: s.reason, Sale: *sale})
			}, page.created)
			return err
		},
	})
}

func (s *saleCall) drop() *cobra.Command {
	return s.changes(&cobra.Command{
		Use: "drop SALE", Short: "Remove a sale that was never opened", Args: arguments("SALE"),
		Long: "Drop removes a draft, with all of its skus, as if it had never been created;\n" +
			"who wanted it and why is kept, and its id is free again. A sale of which a sku\n" +
			"was ever opened stays in the books: drain and close it. It needs the role admin.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.order(); err != nil {
				return err
			}
			_, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Dropped, error) {
				return c.Drop(ctx, s.id, args[0], saleadmin.DropOrder{Reason: s.reason})
			}, page.dropped)
			return err
		},
	})
}

// readSale reads a sale from a file. JSON is YAML too.
func readSale(std streams, file string) (*saleadmin.SaleSpec, error) {
	text, err := readWhole(std, file, maxSaleFile)
	name := file
	if file == "-" {
		name = "standard input"
	}
	if err != nil {
		return nil, usagef("the sale cannot be read: %w", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, usagef("the sale cannot be read: %s is empty; docs/sale-admin.md shows what it may have", name)
	}
	sale := &saleadmin.SaleSpec{}
	if err := yaml.UnmarshalWithOptions(text, sale, yaml.Strict()); err != nil {
		return nil, usagef("%s is not a sale:\n%s", name, strings.TrimRight(yaml.FormatError(err, false, true), "\n"))
	}
	return sale, nil
}

func readAtMost(from io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return text, err
}

// pathless names the file once.
func pathless(file string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", file, err)
}

func (s *saleCall) show() *cobra.Command {
	return &cobra.Command{
		Use: "show SALE", Short: "Show how a sale stands: counters, queues, alarms, what was done", Args: arguments("SALE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Sale, error) {
				return showSale(ctx, c, args[0])
			}, page.sale)
			return err
		},
	}
}

// change gives an order for which there is an answer of type Change.
func (s *saleCall) change(cmd *cobra.Command, give func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Change, error)) error {
	if err := s.order(); err != nil {
		return err
	}
	_, err := ask(cmd.Context(), s, give, page.change)
	return err
}

func (s *saleCall) open() *cobra.Command {
	force := false
	cmd := s.ofSKU(s.changes(&cobra.Command{
		Use: "open SALE", Short: "Open a sale, after the check before an opening", Args: arguments("SALE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.change(cmd, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Change, error) {
				return c.Open(ctx, s.id, args[0], saleadmin.OpenOrder{Reason: s.reason, SKU: s.sku, Force: force})
			})
		},
	}))
	cmd.Flags().BoolVar(&force, "force", false, "open in spite of what the check finds; it needs the role admin")
	return cmd
}

func (s *saleCall) statuses() (all []*cobra.Command) {
	for _, c := range []struct{ verb, short string }{
		{saleadmin.Pause, "Stop reserving for a while; what is reserved can be paid"},
		{saleadmin.Resume, "Reserve again after a pause"},
		{saleadmin.Drain, "Stop reserving for good; what waits is decided"},
		{saleadmin.Close, "Close what is drained and quiet"},
	} {
		all = append(all, s.ofSKU(s.changes(&cobra.Command{
			Use: c.verb + " SALE", Short: c.short, Args: arguments("SALE"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return s.change(cmd, func(ctx context.Context, client *saleadmin.Client) (*saleadmin.Change, error) {
					return client.Status(ctx, s.id, args[0], c.verb, saleadmin.StatusOrder{Reason: s.reason, SKU: s.sku})
				})
			},
		})))
	}
	return all
}

type unitsCall func(c *saleadmin.Client, ctx context.Context, operation, sale, sku string, o saleadmin.UnitsOrder) (*saleadmin.Change, error)

func (s *saleCall) units(verb, short, other string, give unitsCall) *cobra.Command {
	const most = 1_000_000_000
	hint := fmt.Sprintf("write a whole number, 1 to %d; to %s", most, other)
	return numbers(s.changes(&cobra.Command{
		Use: verb + " SALE SKU UNITS", Short: short, Args: arguments("SALE", "SKU", "UNITS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			units, err := wholeNumber("UNITS", args[2], hint, most)
			if err != nil {
				return err
			}
			return s.change(cmd, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Change, error) {
				return give(c, ctx, s.id, args[0], args[1], saleadmin.UnitsOrder{Reason: s.reason, Units: units})
			})
		},
	}), "UNITS", hint)
}

func (s *saleCall) rate() *cobra.Command {
	const most, hint = 1_000_000, "write a whole number of reservations a second, 1 to 1000000"
	return numbers(s.ofSKU(s.changes(&cobra.Command{
		Use: "rate SALE RATE", Short: "Set how many reservations a second SQL is given of each sku", Args: arguments("SALE", "RATE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rate, err := wholeNumber("RATE", args[1], hint, most)
			if err != nil {
				return err
			}
			return s.change(cmd, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Change, error) {
				return c.SetRate(ctx, s.id, args[0], saleadmin.RateOrder{Reason: s.reason, SKU: s.sku, Rate: rate})
			})
		},
	})), "RATE", hint)
}

func (s *saleCall) story() *cobra.Command {
	return &cobra.Command{
		Use: "story SALE USER", Short: "Tell what is known of a shopper, with the reason of each refusal", Args: arguments("SALE", "USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Story, error) {
				return c.Story(ctx, args[0], args[1])
			}, page.story)
			return err
		},
	}
}

func (s *saleCall) dead() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use: "dead SALE SKU", Short: "List the jobs that could not be decided", Args: arguments("SALE", "SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := limited(limit, maxDeadListed); err != nil {
				return err
			}
			_, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.DeadLetters, error) {
				return c.DeadLetters(ctx, args[0], args[1], limit)
			}, page.dead)
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, fmt.Sprintf("at most so many, 1 to %d", maxDeadListed))
	return cmd
}

func (s *saleCall) revive() *cobra.Command {
	return s.changes(&cobra.Command{
		Use: "revive SALE SKU ID…", Short: "Have dead letters decided once more, by their ids in sale dead",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return arguments("SALE", "SKU", "ID…")(cmd, args)
			}
			return arguments("SALE", "SKU", "ID…")(cmd, args[:3])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.order(); err != nil {
				return err
			}
			answer, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Revived, error) {
				return c.Revive(ctx, s.id, args[0], args[1], saleadmin.ReviveOrder{Reason: s.reason, IDs: args[2:]})
			}, func(p page, r *saleadmin.Revived) { p.revived(r, len(args)-2) })
			if err == nil && answer.Revived == 0 {
				return exitWith(exitNo)
			}
			return err
		},
	})
}

func (s *saleCall) report() *cobra.Command {
	return s.ofSKU(&cobra.Command{
		Use: "report SALE", Short: "Say whether stock and SQL agree, by an audit now", Args: arguments("SALE"),
		Long: "Report exits with 1 if something does not hold.",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Report, error) {
				return reportSale(ctx, c, args[0], s.sku)
			}, page.report)
			if err == nil && !agrees(r) {
				return exitWith(exitNo)
			}
			return err
		},
	})
}

// agrees reports whether nothing in a report is wrong.
func agrees(r *saleadmin.Report) bool {
	for i := range r.Audits {
		if !r.Audits[i].OK {
			return false
		}
	}
	if r.Reconciliation == nil {
		return true
	}
	for i := range r.Reconciliation.SKUs {
		if k := &r.Reconciliation.SKUs[i]; k.Drift != "" || len(k.Missing) > 0 {
			return false
		}
	}
	return true
}

func (s *saleCall) match() *cobra.Command {
	since := ""
	cmd := s.changes(&cobra.Command{
		Use: "match", Short: "Compare payments with the provider, and repair what can be", Args: noArguments,
		Long: "Match takes what the provider has decided and nobody here has heard of, makes\n" +
			"refunds that are owed, and reports what remains. It exits with 1 if something\n" +
			"does.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.order(); err != nil {
				return err
			}
			m, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Match, error) {
				return c.Match(ctx, s.id, saleadmin.MatchOrder{Reason: s.reason, Since: since})
			}, page.match)
			if err == nil && !m.OK {
				return exitWith(exitNo)
			}
			return err
		},
	})
	cmd.Flags().StringVar(&since, "since", "", "look at what has changed since this time, such as 2026-11-11T20:00:00+08:00 (default 24 hours ago)")
	return cmd
}

func (s *saleCall) rebuild() *cobra.Command {
	dry := false
	cmd := s.ofSKU(s.changes(&cobra.Command{
		Use: "rebuild SALE", Short: "Load the stock anew from SQL; --dry-run says what that would do", Args: arguments("SALE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dry {
				_, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Plans, error) {
					return planSale(ctx, c, args[0], s.sku)
				}, page.plans)
				return err
			}
			return s.change(cmd, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Change, error) {
				return c.Rebuild(ctx, s.id, args[0], saleadmin.StatusOrder{Reason: s.reason, SKU: s.sku})
			})
		},
	}))
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing")
	return cmd
}

func (s *saleCall) preflight() *cobra.Command {
	return &cobra.Command{
		Use: "preflight [SALE]", Short: "Check whether a sale, or every sale, is ready to be opened",
		Long: "Preflight exits with 1 if something stops an opening.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return arguments("[SALE]")(cmd, args)
			}
			if len(args) == 1 {
				return arguments("SALE")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			sale := ""
			if len(args) == 1 {
				sale = args[0]
			}
			p, err := ask(cmd.Context(), s, func(ctx context.Context, c *saleadmin.Client) (*saleadmin.Preflight, error) {
				return c.Preflight(ctx, sale)
			}, page.preflight)
			if err == nil && !p.OK {
				return exitWith(exitNo)
			}
			return err
		},
	}
}
