package lint

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/policy"
)

var update = flag.Bool("update", false, "write the findings beside the fixtures; review them")

// judged is the day by which fixtures are judged.
var judged = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func findings(t *testing.T, file string) []Finding {
	t.Helper()
	p, err := policy.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return Check(Of(p, judged))
}

// TestFires holds what each check says of a policy that has what it looks for against the text beside it.
func TestFires(t *testing.T) {
	t.Parallel()
	for _, c := range checks() {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			for _, f := range findings(t, filepath.Join("testdata", c.id+".yaml")) {
				if f.ID == c.id {
					got.WriteString(f.String() + "\n    " + f.Reason + "\n    " + f.Suggestion + "\n")
				}
			}
			golden := filepath.Join("testdata", c.id+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || len(want) == 0 || got.String() != string(want) {
				t.Errorf("%v\ngot:\n%swant:\n%s", err, got.String(), want)
			}
		})
	}
}

// FuzzCheck: whatever loads is judged, and every finding says all that it has to say.
func FuzzCheck(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := policy.Parse("fuzz", text, policy.ParseConfig{})
		if err != nil {
			return
		}
		for _, finding := range Check(Of(p, judged)) {
			if finding.Line == 0 || finding.Message == "" || finding.Reason == "" || finding.Suggestion == "" {
				t.Errorf("%+v", finding)
			}
		}
	})
}

// TestNearMisses: what is nearly what a check looks for, and is not, is not reported.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	for _, c := range checks() {
		files, err := filepath.Glob(filepath.Join("testdata", c.id+"*.near.yaml"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no near misses: %v", c.id, err)
		}
		for _, file := range files {
			for _, f := range findings(t, file) {
				if f.ID == c.id {
					t.Errorf("%s: %s", file, f)
				}
			}
		}
	}
}
