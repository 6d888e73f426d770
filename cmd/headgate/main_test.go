package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

var update = flag.Bool("update", false, "write the golden files anew")

// binary is the command as a user has it, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "headgate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "headgate")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// command returns the binary with arguments, in the folder of the inputs and with no environment but what is given.
func command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join("testdata", "in")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}

// outcome is what came of a run.
type outcome struct {
	code           int
	stdout, stderr string
}

func runBinary(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := command(ctx, env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d\n-- stdout --\n%s-- stderr --\n%s", o.code, o.stdout, o.stderr)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it and run with -update. Got:\n%s", file, got)
	}
}

// busyPort returns an address that is in use until the test ends.
func busyPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// TestMessages runs the binary and compares everything a user sees with a reviewed file: exit code, stdout and stderr.
func TestMessages(t *testing.T) {
	t.Parallel()
	busy := busyPort(t)
	serve := func(args ...string) []string {
		return append([]string{"serve", "--policy", "good.yaml", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"}, args...)
	}
	for name, c := range map[string]struct {
		args, env []string
	}{
		"help":                  {args: []string{"--help"}},
		"unknown-command":       {args: []string{"dmeo", "--duration", "3s"}},
		"unknown-flag":          {args: []string{"demo", "--durration", "3s"}},
		"flag-without-sense":    {args: []string{"demo", "--duration", "soon"}},
		"too-many-arguments":    {args: []string{"version", "now"}},
		"environment-bad":       {args: []string{"demo"}, env: []string{"HEADGATE_BOTS=hunter2"}},
		"check-good":            {args: []string{"check", "good.yaml"}},
		"check-bad":             {args: []string{"check", "good.yaml", "bad.yaml"}},
		"check-bad-json":        {args: []string{"check", "--json", "good.yaml", "bad.yaml"}},
		"check-findings":        {args: []string{"check", "good.yaml", "findings.yaml"}},
		"check-findings-json":   {args: []string{"check", "--json", "findings.yaml"}},
		"check-warned":          {args: []string{"check", "warned.yaml"}},
		"check-strict":          {args: []string{"check", "--strict", "warned.yaml"}},
		"check-missing":         {args: []string{"check", "missing.yaml"}},
		"check-some-missing":    {args: []string{"check", "missing.yaml", "good.yaml", "none.yaml"}},
		"check-missing-json":    {args: []string{"check", "--json", "missing.yaml", "good.yaml"}},
		"check-nothing":         {args: []string{"check"}},
		"test-pass":             {args: []string{"test", "pass.test"}},
		"test-pass-verbose":     {args: []string{"test", "-v", "pass.test"}},
		"test-marks-verbose":    {args: []string{"test", "-v", "marks.test"}},
		"test-fail":             {args: []string{"test", "pass.test", "fail.test"}},
		"test-fail-json":        {args: []string{"test", "--json", "pass.test", "fail.test"}},
		"test-syntax":           {args: []string{"test", "pass.test", "syntax.test", "missing.test"}},
		"test-dimension":        {args: []string{"test", "dimension.test"}},
		"test-nothing":          {args: []string{"test", "pass.test", "/dev/null"}},
		"test-endless":          {args: []string{"test", "/dev/zero"}},
		"test-folder":           {args: []string{"test", "."}},
		"test-store-bad":        {args: []string{"test", "--store", "mysql://me:hunter2@db", "pass.test"}},
		"demo-too-short":        {args: []string{"demo", "--duration", "1ms"}},
		"demo-zero":             {args: []string{"demo", "--duration", "0"}},
		"demo-no-address":       {args: []string{"demo", "--listen", ""}},
		"demo-bad-address":      {args: []string{"demo", "--listen", "8080"}},
		"demo-negative":         {args: []string{"demo", "--bots", "-1"}},
		"demo-store-bad":        {args: []string{"demo", "--store", "redis://:hunter2@"}},
		"demo-help":             {args: []string{"demo", "--help"}},
		"demo-chaos-memory":     {args: []string{"demo", "--chaos"}},
		"demo-chaos-other":      {args: []string{"demo", "--chaos", "--store", "redis://:hunter2@127.0.0.1:6379"}},
		"demo-chaos-short":      {args: []string{"demo", "--chaos", "--store", "redis-server", "--duration", "10s"}},
		"demo-chaos-long":       {args: []string{"demo", "--chaos", "--store", "redis-server", "--duration", "11m"}},
		"demo-no-redis":         {args: []string{"demo", "--store", "redis-server"}, env: []string{"PATH=/nowhere"}},
		"demo-no-program":       {args: []string{"demo", "--store", "./none/redis-server"}},
		"demo-busy":             {args: []string{"demo", "--listen", busy}},
		"serve-nothing":         {args: []string{"serve"}},
		"serve-bad-policy":      {args: serve("--policy", "bad.yaml")},
		"serve-missing-policy":  {args: serve("--policy", "missing.yaml")},
		"serve-bad-upstream":    {args: serve("--upstream", "http://me:hunter2@x")},
		"serve-busy":            {args: serve("--listen", busy)},
		"serve-no-listen":       {args: serve("--listen", "")},
		"serve-no-drain":        {args: serve("--drain", "0")},
		"serve-bad-listen":      {args: serve("--listen", "8080")},
		"serve-open-admin":      {args: serve("--admin", ":9090")},
		"serve-proxy-protocol":  {args: serve("--policy", "whole.yaml", "--proxy-protocol")},
		"serve-bad-store":       {args: serve("--store", "redis://me:hunter2@h:port")},
		"serve-bad-log":         {args: serve("--log-level", "loud")},
		"serve-missing-secret":  {args: serve(), env: []string{"HEADGATE_ADMIN_TOKEN_FILE=missing.txt"}},
		"serve-empty-secret":    {args: serve("--admin", "127.0.0.1:0"), env: []string{"HEADGATE_ADMIN_TOKEN_FILE=/dev/null"}},
		"serve-endless-secret":  {args: serve(), env: []string{"HEADGATE_SECRET_FILE=/dev/zero"}},
		"serve-folder-secret":   {args: serve(), env: []string{"HEADGATE_SENTINEL_PASSWORD_FILE=."}},
		"serve-two-secrets":     {args: serve(), env: []string{"HEADGATE_ADMIN_TOKEN_FILE=x", "HEADGATE_ADMIN_TOKEN=hunter2"}},
		"serve-short-mark-key":  {args: serve(), env: []string{"HEADGATE_MARK_KEY=hunter2"}},
		"serve-short-token":     {args: serve(), env: []string{"HEADGATE_ADMIN_TOKEN=hunter2"}},
		"serve-spaced-token":    {args: serve(), env: []string{"HEADGATE_ADMIN_TOKEN=hunter2 hunter2 hunter2"}},
		"serve-sale-stray":      {args: []string{"serve", "--policy", "good.yaml", "--db", "sqlite:sale.db"}},
		"serve-sale-nothing":    {args: []string{"serve", "--policy", "good.yaml", "--sale"}},
		"serve-sale-memory":     {args: serve("--sale", "--db", "postgres://me:hunter2@db/shop", "--pay", "none")},
		"serve-sale-keys":       {args: serve("--sale", "--db", "postgres://me:hunter2@db/shop", "--pay", "none", "--sale-store", "redis://:hunter2@stock:6379")},
		"serve-sale-bad-keys":   {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "none"), env: []string{"HEADGATE_SALE_KEYS=hunter2"}},
		"serve-sale-user":       {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "none", "--sale-user", "ip")},
		"serve-sale-bad-store":  {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "none", "--sale-store", "redis://me:hunter2@h:port")},
		"serve-sale-bad-pay":    {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "hunter2")},
		"serve-sale-no-secret":  {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "https://pay.example.com/hunter2")},
		"serve-sale-simulated":  {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "simulated"), env: []string{"HEADGATE_PAY_SECRET=hunter2"}},
		"serve-sale-guessable":  {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "simulated"), env: []string{"HEADGATE_PAY_SECRET=" + strings.Repeat("abc", 20)}},
		"serve-sale-zero-keys":  {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "none"), env: []string{"HEADGATE_SALE_KEYS=k1:" + strings.Repeat("A", 43)}},
		"serve-zero-token":      {args: serve(), env: []string{"HEADGATE_ADMIN_TOKEN=" + strings.Repeat("12", 20)}},
		"serve-zero-mark-key":   {args: serve(), env: []string{"HEADGATE_MARK_KEY=" + strings.Repeat("0", 64)}},
		"serve-sale-pay-http":   {args: serve("--sale", "--db", "sqlite:sale.db", "--pay", "http://hunter2/v1"), env: []string{"HEADGATE_PAY_SECRET=0123456789abcdef0123456789abcdef"}},
		"simpay-no-secret":      {args: []string{"simpay"}},
		"simpay-short-secret":   {args: []string{"simpay", "--listen", "127.0.0.1:0"}, env: []string{"HEADGATE_PAY_SECRET=hunter2"}},
		"simpay-bad-chance":     {args: []string{"simpay", "--lost", "1.5"}},
		"simpay-bad-webhook":    {args: []string{"simpay", "--webhook", "me:hunter2@shop"}},
		"simpay-busy":           {args: []string{"simpay", "--listen", busy}, env: []string{"HEADGATE_PAY_SECRET=0123456789abcdef0123456789abcdef"}},
		"serve-environment-bad": {args: serve(), env: []string{"HEADGATE_STORE=redis://:hunter2@"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runBinary(t, c.env, c.args...).String()
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is shown:\n%s", got)
			}
			golden(t, name, strings.ReplaceAll(got, busy, "BUSY"))
		})
	}
}

// TestTerminal: a terminal is asked nothing. One that does not answer, as in many a pipeline, would hold every command up,
// and the question would stand in what the command prints.
func TestTerminal(t *testing.T) {
	t.Parallel()
	script := testservers.Need(t, "script") // it makes a terminal
	for command, want := range map[string]string{
		"version":             strings.TrimSpace(runBinary(t, nil, "version").stdout),
		"check missing.yaml":  "headgate: policy missing.yaml cannot be opened: no such file or directory",
		"serve --policy none": "headgate: --upstream is missing; see headgate serve --help",
	} {
		cmd := exec.CommandContext(t.Context(), script, "-qec", "exec "+binary+" "+command, "/dev/null")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "SHELL=/bin/sh"}
		out, _ := cmd.CombinedOutput() // the code is that of the command, which may be bad usage
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

// TestFullDisk: an answer that could not be written was not given.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "good.yaml"}, {"check", "--json", "good.yaml"}, {"check", "bad.yaml"}, {"test", "pass.test"}, {"test", "-v", "pass.test"},
		{"test", "--json", "pass.test"}, {"test", "fail.test"}, {"version"}, {"version", "--json"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if runtime.GOOS != "linux" && errors.Is(err, os.ErrNotExist) {
			t.Skip("only Linux has a disk that is always full")
		}
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := command(t.Context(), nil, args...)
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run() // the code tells
		_ = full.Close()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit %d, %q", args, code, stderr.String())
		}
	}
}

// TestEmptyEnvironment: a variable that is there and empty, as compose files leave it, is none.
func TestEmptyEnvironment(t *testing.T) {
	t.Parallel()
	got := runBinary(t, []string{"HEADGATE_JSON=", "HEADGATE_STORE=", "HEADGATE_NAMESPACE="}, "test", "pass.test")
	if want := runBinary(t, nil, "test", "pass.test"); got != want || got.code != 0 {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFirstSignalEnds what has nothing to end in order: here, a command that waits for a pipe which nobody writes to.
func TestFirstSignalEnds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"check", "test"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := command(t.Context(), nil, name, pipe)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			// It has begun to wait once the pipe can be opened for writing: opened, and not written to.
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the first SIGTERM did not end it")
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := runBinary(t, nil, "version")
	if want := regexp.MustCompile(`^headgate \S+( \(\w+\))?, go1\.\S+, \w+/\w+\n$`); got.code != 0 || !want.MatchString(got.stdout) || got.stderr != "" {
		t.Errorf("got %s", got)
	}
	if flag := runBinary(t, nil, "--version"); flag != got {
		t.Errorf("--version: got %s, want %s", flag, got)
	}
	if got := runBinary(t, nil, "version", "--json"); !strings.HasPrefix(got.stdout, `{"version":`) || got.stderr != "" {
		t.Errorf("got %s", got)
	}
}
