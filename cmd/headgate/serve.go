package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
)

// serving is what the flags of serve say.
type serving struct {
	cfg                             app.ServeConfig
	store, namespace, format, level string
	sale                            saleFlags
	access                          bool
}

func newServe(std streams) *cobra.Command {
	s := serving{cfg: app.ServeConfig{Version: readBuild().String()}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Guard a service: the gateway in front of it, under a policy",
		Long: "Serve listens, judges every request by the policy, answers what is denied and passes on what is allowed. SIGTERM and\n" +
			"Ctrl-C drain: no new connections, requests that are under way may end; a second one ends at once. A policy that\n" +
			"changes, or a file that it names, is taken up by itself; SIGHUP has it loaded now.\n" +
			"The token of the admin listener comes from HEADGATE_ADMIN_TOKEN, or from the file that HEADGATE_ADMIN_TOKEN_FILE\n" +
			"names; on loopback one is generated where there is none, and the log says in which file it lies.\n" +
			"HEADGATE_ADMIN_TOKENS names a file of further tokens, each with its role; headgate admin token makes one. The key\n" +
			"that signs the marks of on_deny: mark comes from HEADGATE_MARK_KEY or HEADGATE_MARK_KEY_FILE.\n" +
			"With --sale it runs flash sales under /_headgate/sales/, and needs no --upstream. The keys of order tokens come from\n" +
			"HEADGATE_SALE_KEYS or HEADGATE_SALE_KEYS_FILE, the secret of the payment service from HEADGATE_PAY_SECRET or\n" +
			"HEADGATE_PAY_SECRET_FILE; such a file is taken up when it changes. --db and --sale-store, which hold passwords, can be\n" +
			"files too: HEADGATE_DB_FILE, HEADGATE_SALE_STORE_FILE.",
		Example: "  headgate serve --policy examples/shop/policy.yaml --upstream http://127.0.0.1:9000\n" +
			"  headgate serve --policy policy.yaml --upstream http://app:9000 --store redis://redis:6379 --listen :80\n" +
			"  headgate serve --policy examples/sale/policy.yaml --sale --db sqlite:sale.db --pay simulated --admin 127.0.0.1:9090",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), std) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.cfg.Policy, "policy", "", "file with the policy")
	flags.StringSliceVar(&s.cfg.Upstreams, "upstream", nil, "service to guard: http://HOST:PORT, https:// or h2c://; several servers of it with commas, or by more flags")
	flags.StringVar(&s.cfg.HealthPath, "upstream-health", "", "path that a server answers with 200 to when it works, for one that was ejected (default: it accepts a connection)")
	flags.DurationVar(&s.cfg.ResponseTimeout, "upstream-timeout", app.DefaultResponseTimeout, "how long the service may take to begin its answer")
	flags.BoolVar(&s.cfg.Adaptive, "adaptive", false, "bound the requests at each server of the service by what it turns out to take")
	flags.StringVar(&s.store, "store", "memory", "where limits are counted: "+app.StoreForms)
	flags.StringVar(&s.namespace, "namespace", "", "keeps users of one Redis apart (default "+app.DefaultNamespace+")")
	flags.IntVar(&s.cfg.Instances, "instances", 1, "how many processes share the store, as long as it cannot say so: what limits are divided by when this one starts without it")
	s.sale.add(flags)
	flags.StringVar(&s.cfg.Listen, "listen", ":8080", "address of the gateway")
	flags.StringVar(&s.cfg.TLSCert, "tls-cert", "", "file with the certificate, to serve HTTPS")
	flags.StringVar(&s.cfg.TLSKey, "tls-key", "", "file with the key of the certificate")
	flags.BoolVar(&s.cfg.ProxyProtocol, "proxy-protocol", false, "take the client's address from the PROXY protocol of the policy's trusted proxies")
	flags.StringVar(&s.cfg.Admin, "admin", "", "address of /healthz, /readyz, /status, /levels, /metrics and /sales, such as 127.0.0.1:9090 (default none)")
	flags.StringVar(&s.cfg.AdminTokenFile, "write-admin-token", "", "file to write a generated admin token to (default one in the user's runtime folder)")
	flags.DurationVar(&s.cfg.Drain, "drain", app.DefaultDrain, "how long requests under way may take to end when stopping")
	flags.StringVar(&s.format, "log-format", "text", "text or json")
	flags.StringVar(&s.level, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&s.access, "access-log", false, "log a line for each request")
	return cmd
}

func (s *serving) run(ctx context.Context, std streams) error {
	cfg := &s.cfg
	if err := s.sale.stray(); err != nil {
		return err
	}
	switch {
	case cfg.Policy == "":
		return usagef("--policy is missing; see headgate serve --help")
	case len(cfg.Upstreams) == 0 && !s.sale.on:
		return usagef("--upstream is missing; see headgate serve --help")
	}
	handler, err := logHandler(std, s.format, s.level)
	if err != nil {
		return err
	}
	cfg.Log = slog.New(handler)
	if s.access {
		cfg.AccessLog = cfg.Log
	}
	if cfg.AdminToken, err = adminToken(); err != nil {
		return err
	}
	cfg.AdminTokens = os.Getenv("HEADGATE_ADMIN_TOKENS")
	if cfg.MarkKey, err = markKey(); err != nil {
		return err
	}
	if cfg.Store, err = storeConfig(s.store, s.namespace); err != nil {
		return err
	}
	if cfg.Sale, err = s.sale.config(cfg.Store); err != nil {
		return err
	}
	if cfg.Drain <= 0 {
		return usagef("--drain %s is not above zero; write at least 1ms", cfg.Drain)
	}
	app.BoundMemory(cfg.Log)
	if cfg.Instances < 1 {
		return usagef("--instances %d is below 1", cfg.Instances)
	}
	if cfg.ResponseTimeout <= 0 {
		return usagef("--upstream-timeout %s is not above zero; write at least 1ms", cfg.ResponseTimeout)
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	cfg.Reload = hangup
	return app.Serve(untilSignal(ctx), *cfg)
}

// The least lengths of the key that signs marks, and of the token of the admin listener, in bytes.
const (
	minMarkKey    = 16
	minAdminToken = 16
)

// adminToken returns the token that was given, "" for none. It must be one that cannot be guessed, and can be sent.
func adminToken() (string, error) {
	token, err := secretFromEnv("HEADGATE_ADMIN_TOKEN")
	switch {
	case err != nil || token == "":
	case len(token) < minAdminToken:
		err = usagef("HEADGATE_ADMIN_TOKEN is so short that it can be guessed; write at least %d bytes, such as of: openssl rand -hex 32", minAdminToken)
	case app.Repetitive(token):
		err = usagef("HEADGATE_ADMIN_TOKEN repeats a few bytes, so that it can be guessed; write one such as of: openssl rand -hex 32")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		err = usagef("HEADGATE_ADMIN_TOKEN cannot be sent in a header: it has a space, a line's end or something else beyond plain ASCII characters")
	}
	return token, err
}

func markKey() ([]byte, error) {
	key, err := secretFromEnv("HEADGATE_MARK_KEY")
	if err == nil && key != "" && len(key) < minMarkKey {
		err = usagef("HEADGATE_MARK_KEY is too short to sign with; write at least %d bytes, such as of: openssl rand -hex 32", minMarkKey)
	}
	if err == nil && key != "" && app.Repetitive(key) {
		err = usagef("HEADGATE_MARK_KEY repeats a few bytes, so that it can be guessed; write one such as of: openssl rand -hex 32")
	}
	return []byte(key), err
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
