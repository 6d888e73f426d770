package replay

import (
	"context"
	"os"
	"testing"
)

func TestPageForLooking(t *testing.T) {
	if *generate == "" {
		t.Skip()
	}
	p, _ := shop(t, "new.yaml", "sliding_log 5/5m")
	q, _ := shop(t, "old.yaml", "sliding_log 60/5m")
	p.Rules[0].Limits = limits("token_bucket 50/s burst=100")
	r, err := Run(context.Background(), Config{Policy: p, Against: &q, Files: []string{*generate}, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := os.Create(*generate + ".html")
	if err := r.WriteHTML(f); err != nil {
		t.Fatal(err)
	}
	_ = r.WriteText(os.Stdout)
}
