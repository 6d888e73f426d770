package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// The flags of the fault tests.
var (
	tableFile = flag.String("faults.table", "", "write the table of the faults to this file, in Markdown; into the place for it if the file has one")
	full      = flag.Bool("faults.full", false, "flood with keys for a minute rather than 5 s; also HEADGATE_FAULTS_FULL=1")
)

// atOnce is how many faults are tested at a time. They wait more than they work.
const atOnce = "6"

func TestMain(m *testing.M) {
	if config := os.Getenv(instanceEnv); config != "" {
		if err := runInstance(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce) // the flag is there, and takes a number
	}
	os.Exit(m.Run())
}

// wholeTime tells whether the flood of keys lasts a minute.
func wholeTime() bool { return *full || os.Getenv("HEADGATE_FAULTS_FULL") == "1" }
