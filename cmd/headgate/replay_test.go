package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/replay"
)

// TestReplayMessages compares everything a user of replay sees with a reviewed file.
func TestReplayMessages(t *testing.T) {
	t.Parallel()
	with := func(args ...string) []string { return append([]string{"replay", "--policy", "replay.yaml"}, args...) }
	for name, args := range map[string][]string{
		"replay-report":      with("--against", "replay-old.yaml", "--log", "access.log"),
		"replay-json":        with("--log", "access.log", "--json"),
		"replay-json-lines":  with("--log", "access.jsonl", "--fields", "time=when,dim.user=account"),
		"replay-no-policy":   {"replay", "--log", "access.log"},
		"replay-no-log":      with(),
		"replay-missing-log": with("--log", "missing.log"),
		"replay-not-a-log":   with("--log", "access.log", "good.yaml"),
		"replay-bad-policy":  {"replay", "--policy", "bad.yaml", "--log", "access.log"},
		"replay-no-such":     with("--against", "missing.yaml", "--log", "access.log"),
		"replay-bad-fields":  with("--log", "access.log", "--fields", "tier=vip"),
		"replay-dimension":   with("--log", "access.log", "--fields", "dim.tier=vip"),
		"replay-bad-window":  with("--log", "access.log", "--window", "-1s"),
		"replay-bad-html":    with("--log", "access.log", "--html", "missing/report.html"),
		"replay-empty":       with("--log", "/dev/null"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, runBinary(t, nil, args...).String())
		})
	}
}

// TestReplayPage: the page is there when it is whole, and its neighbours are left alone.
func TestReplayPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "report.html")
	if got := runBinary(t, nil, "replay", "--policy", "replay.yaml", "--log", "access.log", "--html", page); got.code != exitGood ||
		!strings.HasSuffix(got.stdout, "The same with charts: "+page+"\n") {
		t.Errorf("%s", got)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") || !strings.HasSuffix(string(text), "</html>\n") {
		t.Errorf("%v, %d bytes", err, len(text))
	}
	if got := runBinary(t, nil, "replay", "--policy", "replay.yaml", "--log", "missing.log", "--html", page); got.code != exitUsage {
		t.Errorf("%s", got)
	}
	if again, err := os.ReadFile(page); err != nil || !bytes.Equal(again, text) {
		t.Errorf("a replay that failed has changed the page: %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 1 {
		t.Errorf("left over: %v, %v", files, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(files) != 0 {
		t.Errorf("left over: %v, %v", files, err)
	}
}

// TestReplayPageTakesNoOthersPlace: nothing but a page is overwritten, and that is said before the log is read.
func TestReplayPageTakesNoOthersPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, want := range map[string]string{
		file("access.log", "192.0.2.1 - - [11/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n"): "is there and is no page; name another file, or remove it",
		file("short.txt", "<!DOC"): "is there and is no page",
		dir:                        "is a folder; name a file in it",
		"/dev/null":                "is no file that a page can take the place of",
		"--log":                    `html: "--log" looks like a flag; name a file, such as report.html`,
		"-":                        `html: "-" looks like a flag`,
		file("empty.html", ""):     "",
	} {
		before, _ := os.ReadFile(name)
		got := runBinary(t, nil, "replay", "--policy", "replay.yaml", "--log", "access.log", "--html", name)
		after, _ := os.ReadFile(name)
		if want == "" && got.code == exitGood && strings.HasPrefix(string(after), "<!DOCTYPE html>") {
			continue
		}
		if want == "" || got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, want) || !bytes.Equal(before, after) {
			t.Errorf("%s: want %q\n%s", name, want, got)
		}
	}
}

// TestReplayOfAPipe: standard input is read as it comes, and a signal ends the replay with what there is.
func TestReplayOfAPipe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := command(ctx, nil, "replay", "--policy", "replay.yaml", "--json", "--window", "0s", "--log", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if _, err := fmt.Fprintf(in, "192.0.2.1 - - [11/Nov/2026:10:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1\n", i/60, i%60); err != nil {
			t.Fatal(err)
		}
	}
	// The pipe is full twice over, so the command has begun to read, and has its handlers.
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var report replay.Report
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&report); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !report.Interrupted || report.Log.Lines == 0 || report.Log.Lines > 3000 {
		t.Errorf("%v: interrupted %v, %d lines", err, report.Interrupted, report.Log.Lines)
	}
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	var p replay.Progress
	p.Judged.Store(1000)
	if got, want := progressLine(&p, 2*time.Second), "1000 requests, 500/s"; got != want {
		t.Errorf("of a pipe: %q, want %q", got, want)
	}
	p.Total.Store(400)
	p.Read.Store(100)
	if got, want := progressLine(&p, 2*time.Second), "[███████░░░░░░░░░░░░░░░░░░░░░░░]  25 %  1000 requests, 500/s, 6s left"; got != want {
		t.Errorf("of a file: %q, want %q", got, want)
	}
	p.Read.Store(500) // it grows while it is read
	if got, want := progressLine(&p, 0), "[██████████████████████████████] 100 %  1000 requests, 1000000/s"; got != want {
		t.Errorf("at the end: %q, want %q", got, want)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	t.Parallel()
	const line = "[███░░░] 50 %  1000 requests"
	for width, want := range map[int]string{0: line, 80: line, 29: line, 28: "[███░░░] 50 %  1000 reques…", 10: "[███░░░]…"} {
		if got := fitted(line, width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// TestReplayDocumentation: the policy of docs/replay.md replays, and the page names the flags and the words that there are.
func TestReplayDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "replay.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	_, example, _ := strings.Cut(doc, "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil || !found {
		t.Fatalf("%v, the example is there: %v", err, found)
	}
	if got := runBinary(t, nil, "replay", "--policy", file, "--log", "access.log"); got.code != exitGood || !strings.Contains(got.stdout, "\n  login ") {
		t.Errorf("%s", got)
	}
	newReplay(streams{}).LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(doc, "\n| `--"+f.Name+"` |") {
			t.Errorf("flag --%s is not in the table", f.Name)
		}
	})
	for _, word := range replay.FieldNames() {
		if !strings.Contains(doc, "\n| `"+word+"` |") {
			t.Errorf("word %s is not in the table", word)
		}
	}
}
