// Command bench compares Headgate with other rate limiters and proxies: on the same machine, in the same run, in rounds in
// which the contenders take turns, so that what disturbs one disturbs all. It prints one table per section.
//
//	go run . [flags]      or  make bench ARGS='...'
//
// It starts the servers it needs itself. A section whose servers are not installed is left out, with a word about it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// options are the flags.
type options struct {
	rounds   int
	duration time.Duration
	sections string
	json     bool
	profile  string
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

// allSections are the sections in the order in which they are printed.
func allSections() []section {
	return []section{
		inProcess(), onRedis(128), onRedis(1), severalLimits(), gatewayOverhead(), memoryInProcess(), memoryInRedis(),
		leasesInProcess(), leasesOnRedis(), denials(), attack(), breakerOpen(), saleStock(), saleSQL(), saleOffered(),
		saleFlood(wholeFlood), saleSteady(steadyRate), saleClicks(millionClicks),
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	o, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	stop, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	defer stop()
	rep := report{Machine: machine(), Versions: versions()}
	for _, s := range allSections() {
		if !o.wants(s.Name) {
			continue
		}
		fmt.Fprintf(stderr, "%s …\n", s.Name)
		measured, err := measure(s, o, stderr)
		if err != nil && !errors.Is(err, testservers.ErrSkipped) {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if err != nil {
			measured = result{Name: s.Name, Title: s.Title, Skipped: err.Error()}
		}
		rep.Results = append(rep.Results, measured)
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(rep)
	}
	return rep.markdown(stdout)
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	names := make([]string, 0, 8)
	for _, s := range allSections() {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 5, "rounds; the median of them is shown")
	f.DurationVar(&o.duration, "duration", 2*time.Second, "time of one contender in one round")
	f.StringVar(&o.sections, "section", "", "only these sections, separated by commas: "+strings.Join(names, ", "))
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process to a file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.duration <= 0 {
		return o, errors.New("-rounds and -duration must be above 0")
	}
	for _, want := range strings.Split(o.sections, ",") {
		if o.sections != "" && !strings.Contains(","+strings.Join(names, ",")+",", ","+want+",") {
			return o, fmt.Errorf("-section %q is none of %s", want, strings.Join(names, ", "))
		}
	}
	return o, nil
}

func (o options) wants(name string) bool {
	return o.sections == "" || strings.Contains(","+o.sections+",", ","+name+",")
}

func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}, nil
}
