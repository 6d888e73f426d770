package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muesli/cancelreader"
	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/replay"
)

// replayFlags are the flags of headgate replay.
type replayFlags struct {
	policy, against  string
	logs             []string
	fields           string
	window           time.Duration
	html             string
	json, noProgress bool
}

func newReplay(std streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay --policy FILE --log FILE…",
		Short: "Say what a policy would have done to an access log",
		Long: "Replay judges every request of an access log at its own time, and reports what the policy would have let through\n" +
			"and denied, whom it would have hit, what limits the keys would have needed, and how it differs from another policy.\n" +
			"It reads the common and combined formats of nginx and Apache, and JSON lines; gzip, several files, and - for\n" +
			"standard input. docs/replay.md has an example. Exit codes: 0 there is a report, 2 a policy or a log cannot be read.",
		Example: "  headgate replay --policy new.yaml --log access.log access.log.1.gz\n" +
			"  headgate replay --policy new.yaml --against old.yaml --log access.log --html report.html\n" +
			"  zstd -dc access.log.zst | headgate replay --policy new.yaml --log -",
		RunE: func(cmd *cobra.Command, more []string) error {
			f.logs = append(f.logs, more...)
			return runReplay(cmd.Context(), std, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "file of the policy")
	flags.StringVar(&f.against, "against", "", "file of a policy to compare with, such as the one in force")
	flags.StringArrayVar(&f.logs, "log", nil, "file of an access log, - for standard input; more may follow")
	flags.StringVar(&f.fields, "fields", "", "what the fields of JSON lines mean: time=ts,ip=remote_addr,header.X-App=app,dim.tier=tier")
	flags.DurationVar(&f.window, "window", replay.DefaultWindow, "how late a line may be and still be judged at its own time")
	flags.StringVar(&f.html, "html", "", "write the report to this file as one page, with charts")
	flags.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	flags.BoolVar(&f.noProgress, "no-progress", false, "draw no progress bar, also on a terminal")
	return cmd
}

func runReplay(ctx context.Context, std streams, f replayFlags) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	closers, err := f.openPolicies(&cfg)
	defer func() {
		for _, c := range closers {
			_ = c.Close() // nothing of it is kept
		}
	}()
	if err != nil {
		return err
	}
	page, err := newPageFile(f.html)
	if err != nil {
		return err
	}
	defer page.discard()
	report, err := replayLogs(untilSignal(ctx), std, cfg, f)
	if err != nil {
		return err
	}
	if err := errors.Join(page.write(report), showReplay(std, report, f.json)); err != nil {
		return err
	}
	if f.html != "" && !f.json {
		_, err = fmt.Fprintf(std.out, "\nThe same with charts: %s\n", f.html)
	}
	return err
}

// config checks what the flags say.
func (f *replayFlags) config() (replay.Config, error) {
	fields, err := replay.ParseFields(f.fields)
	switch {
	case err != nil:
		return replay.Config{}, usagef("%w", err)
	case f.policy == "":
		return replay.Config{}, usagef("policy: there is none; name a file with --policy")
	case len(f.logs) == 0:
		return replay.Config{}, usagef("log: there is none; name one with --log, or - for standard input")
	case f.window < 0 || f.window > replay.MaxWindow:
		return replay.Config{}, usagef("window: %s is outside 0s to %s", f.window, replay.MaxWindow)
	}
	return replay.Config{Files: f.logs, Fields: fields, Window: f.window, Progress: &replay.Progress{}}, nil
}

func (f *replayFlags) openPolicies(cfg *replay.Config) (closers []io.Closer, err error) {
	open := func(file string) (replay.Policy, error) {
		p, err := app.OpenReplay(file)
		if err != nil {
			return replay.Policy{}, &app.UsageError{Err: err} // a replay has no other answer than its report
		}
		closers = append(closers, p)
		return p.Policy, nil
	}
	if cfg.Policy, err = open(f.policy); err != nil {
		return closers, err
	}
	known, _ := cfg.Policy.Decider.(interface{ HasDimension(name string) bool })
	for _, name := range cfg.Fields.Dimensions() {
		if known != nil && !known.HasDimension(name) {
			return closers, usagef("fields: policy %s has no dimension %q", f.policy, name)
		}
	}
	if f.against != "" {
		old, err := open(f.against)
		if err != nil {
			return closers, err
		}
		cfg.Against = &old
	}
	return closers, nil
}

func replayLogs(ctx context.Context, std streams, cfg replay.Config, f replayFlags) (*replay.Report, error) {
	if slices.Contains(cfg.Files, replay.Stdin) && std.in != nil {
		cfg.Stdin = std.in
		// A pipe that says nothing must not hold up the end. What cannot be waited for, such as a file, never does.
		if in, err := cancelreader.NewReader(std.in); err == nil {
			defer in.Close()
			stop := context.AfterFunc(ctx, func() { in.Cancel() })
			defer stop()
			cfg.Stdin = in
		}
	}
	bar := startProgress(std, cfg.Progress, f.noProgress)
	report, err := replay.Run(ctx, cfg)
	bar.stop()
	if err != nil {
		return nil, usagef("%w", err)
	}
	return report, nil
}

func showReplay(std streams, report *replay.Report, asJSON bool) error {
	if asJSON {
		return printJSON(std, report)
	}
	return report.WriteText(std.out)
}

// pageFile is the file of a page, which is there under its name only when it is whole.
type pageFile struct {
	name string
	file *os.File
}

// newPageFile makes sure that the page can be written before anything else is done. It is nil if there is to be none.
func newPageFile(name string) (*pageFile, error) {
	if name == "" {
		return nil, nil
	}
	if err := mayBePage(name); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, usagef("html: %s cannot be written: %w", name, err)
	}
	return &pageFile{name, file}, nil
}

// mayBePage refuses what a page must not take the place of: a slip of a flag is no reason to lose a log.
func mayBePage(name string) error {
	if strings.HasPrefix(name, "-") {
		return usagef("html: %q looks like a flag; name a file, such as report.html", name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil: // it is not there, or creating it says why not
		return nil
	case info.IsDir():
		return usagef("html: %s is a folder; name a file in it", name)
	case !info.Mode().IsRegular():
		return usagef("html: %s is no file that a page can take the place of", name)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, len(pageBegins))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != pageBegins {
		return usagef("html: %s is there and is no page; name another file, or remove it", name)
	}
	return nil
}

// pageBegins is how each page begins.
const pageBegins = "<!DOCTYPE html>"

func (p *pageFile) write(report *replay.Report) error {
	if p == nil {
		return nil
	}
	err := report.WriteHTML(p.file)
	if err = errors.Join(err, p.file.Chmod(0o644), p.file.Close()); err == nil {
		err = os.Rename(p.file.Name(), p.name)
	}
	if err != nil {
		return fmt.Errorf("html: %s cannot be written: %w", p.name, err)
	}
	p.file = nil
	return nil
}

// discard removes what has not become a page.
func (p *pageFile) discard() {
	if p != nil && p.file != nil {
		_ = p.file.Close() // write may have done that
		_ = os.Remove(p.file.Name())
	}
}
