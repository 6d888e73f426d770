package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestDemoChaos: a Redis that is killed, stopped, emptied and started again lets nothing over a limit while its data is there,
// and no more than the bounds without. On a machine that has other work to do it takes more time until enough has happened.
func TestDemoChaos(t *testing.T) {
	t.Parallel()
	testservers.Need(t, "redis-server")
	for seconds := 15; ; seconds *= 3 {
		missing := missingIn(chaosFor(t, seconds))
		if len(missing) == 0 || t.Failed() {
			return
		}
		if seconds > 100 {
			t.Fatalf("in %d s: %s", seconds, strings.Join(missing, "; "))
		}
		t.Logf("in %d s: %s", seconds, strings.Join(missing, "; "))
	}
}

// chaosFor runs a demo with chaos, and checks what holds at any pace.
func chaosFor(t *testing.T, seconds int) *demo.FaultSummary {
	t.Helper()
	folder := t.TempDir()
	got := runBinary(t, []string{"TMPDIR=" + folder}, "demo", "--chaos", "--store", "redis-server", "--duration", fmt.Sprint(seconds, "s"), "--json",
		"--shoppers", "100", "--bots", "20") // few, so that a machine that has other things to do does not make the store seem lost
	var s demo.Summary
	decode := json.NewDecoder(strings.NewReader(got.stdout))
	decode.DisallowUnknownFields()
	if err := decode.Decode(&s); err != nil || s.Chaos == nil {
		t.Fatalf("%v: %s", err, got)
	}
	c := s.Chaos
	if got.code != exitGood || !c.Kept || c.WithData.Over != 0 || !c.WithoutStore.BoundKept || !c.AfterEmptyRestart.BoundKept {
		t.Errorf("a limit or a bound was not kept: %s", got)
	}
	for _, w := range []demo.Without{c.WithoutStore, c.AfterEmptyRestart} {
		if w.SpentBefore+w.Here > w.Bound || w.Over > w.Here {
			t.Errorf("the numbers contradict each other: %+v", w)
		}
	}
	if len(c.Faults) != 4 || c.Instances != 3 {
		t.Fatalf("got %+v", c)
	}
	for _, f := range c.Faults {
		if f.FellToOnError > 0 && f.NoticedMS == nil {
			t.Errorf("calls failed, and nobody noticed: %+v", f)
		}
		if often := float64(f.FellToOnError)*1000 > 100*f.LastedMS; often && strings.HasPrefix(f.Fault, "killed") && f.L1MS == nil {
			t.Errorf("more than 100 calls failed in each second, and no breaker opened: %+v", f)
		}
	}
	for _, want := range []string{"* Redis is killed, its data lost (SIGKILL)\n", "* Redis is started again, empty\n"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr has no %q: %s", want, got.stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
	return c
}

// missingIn names what a demo lacks that had time for all of it: faults of which the store was down are noticed and open a breaker. How soon
// it closes after two of them depends on the machine.
func missingIn(c *demo.FaultSummary) (missing []string) {
	unless := func(holds bool, format string, args ...any) {
		if !holds {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	unless(c.WithData.Admitted >= 50 && c.WithoutStore.Admitted >= 50, "too little happened: %+v, %+v", c.WithData, c.WithoutStore)
	unless(c.WithoutStore.Over+c.AfterEmptyRestart.Over > 0, "the crowd met no limit twice, so that nothing was put to the test")
	unless(c.FellToOnError > 0 && c.BreakerOpen > 0, "nobody felt a fault: %+v", c)
	for _, f := range c.Faults {
		unless(!strings.HasPrefix(f.Fault, "killed") || f.NoticedMS != nil && f.L1MS != nil && f.FellToOnError > 0, "%s: %+v", f.Fault, f)
	}
	last := c.Faults[len(c.Faults)-1]
	unless(last.RecoveredMS == nil || c.AfterEmptyRestart.Admitted > 0, "the store was back, empty, and admitted nothing")
	return missing
}

// redisOf waits for a Redis below a folder and returns the number of its process.
func redisOf(t *testing.T, folder string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pid := 0
	err := testservers.Poll(ctx, func() error {
		logs, _ := filepath.Glob(filepath.Join(folder, "headgate-redis-*", "log"))
		for _, log := range logs {
			text, err := os.ReadFile(log)
			if err != nil {
				return err
			}
			if m := regexp.MustCompile(`pid=(\d+), just started`).FindSubmatch(text); m != nil {
				_, err := fmt.Sscan(string(m[1]), &pid)
				return err
			}
		}
		return errors.New("it has not started")
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestDemoEndsItsRedis: whoever interrupts a demo, or kills it, leaves no Redis behind.
func TestDemoEndsItsRedis(t *testing.T) {
	t.Parallel()
	testservers.Need(t, "redis-server")
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked for in /proc")
	}
	for name, end := range map[string]os.Signal{"interrupted": os.Interrupt, "killed": os.Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			cmd := command(t.Context(), []string{"TMPDIR=" + folder}, "demo", "--store", "redis-server", "--duration", "1h", "--shoppers", "5", "--bots", "0")
			pid := startAndFind(t, cmd, folder)
			if err := cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); (err == nil) != (end == os.Interrupt) {
				t.Errorf("it ended with %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := testservers.Poll(ctx, func() error {
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if errors.Is(err, os.ErrNotExist) || strings.Contains(string(text), ") Z ") {
					return nil
				}
				return fmt.Errorf("it still runs: %s %w", text, err)
			})
			if err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(folder, "*")); end == os.Interrupt && len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// startAndFind starts a demo, waits until it has served somebody, and returns the number of its Redis.
func startAndFind(t *testing.T, cmd *exec.Cmd, folder string) int {
	t.Helper()
	lines := startDemo(t, cmd)
	go func() {
		for lines.Scan() {
		}
	}()
	return redisOf(t, folder)
}
