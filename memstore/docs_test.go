package memstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/testlang"
)

// TestDocs runs every example of docs/algorithms.md.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```test\n")
	if len(parts) < 10 {
		t.Fatalf("found %d examples", len(parts)-1)
	}
	for i, part := range parts[1:] {
		example, _, _ := strings.Cut(part, "```")
		file, err := testlang.Parse(fmt.Sprintf("docs/algorithms.md, example %d", i+1), []byte(example))
		if err != nil {
			t.Fatal(err)
		}
		store := memstore.New(memstore.Config{})
		report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: store})
		if err != nil {
			t.Error(err)
		}
		for _, f := range report.Failures {
			t.Error(f)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}
