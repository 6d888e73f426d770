package sqlorders

import (
	"context"
	"fmt"
	"io"
	"os"
)

// childFile in the environment makes this test binary a process that opens that file of SQLite, says so, and holds it until its
// standard input ends.
const childFile = "HEADGATE_TEST_SQLITE_FILE"

func childOpens(file string) {
	o, err := Open(context.Background(), Config{URL: "sqlite:" + file})
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(3)
	}
	if err := o.CreateSale(context.Background(), testSale("of-the-child")); err != nil {
		fmt.Println("failed:", err)
		os.Exit(4)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0) // as a crash: nothing is closed
}
