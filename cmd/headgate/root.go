package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/policy"
)

// Exit codes.
const (
	exitGood  = 0
	exitNo    = 1 // the answer is no
	exitUsage = 2 // what was asked for makes no sense
)

// streams are where a command reads and writes: results go to out, everything else to err.
type streams struct {
	in       *os.File
	out, err io.Writer
}

// verdict ends a command that has said what there is to say with an exit code.
type verdict int

// Error implements error; there is nothing more to say.
func (verdict) Error() string { return "" }

// run runs the command that args name and returns its exit code.
func run(ctx context.Context, args []string, std streams) int {
	started := false
	root := newRoot(std, &started)
	err := unknownCommand(root, args)
	if err == nil {
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return exitGood
	}
	complain(std, err)
	var code verdict
	var usage *app.UsageError
	switch {
	case errors.As(err, &code):
		return int(code)
	case !started, errors.As(err, &usage): // what fails before a command starts is flags and arguments
		return exitUsage
	}
	return exitNo
}

// complain says what is wrong; of a policy with several mistakes, how many there are before each.
func complain(std streams, err error) {
	var invalid *policy.Error
	switch text := clean(err.Error()); { // whatever it quotes
	case text == "":
	case errors.As(err, &invalid) && len(invalid.Problems) > 1:
		fmt.Fprintf(std.err, "headgate: the policy has %d errors:\n%s\n", len(invalid.Problems)+invalid.More, text)
	default:
		p := newPaper(std.err)
		for line := range strings.SplitSeq("headgate: "+text, "\n") {
			p.line("", line)
		}
	}
}

func newRoot(std streams, started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "headgate",
		Short: "Decides how much of a flood gets in",
		Long: "Headgate keeps an HTTP service standing under a flood: exact rate limits, on memory or Redis, as a gateway in\n" +
			"front of the service. headgate demo shows it in half a minute, with nothing else installed.\n\n" +
			"Every flag can be given by the environment: --store as HEADGATE_STORE. Results go to stdout, logs to stderr.\n" +
			"Exit codes: 0 good, 1 the answer is no, 2 bad usage.",
		Version:       readBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd, os.LookupEnv); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetVersionTemplate("headgate {{.Version}}\n")
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(foldedHelp(std, root.HelpFunc()))
	root.AddCommand(newServe(std), newDemo(std), newTest(std), newCheck(std), newReplay(std), newSchema(std), newVersion(std), newSale(std), newAdmin(std), newSimpay(std))
	return root
}

// foldedHelp writes what help writes; on a terminal, lines for which it has no room are broken between words, and go on in their column.
func foldedHelp(std streams, help func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(nil) // that of the root again
		if !cmd.HasParent() {
			cmd.SetOut(std.out)
		}
		p := newPaper(std.out)
		for line := range strings.Lines(text.String()) {
			p.help(strings.TrimSuffix(line, "\n"))
		}
	}
}

// helpColumn is that of flags and commands, before what is said of them.
var helpColumn = regexp.MustCompile(`^ +\S+( \S+)*  +`)

// help writes a line of help. A command of an example is not broken, so that it can be copied.
func (p paper) help(line string) {
	column := helpColumn.FindString(line)
	if column == "" && strings.HasPrefix(line, " ") {
		p.width = 0
	}
	p.hang("", line, strings.Repeat(" ", len(column)))
}

// flagError says what is wrong with a flag, in the words of people.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if takes := map[string]string{
			"int": "a whole number", "int64": "a whole number", "float64": "a number", "duration": "a length of time such as 30s or 5m", "bool": "true or false",
		}[bad.GetFlag().Value.Type()]; takes != "" {
			return fmt.Errorf("--%s is %.40q, and takes %s; see %s --help", bad.GetFlag().Name, bad.GetValue(), takes, cmd.CommandPath())
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// unknownCommand says what is meant by the name of a command that there is not.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if _, _, err := root.Find(args); err == nil {
		return nil
	}
	name := ""
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			name = arg
			break
		}
	}
	hint := "see headgate --help"
	if near := root.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("there is no command %q; %s", name, hint)
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, and %q is one; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

func atLeastOne(thing string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs at least one %s; see %s --help", cmd.CommandPath(), thing, cmd.CommandPath())
		}
		return nil
	}
}

// fromEnvironment sets each flag that is not on the command line from HEADGATE_NAME, if that is there and not empty.
func fromEnvironment(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := envName(f)
		value, ok := lookup(name)
		if !ok || value == "" || f.Changed || f.Name == "help" || first != nil {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			first = fmt.Errorf("%s has a value that --%s does not take", name, f.Name) // the value may be a secret
		}
	})
	return first
}

// envAnnotation is that of a flag whose variable is not named as it is.
const envAnnotation = "headgate_env"

func envName(f *pflag.Flag) string {
	if names := f.Annotations[envAnnotation]; len(names) > 0 {
		return names[0]
	}
	return "HEADGATE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// printJSON prints one JSON object on one line, with nothing in it that a terminal would obey.
func printJSON(std streams, v any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(std.out, escaped(text.String()))
	return err
}

func usagef(format string, args ...any) error {
	return &app.UsageError{Err: fmt.Errorf(format, args...)}
}

// exitWith ends a command that has said what there is to say.
func exitWith(code int) error {
	if code == exitGood {
		return nil
	}
	return verdict(code)
}
