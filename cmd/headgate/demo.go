package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/demo/chaos"
	"github.com/headgate-io/headgate/demo/demoview"
	"github.com/headgate-io/headgate/demo/redisserver"
)

// demoFlags are the flags of headgate demo.
type demoFlags struct {
	demo.Config
	store string
	db    string
	chaos bool
	json  bool
	plain bool
}

func newDemo(std streams) *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show it all: a shop, a sale, the gateway in front, shoppers and bots",
		Long: "Demo runs a sample shop with the gateway in front of it and sends a crowd through it over real HTTP: shoppers who\n" +
			"want one of the few things on sale, and a bot farm that wants them all. What they reserve they pay for, or do not, and\n" +
			"then others get it. Nothing needs to be installed, and the gateway's URL is a page on which you can buy as well.\n" +
			"On a terminal it is shown live; Ctrl-C ends it early. It ends with a summary, with --json as one JSON object, and with\n" +
			"exit code 1 if the sale has not kept its word: nothing sold twice, nobody told two things, every payment used or given back.\n\n" +
			"With --store redis-server limits are counted in a Redis that the demo starts and ends, and the stock lies in another one;\n" +
			"with --db postgres-server the orders are in a PostgreSQL of its own. With --store redis-server --chaos three instances\n" +
			"share the Redis of the limits, and it is killed, stopped, emptied and started again meanwhile. A referee counts what was\n" +
			"admitted over the limits: 0 while the data was there, and within its bound without. The exit code is 1 if that was not so.",
		Example: "  headgate demo\n  headgate demo --duration 1m --store redis://127.0.0.1:6379 --json\n" +
			"  headgate demo --store redis-server --db postgres-server\n" +
			"  headgate demo --chaos --store redis-server",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), std, f) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.Duration, "duration", demo.DefaultDuration, "how long the crowd comes")
	flags.StringVar(&f.store, "store", "memory", "where limits are counted: "+ownRedisForm+", "+app.StoreForms)
	flags.StringVar(&f.db, "db", memoryDB, "database of the sale's orders, of nobody but demos: "+demoDBForms)
	flags.StringVar(&f.Listen, "listen", demo.DefaultListen, "address of the gateway")
	flags.Uint64Var(&f.Seed, "seed", 1, "where chance comes from")
	flags.IntVar(&f.Shoppers, "shoppers", demo.DefaultShoppers, "number of people")
	flags.IntVar(&f.Bots, "bots", demo.DefaultBots, "number of workers of the bot farm")
	flags.IntVar(&f.Stock, "stock", demo.DefaultStock, "number of things on sale")
	flags.BoolVar(&f.chaos, "chaos", false, "stop and restart the Redis meanwhile, and count what is over a limit; needs a --store of the demo's own")
	flags.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	flags.BoolVar(&f.plain, "plain", false, "write a line a second, also on a terminal")
	return cmd
}

func runDemo(ctx context.Context, std streams, f demoFlags) error {
	if err := errors.Join(noneOrMore("shoppers", &f.Shoppers), noneOrMore("bots", &f.Bots), f.Check()); err != nil {
		return usagef("%w", err)
	}
	if f.Duration == 0 { // which is the default to demo.Config
		return usagef("duration: 0s is too short; write one such as 30s")
	}
	if f.Stock == 0 { // likewise
		return usagef("stock: 0 is too few; write a number such as %d", demo.DefaultStock)
	}
	if err := f.checkChaos(); err != nil {
		return usagef("%w", err)
	}
	if f.Listen == "" {
		return usagef("listen: the address is empty; write one such as %s", demo.DefaultListen)
	}
	ctx, quit := context.WithCancel(untilSignal(ctx))
	defer quit()
	store, err := demoStore(ctx, f.store)
	if err != nil {
		return err
	}
	// The chaos is the store's of the limits; the sale keeps out of it.
	if err := store.openSale(ctx, f.db, !f.chaos); err != nil {
		return errors.Join(err, store.close())
	}
	f.Sale = store.sale
	show := startShow(std, f.plain, quit)
	run := demoOn
	if f.chaos {
		run = chaosOn
	}
	sum, err := run(ctx, store, f.Config, show)
	if err := errors.Join(err, show.close(), store.close()); err != nil {
		return err
	}
	if f.json {
		err = printJSON(std, sum)
	} else {
		_, err = io.WriteString(std.out, demoview.Report(sum))
	}
	if err != nil {
		return err
	}
	return kept(std, sum)
}

// kept says, with the exit code and the reasons, that a demo has not kept what it promises.
func kept(std streams, sum *demo.Summary) error {
	for _, broken := range sum.Invariants.Broken {
		fmt.Fprintf(std.err, "headgate: demo: the sale has not kept its word: %s\n", broken)
	}
	if !sum.Invariants.OK || sum.Chaos != nil && !sum.Chaos.Kept {
		return exitWith(exitNo)
	}
	return nil
}

func (f *demoFlags) checkChaos() error {
	switch {
	case !f.chaos:
		return nil
	case !isProgram(f.store):
		return fmt.Errorf("chaos: it stops and empties the Redis of the demo, which must be its own; add --store %s", redisserver.DefaultProgram)
	}
	return chaos.Config{Demo: f.Config}.Check()
}

// noneOrMore turns the 0 of a flag, which means none, into what [demo.Config] writes for none.
func noneOrMore(name string, n *int) error {
	switch {
	case *n < 0:
		return fmt.Errorf("%s: %d is below 0", name, *n)
	case *n == 0:
		*n = -1
	}
	return nil
}

func demoOn(ctx context.Context, where *demoStorage, cfg demo.Config, show *show) (*demo.Summary, error) {
	p, err := demo.Policy()
	if err != nil {
		return nil, err
	}
	where.Log = show.log
	store, err := app.OpenStore(ctx, where.StoreConfig)
	if err != nil {
		return nil, err
	}
	if where.own != nil {
		store.Name = where.own.name()
	}
	guard, err := app.NewGuard(p, app.GuardConfig{Store: store, Log: show.log})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	cfg.Decider, cfg.Policy, cfg.Store = guard, demo.PolicyName, store.Name
	cfg.Watch, cfg.Every, cfg.Log = show.watch, show.every, show.log
	sum, err := demo.Run(ctx, cfg)
	return sum, errors.Join(err, guard.Close(), store.Close())
}

// chaosOn is demoOn with a store that is made to fail.
func chaosOn(ctx context.Context, where *demoStorage, cfg demo.Config, show *show) (*demo.Summary, error) {
	where.Log = slog.New(demo.OnlyErrors(show.log.Handler()))
	cfg.Watch, cfg.Every, cfg.Log = show.watch, show.every, show.log
	return chaos.Run(ctx, chaos.Config{Demo: cfg, Store: where.StoreConfig, Name: where.own.name(), Server: where.own.Server})
}

// show is how a running demo is shown, and what becomes of its log meanwhile.
type show struct {
	watch func(demo.Snapshot)
	every time.Duration
	log   *slog.Logger
	close func() error
}

// startShow shows live on a terminal and plainly elsewhere. quit is called by whoever wants to end.
func startShow(std streams, plain bool, quit func()) *show {
	out, ok := std.err.(*os.File)
	if plain || !ok || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return &show{
			watch: demoview.Plain(std.err), every: time.Second, log: slog.New(slog.NewTextHandler(std.err, nil)),
			close: func() error { return nil },
		}
	}
	var keyboard io.Reader
	if std.in != nil && term.IsTerminal(int(std.in.Fd())) {
		keyboard = std.in
	}
	live := demoview.StartLive(keyboard, out, quit)
	late := new(heldLog)
	return &show{
		watch: live.Watch, every: demoview.LiveEvery, log: slog.New(slog.NewTextHandler(late, nil)),
		// A log line would tear the picture; what was logged comes when the terminal is free again.
		close: func() error { return errors.Join(live.Close(), late.flush(out)) },
	}
}
