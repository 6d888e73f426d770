package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/testlang"
)

// tested is the answer for one file, as --json prints it.
type tested struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Cases    int       `json:"cases"`
	Lines    int       `json:"lines"`
	Runs     int64     `json:"runs"`
	Failures []failure `json:"failures"`
}

type failure struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Run  string `json:"run,omitempty"`
}

// testFlags are the flags of headgate test.
type testFlags struct {
	store, namespace string
	json, verbose    bool
}

func newTest(std streams) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test FILE…",
		Short: "Run unit tests of limits and policies, in virtual time",
		Long: "Test runs files in the .test language against a store and prints each line that answers something else than it\n" +
			"expects. docs/testing.md has the language. Exit codes: 0 all pass, 1 one fails, 2 one cannot be parsed.",
		Example: "  headgate test examples/shop/policy.test\n  headgate test --store redis://127.0.0.1:6379 *.test",
		Args:    atLeastOne("file"),
		RunE:    func(cmd *cobra.Command, files []string) error { return runTest(cmd.Context(), std, f, files) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "memory", "where limits are counted: "+app.StoreForms)
	flags.StringVar(&f.namespace, "namespace", "headgate-test", "keeps users of one Redis apart; each file has a part of its own in it")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "explain every line: the rules that matched, their keys and limits, and what was left")
	return cmd
}

func runTest(ctx context.Context, std streams, f testFlags, names []string) error {
	where, err := storeConfig(f.store, f.namespace)
	if err != nil {
		return err
	}
	files, err := parseTests(names)
	if err != nil {
		return usagef("%w", err)
	}
	where.Log = slog.New(slog.NewTextHandler(std.err, nil))
	store, err := app.OpenStore(ctx, where)
	if err != nil {
		return err
	}
	cfg := testlang.Config{Limiter: store.Limiter, Compile: app.CompilePolicy}
	x := &explainer{out: std.out}
	if f.verbose && !f.json {
		cfg.Trace = x.trace
	}
	reports, err := runTests(untilSignal(ctx), files, cfg)
	if err := errors.Join(err, x.err, store.Close()); err != nil {
		return err
	}
	ok, err := showTests(std, reports, f)
	if err != nil || ok {
		return err
	}
	return exitWith(exitNo)
}

// parseTests reads all files before the first runs, so that a typing mistake in the last one costs nothing.
func parseTests(names []string) ([]*testlang.File, error) {
	var files []*testlang.File
	var all error
	for _, name := range names {
		text, err := readTest(name)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		file, err := testlang.Parse(name, text)
		if err == nil && !slices.ContainsFunc(file.Cases, func(c *testlang.Case) bool { return len(c.Steps) > 0 }) {
			err = fmt.Errorf("%s tests nothing: none of its lines begins with at", name)
		}
		all = errors.Join(all, err)
		files = append(files, file)
	}
	return files, all
}

// readTest reads a file, or a pipe, up to what a test file may have and a byte more, which the parser refuses.
func readTest(name string) ([]byte, error) {
	f, err := os.Open(name)
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, testlang.MaxFileSize+1))
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return nil, fmt.Errorf("%s cannot be read: %w", name, path.Err)
	}
	return text, err
}

func runTests(ctx context.Context, files []*testlang.File, cfg testlang.Config) ([]tested, error) {
	var all []tested
	for _, file := range files {
		report, err := testlang.Run(ctx, file, cfg)
		if errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("%s: interrupted", file.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		t := tested{File: report.File, OK: report.OK(), Cases: report.Cases, Lines: report.Lines, Runs: report.Runs, Failures: []failure{}}
		for _, f := range report.Failures {
			t.Failures = append(t.Failures, failure{Line: f.Line, Text: f.Text, Want: f.Want, Got: f.Got, Run: f.Run})
		}
		all = append(all, t)
	}
	return all, nil
}

// showTests prints what came of it and reports whether all passed.
func showTests(std streams, reports []tested, f testFlags) (bool, error) {
	ok, lines, failed := true, 0, 0
	for _, r := range reports {
		ok = ok && r.OK
		lines += r.Lines
		failed += len(r.Failures)
	}
	if f.json {
		return ok, printJSON(std, struct {
			OK    bool     `json:"ok"`
			Files []tested `json:"files"`
		}{ok, reports})
	}
	var text strings.Builder
	for _, r := range reports {
		if r.OK && f.verbose {
			fmt.Fprintf(&text, "%s: ok, %s in %s\n", r.File, plural(r.Lines, "line"), plural(r.Cases, "case"))
		}
		for _, x := range r.Failures {
			fmt.Fprintln(&text, testlang.Failure{File: r.File, Line: x.Line, Text: x.Text, Run: x.Run, Want: x.Want, Got: x.Got})
		}
	}
	word := "ok"
	if !ok {
		word = "FAIL"
	}
	fmt.Fprintf(&text, "%s: %s, %s, %d failed\n", word, plural(len(reports), "file"), plural(lines, "line"), failed)
	_, err := io.WriteString(std.out, text.String())
	return ok, err
}
