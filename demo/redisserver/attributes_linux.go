package redisserver

import "syscall"

// attributes keep the signals of the terminal from the process, and have the kernel end it when the program dies. The kernel
// watches the thread that has started it, which Go keeps, unless a goroutine that is locked to it ends: so it is not started
// from one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
