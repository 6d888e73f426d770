package postgresserver

import "syscall"

// attributes have the kernel end the process, in order, when the program dies. The kernel watches the thread that has started it, which
// Go keeps, unless a goroutine that is locked to it ends: so it is not started from one.
func attributes(a *account) *syscall.SysProcAttr {
	attr := common(a)
	attr.Pdeathsig = syscall.SIGINT
	return attr
}
