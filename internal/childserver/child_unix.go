//go:build unix

package childserver

import (
	"os"
	"syscall"
)

func attributes(account Account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if account.other {
		a.Credential = &syscall.Credential{Uid: account.uid, Gid: account.gid}
	}
	return a
}

func end(p *os.Process, with syscall.Signal) error { return p.Signal(with) }

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
