package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/demo"
)

// TestDemoJSON: stdout is one JSON object and nothing else; whoever watches looks at stderr.
func TestDemoJSON(t *testing.T) {
	t.Parallel()
	got := runBinary(t, nil, "demo", "--duration", "2s", "--json", "--shoppers", "60", "--bots", "10", "--stock", "5", "--seed", "7")
	if got.code != 0 || strings.Count(got.stdout, "\n") != 1 {
		t.Fatalf("got %s", got)
	}
	var s demo.Summary
	decode := json.NewDecoder(strings.NewReader(got.stdout))
	decode.DisallowUnknownFields()
	if err := decode.Decode(&s); err != nil {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	if s.Requests == 0 || s.Requests != s.Allowed+s.Denied+s.Errors || s.Seed != 7 || s.Store != "memory" || s.Sale.Stock != 5 || s.Sale.Oversold != 0 {
		t.Errorf("got %s", got.stdout)
	}
	for _, want := range []string{"demo: gateway http://127.0.0.1:", "  over\n"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr has no %q: %s", want, got.stderr)
		}
	}
}

// TestDemoInterrupted: Ctrl-C ends the demo with the summary.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	cmd := command(t.Context(), nil, "demo", "--duration", "1h", "--shoppers", "20", "--bots", "0")
	var stdout strings.Builder
	cmd.Stdout = &stdout
	lines := startDemo(t, cmd)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"ended early", "Shoppers   100.0% served", "Bots       – denied", "none oversold"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the summary has no %q:\n%s", want, stdout.String())
		}
	}
}

// startDemo starts a demo and waits until it has served somebody. What it says from then on must be read.
func startDemo(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	for served := regexp.MustCompile(`allowed +[1-9]`); lines.Scan() && !served.MatchString(lines.Text()); {
	}
	return lines
}
