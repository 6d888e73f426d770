package testlang_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate-io/headgate/limitertest/oracle"
	"github.com/headgate-io/headgate/testlang"
)

func run(t *testing.T, name, text string) *testlang.Report {
	t.Helper()
	file, err := testlang.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: oracle.New(oracle.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("../limitertest/testdata/*.test")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range run(t, name, string(text)).Failures {
			t.Error(f)
		}
	}
}
