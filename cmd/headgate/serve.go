package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
)

func newServe(std streams) *cobra.Command {
	var cfg app.ServeConfig
	var store, namespace, format, level string
	var access bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Guard a service: the gateway in front of it, under a policy",
		Long: "Serve listens, judges every request by the policy, answers what is denied and passes on what is allowed. SIGTERM and\n" +
			"Ctrl-C drain: no new connections, requests that are under way may end; a second one ends at once.\n" +
			"The token of an admin listener beyond loopback comes from HEADGATE_ADMIN_TOKEN, or from the file that\n" +
			"HEADGATE_ADMIN_TOKEN_FILE names.",
		Example: "  headgate serve --policy examples/shop/policy.yaml --upstream http://127.0.0.1:9000\n" +
			"  headgate serve --policy policy.yaml --upstream http://app:9000 --store redis://redis:6379 --listen :80",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch "" {
			case cfg.Policy:
				return usagef("--policy is missing; see headgate serve --help")
			case cfg.Upstream:
				return usagef("--upstream is missing; see headgate serve --help")
			}
			handler, err := logHandler(std, format, level)
			if err != nil {
				return err
			}
			cfg.Log = slog.New(handler)
			if access {
				cfg.AccessLog = cfg.Log
			}
			if cfg.AdminToken, err = secretFromEnv("HEADGATE_ADMIN_TOKEN"); err != nil {
				return err
			}
			if cfg.Store, err = storeConfig(store, namespace); err != nil {
				return err
			}
			if cfg.Drain <= 0 {
				return usagef("--drain %s is not above zero; write at least 1ms", cfg.Drain)
			}
			return app.Serve(untilSignal(cmd.Context()), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Policy, "policy", "", "file with the policy")
	flags.StringVar(&cfg.Upstream, "upstream", "", "service to guard: http://HOST:PORT, https:// or h2c://")
	flags.StringVar(&store, "store", "memory", "where limits are counted: "+app.StoreForms)
	flags.StringVar(&namespace, "namespace", "", "keeps users of one Redis apart (default "+app.DefaultNamespace+")")
	flags.StringVar(&cfg.Listen, "listen", ":8080", "address of the gateway")
	flags.StringVar(&cfg.TLSCert, "tls-cert", "", "file with the certificate, to serve HTTPS")
	flags.StringVar(&cfg.TLSKey, "tls-key", "", "file with the key of the certificate")
	flags.BoolVar(&cfg.ProxyProtocol, "proxy-protocol", false, "take the client's address from the PROXY protocol of the policy's trusted proxies")
	flags.StringVar(&cfg.Admin, "admin", "", "address of /healthz and /readyz, such as 127.0.0.1:9090 (default none)")
	flags.DurationVar(&cfg.Drain, "drain", app.DefaultDrain, "how long requests under way may take to end when stopping")
	flags.StringVar(&format, "log-format", "text", "text or json")
	flags.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&access, "access-log", false, "log a line for each request")
	return cmd
}

func logHandler(std streams, format, level string) (slog.Handler, error) {
	var opts slog.HandlerOptions
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %q is not one of debug, info, warn and error", level)
	}
	opts.Level = l
	switch format {
	case "text":
		return slog.NewTextHandler(std.err, &opts), nil
	case "json":
		return slog.NewJSONHandler(std.err, &opts), nil
	}
	return nil, usagef("--log-format %q is not one of text and json", format)
}
