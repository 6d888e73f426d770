package resilience

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// childEnv tells this test binary to be the process that is measured.
const childEnv = "HEADGATE_OVERLOAD_CHILD"

// inChild runs a test once more in a process of its own, with these variables, and reports whether that is this one.
func inChild(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		return true
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*giveUp)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), childEnv+"=1"), env...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

const chunk = 1 << 20

// Memory for real: where GOMEMLIMIT alone has garbage collected, garbage up to the limit sheds nobody, what is in use does, and
// it ends when that is given back.
func TestOverloadMemoryForReal(t *testing.T) {
	if !inChild(t, "GOMEMLIMIT=256MiB", "GOGC=off") {
		return
	}
	if debug.SetMemoryLimit(-1) != 256*chunk {
		t.Fatal("GOMEMLIMIT is not in force")
	}
	o := NewOverload(OverloadConfig{CPU: 2, Interval: 100 * time.Millisecond})
	defer o.Close()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for after := before; after.NumGC < before.NumGC+3; runtime.ReadMemStats(&after) {
		runtime.KeepAlive(fill(64))
		if o.Shed(Sheddable) {
			t.Fatalf("garbage sheds: %+v", o.Stats())
		}
	}
	kept := fill(235)
	runtime.GC()
	// A sample may have come when it was filled up to the threshold alone.
	await(t, "it sheds", func() bool { return o.Shed(Sheddable) && o.Danger() && o.Stats().Memory > 0.9 })
	if s := o.Stats(); s.MemoryBy != "limit of GOMEMLIMIT" || s.MemoryBound != 256*chunk ||
		!strings.HasPrefix(s.Why, "memory at 8") && !strings.HasPrefix(s.Why, "memory at 9") || !strings.Contains(s.Why, "% of 256 MiB") {
		t.Errorf("%+v", s)
	}
	runtime.KeepAlive(kept)
	await(t, "it sheds no more", func() bool { return !o.Shed(Sheddable) && !o.Danger() && !o.Stats().Active }) // after a collection of its own accord
}

func fill(chunks int) [][]byte {
	out := make([][]byte, chunks)
	for i := range out {
		out[i] = make([]byte, chunk)
	}
	return out
}

// Processor time for real: goroutines that do nothing but burn trip a threshold that the idle process does not, and it ends when
// they do. How much a busy machine lets them burn is not known, so the threshold is half of what they come to.
func TestOverloadForReal(t *testing.T) {
	if !inChild(t) {
		return
	}
	const never = 2
	var samples atomic.Int64
	process := NewProcessSampler()
	o := NewOverload(OverloadConfig{CPU: never, Memory: 1, Interval: 500 * time.Millisecond, Sampler: func() (LoadSample, error) {
		samples.Add(1)
		return process.Sample()
	}})
	defer o.Close()
	await(t, "there are samples", func() bool { return samples.Load() > 3 })
	idle, _ := o.Load()
	ctx, stop := context.WithCancel(t.Context())
	var burning sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		burning.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	defer burning.Wait()
	defer stop()
	var busy float64
	await(t, "the load is seen", func() bool { busy, _ = o.Load(); return busy > 4*idle+0.001 })
	if o.Shed(Sheddable) || o.Danger() {
		t.Errorf("sheds below its threshold: %+v", o.Stats())
	}
	o.SetThresholds(busy/2, 1)
	await(t, "it sheds", func() bool {
		now, _ := o.Load()
		busy = min(busy, now) // the machine may let them burn less than it did
		o.SetThresholds(max(busy/2, 2*idle), 1)
		return o.Shed(Sheddable) && o.Danger() && o.Stats().Active
	})
	if o.Shed(Critical) {
		t.Error("a critical request is shed")
	}
	stop()
	burning.Wait()
	await(t, "it sheds no more", func() bool { return !o.Danger() && !o.Stats().Active && !o.Shed(Sheddable) })
}

// giveUp is a time in which even a busy machine gets there.
const giveUp = 2 * time.Minute

// await returns when a condition holds. How soon it must is tested in virtual time.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(giveUp); !holds(); {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("not within %s: %s", giveUp, what)
		}
	}
}
