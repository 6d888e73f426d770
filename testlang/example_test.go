package testlang_test

import (
	"context"
	"fmt"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/testlang"
)

func ExampleRun() {
	file, err := testlang.Parse("burst.test", []byte(`
limit token_bucket 3/1m burst=3
at 0s  take 3 -> allow remaining=0
at 19s take 1 -> allow
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.OK(), report.Lines, "lines")
	for _, f := range report.Failures {
		fmt.Println(f)
	}
	// Output:
	// false 2 lines
	// burst.test:4: at 19s take 1 -> allow
	// 	expected allow
	// 	got      deny remaining=0 retry_after=1s reset_after=41s
}
