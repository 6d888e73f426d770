package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/app"
)

// simpayFlags are the flags of headgate simpay.
type simpayFlags struct {
	app.SimpayConfig
	format, level string
}

func newSimpay(std streams) *cobra.Command {
	var f simpayFlags
	cmd := &cobra.Command{
		Use:   "simpay",
		Short: "Simulate a payment service, for trying a sale out",
		Long: "Simpay is a payment service with which no money moves. It speaks the protocol of docs/payments.md, has a page on which a\n" +
			"person pays, and sends signed webhooks; by its flags it is as bad as a real one. It keeps everything in memory, and\n" +
			"forgets all of it when it ends: the next one knows no payment of before, so end it only with the sale that it pays for.\n" +
			"The secret that it shares with headgate serve comes from HEADGATE_PAY_SECRET, or from the file that\n" +
			"HEADGATE_PAY_SECRET_FILE names, which is taken up when it changes.",
		Example: "  export HEADGATE_PAY_SECRET=$(openssl rand -base64 32)\n" +
			"  headgate simpay --webhook http://127.0.0.1:8080/_headgate/sales/~/webhook &\n" +
			"  headgate serve --policy examples/sale/policy.yaml --sale --db sqlite:sale.db --pay http://127.0.0.1:9400/v1\n" +
			"  headgate simpay --capture 0.9 --fail 0.05 --shopper-max 10s --lost 0.1 --twice 0.1 --late 0.1 --late-by 1m",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), std) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Listen, "listen", "127.0.0.1:9400", "its address")
	flags.StringVar(&f.URL, "url", "", "what shoppers' browsers reach it by (default http:// and the address)")
	flags.StringVar(&f.Webhook, "webhook", "", "where messages go, such as http://127.0.0.1:8080/_headgate/sales/~/webhook (default nowhere)")
	flags.IntVar(&f.Parallel, "parallel", app.DefaultWebhooks, "messages under way at a time, those of one payment one after the other")
	f.behave(flags)
	flags.StringVar(&f.format, "log-format", "text", "text or json")
	flags.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

// behave adds the flags of misbehaviour.
func (f *simpayFlags) behave(flags *pflag.FlagSet) {
	b := &f.Behaviour
	flags.Float64Var(&b.Capture, "capture", 0, "chance, 0 to 1, that a shopper pays without anybody at the page")
	flags.Float64Var(&b.Fail, "fail", 0, "chance that a shopper tries to and fails")
	flags.DurationVar(&b.Shopper.Min, "shopper-min", time.Second, "shortest time that such a shopper takes")
	flags.DurationVar(&b.Shopper.Max, "shopper-max", 5*time.Second, "longest time that such a shopper takes")
	flags.Float64Var(&b.VoidTooLate, "void-too-late", 0, "chance that a void ends as a capture")
	flags.Float64Var(&b.WrongCapture, "wrong-capture", 0, "chance that a capture takes another amount or currency")
	flags.Float64Var(&b.FailBefore, "fail-before", 0, "chance that a call fails before it takes effect")
	flags.Float64Var(&b.FailAfter, "fail-after", 0, "chance that a call fails after it has taken effect")
	flags.Float64Var(&b.Lost, "lost", 0, "chance that a webhook is never sent")
	flags.Float64Var(&b.Twice, "twice", 0, "chance that a webhook is sent twice")
	flags.Float64Var(&b.Late, "late", 0, "chance that a webhook is late")
	flags.DurationVar(&b.LateBy, "late-by", 30*time.Second, "how late such a webhook is")
	flags.Float64Var(&b.Reordered, "reordered", 0, "chance that a webhook comes only after the next one of its payment")
}

func (f *simpayFlags) run(ctx context.Context, std streams) error {
	handler, err := logHandler(std, f.format, f.level)
	if err != nil {
		return err
	}
	f.Log = slog.New(handler)
	if f.Secret, err = secretFromEnv("HEADGATE_PAY_SECRET"); err != nil {
		return err
	}
	f.SecretFile = os.Getenv("HEADGATE_PAY_SECRET_FILE")
	return app.Simpay(untilSignal(ctx), f.SimpayConfig)
}
