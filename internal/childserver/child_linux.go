package childserver

import "syscall"

// Attributes keep the signals of the terminal from a process, in a group of its own, have it run as an account, and have the kernel send
// it a signal when this program dies. The kernel watches the thread that has started it, which Go keeps, unless a goroutine that is locked
// to it ends: so it is not started from one.
func Attributes(account Account, atDeath syscall.Signal) *syscall.SysProcAttr {
	a := attributes(account)
	a.Pdeathsig = atDeath
	return a
}
