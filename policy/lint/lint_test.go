package lint

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// TestOrder: findings come in the order of the document, of one place the gravest first.
func TestOrder(t *testing.T) {
	t.Parallel()
	log := []headgate.Limit{parsed(t, "sliding_log 500/1h"), parsed(t, "sliding_log 500/1h")}
	rules := []policy.Rule{
		{Name: "a", Mode: policy.Enforce, Paths: []string{"/_headgate/x"}, Key: []string{"user"}, KeyDimensions: [][]string{{"user"}}, Limits: log, When: "false", WhenNever: true},
		{Name: "off", Mode: policy.Off, Paths: []string{"/_headgate/x"}, Limits: log},
	}
	var ids []string
	for _, f := range Check(Input{Rules: rules, Dimensions: []policy.Dimension{{Name: "user", Source: "cookie", Forgeable: true}}}) {
		ids = append(ids, f.ID)
		if f.Rule != "a" || f.Message == "" || f.Reason == "" || f.Suggestion == "" {
			t.Errorf("finding %+v", f)
		}
	}
	want := []string{"never-matches", "never-matches", "forgeable-key", "large-log", "large-log", "redundant-limit"}
	if len(ids) != len(want) {
		t.Fatalf("got %v, want %v", ids, want)
	}
	for i := range want {
		if ids[i] != want[i] {
			t.Fatalf("got %v, want %v", ids, want)
		}
	}
}
