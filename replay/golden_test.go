package replay

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at it and run with -update. Got:\n%s", file, got)
	}
}

// replayShop replays logs under the shop's policies, of which the new one allows three log-ins and the old one five.
func replayShop(t *testing.T, files ...string) *Report {
	t.Helper()
	p, f := shop(t, "new.yaml", "sliding_log 3/5m")
	f.deny = "192.0.2.3"
	old, _ := shop(t, "old.yaml", "sliding_log 5/5m")
	r, err := Run(t.Context(), Config{Policy: p, Against: &old, Files: files, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReports(t *testing.T) {
	t.Parallel()
	r := replayShop(t, "testdata/shop.log")
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "shop.txt", text.Bytes())
	asJSON, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "shop.json", append(asJSON, '\n'))
}

// TestOneAlone: without another policy the report has nothing of one.
func TestOneAlone(t *testing.T) {
	t.Parallel()
	p, _ := shop(t, "new.yaml", "sliding_log 3/5m")
	r, err := Run(t.Context(), Config{Policy: p, Files: []string{"testdata/shop.log"}, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Before != nil || r.Difference != nil || r.Against != "" || len(r.Series.Before) != 0 {
		t.Errorf("%+v", r)
	}
	if got := r.Total; got.Requests != 14 || got.Denied != 4 || got.Allowed != 10 || got.ClientsHit.N != 2 {
		t.Errorf("total %+v", got)
	}
}
