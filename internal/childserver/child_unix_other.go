//go:build unix && !linux

package childserver

import "syscall"

// Attributes keep the signals of the terminal from a process, in a group of its own, and have it run as an account. Linux alone can end it
// with this program.
func Attributes(account Account, _ syscall.Signal) *syscall.SysProcAttr { return attributes(account) }
