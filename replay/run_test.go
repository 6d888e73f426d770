package replay

import (
	"bytes"
	"context"
	"testing"
)

func TestSmoke(t *testing.T) {
	var log bytes.Buffer
	if err := writeLog(&log, 1, 200_000); err != nil {
		t.Fatal(err)
	}
	p, _ := shop(t, "new.yaml", "sliding_log 5/5m")
	q, _ := shop(t, "old.yaml", "sliding_log 20/5m")
	r, err := Run(context.Background(), Config{Policy: p, Against: &q, Files: []string{"-"}, Stdin: &log, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	b.Reset()
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.Len())
}
