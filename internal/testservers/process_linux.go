package testservers

import "syscall"

// processAttributes puts the process into a group of its own and has the kernel end it when the test process dies. The
// kernel watches the thread that started it, and Go keeps its threads: only a goroutine locked to its thread takes the
// thread along when it ends, so servers are not started from one.
func processAttributes(gentle bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if gentle {
		a.Pdeathsig = syscall.SIGTERM
	}
	return a
}
