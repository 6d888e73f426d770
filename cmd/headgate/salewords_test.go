package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// TestASaleFromStandardInput: what is wrong with it is said of standard input, not of a file that is called "-".
func TestASaleFromStandardInput(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" \n":                "standard input is empty",
		"id: spring\nday: 1": "standard input is not a sale:\n[2:1] unknown field \"day\"\n",
	} {
		file := filepath.Join(t.TempDir(), "sale")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readSale(streams{in: in}, "-")
		_ = in.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.HasSuffix(err.Error(), "\n") {
			t.Errorf("of %q is said: %v", text, err)
		}
	}
}

// TestIdsAreShownWhole: an id that is shown is typed again, so none is cut; what stands beside it is, at the width of the longest id.
func TestIdsAreShownWhole(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	id := strings.Repeat("i", flashsale.MaxID)
	page{&out}.alarms([]saleadmin.Alarm{{Kind: "backlog", SKU: id}}, "one")
	if text := out.String(); !strings.Contains(text, "  "+id+"  ") {
		t.Errorf("an id is cut:\n%s", text)
	}
}

// TestAStoryWithoutTheStock: each sku that does not answer has its line.
func TestAStoryWithoutTheStock(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	page{&out}.story(&saleadmin.Story{StockError: "spring/a: away\nspring/b: away", Refusals: saleadmin.Refusals{Fleet: true}})
	if want := "reservations may be missing: spring/a: away\nreservations may be missing: spring/b: away\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("got:\n%s", out.String())
	}
}
