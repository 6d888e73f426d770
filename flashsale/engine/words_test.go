package engine

import "testing"

func TestCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 jobs wait", 1: "1 job waits", 2: "2 jobs wait", -1: "-1 jobs wait", 1_000_000: "1000000 jobs wait"} {
		if got := counted(n, "job waits", "jobs wait"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	r := RebuildReport{Epoch: 2, Jobs: 1, Entries: 1, Buyers: 1, Available: 1}
	if got, want := r.String(), "epoch 2: 1 job decided, 0 refused, 0 dropped; 1 entry of 1 buyer loaded, 1 available"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
