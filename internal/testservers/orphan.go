package testservers

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// PlayParent is for TestMain of a package that tests what [DiesWithParent] does: where the environment has this variable, it starts a
// server, prints the number of its process, or why there is none, and waits to be killed. Elsewhere it returns at once.
func PlayParent(variable string, start func() (pid int, err error)) {
	if os.Getenv(variable) == "" {
		return
	}
	if pid, err := start(); err != nil {
		fmt.Println(err)
	} else {
		fmt.Println(pid)
	}
	select {}
}

// DiesWithParent runs this test program once more, with this variable and env in its environment, kills it when it has started a server,
// and fails unless the server ends too. Only Linux can: elsewhere it skips the test.
func DiesWithParent(tb TB, variable string, env ...string) {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skipf("the kernel of Linux alone ends it")
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatalf("testservers: %v", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), variable+"=1"), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatalf("testservers: %v", err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("testservers: %v", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, notNumber := strconv.Atoi(strings.TrimSpace(line))
	err = errors.Join(err, notNumber, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if err != nil {
		tb.Fatalf("testservers: the parent printed %q: %v", line, err)
	}
	if err := pollFor(startTimeout, func() error { return gone(pid) }); err != nil {
		tb.Fatalf("testservers: %v", err)
	}
}

// gone returns nil if a process has ended.
func gone(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ") {
		return nil
	}
	return fmt.Errorf("process %d still runs: %s", pid, stat)
}
