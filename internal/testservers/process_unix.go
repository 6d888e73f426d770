//go:build unix

package testservers

import (
	"errors"
	"fmt"
	"syscall"
)

// Pause stops the process (SIGSTOP): connections stay open and nothing is answered.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signalGroup(sig syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, sig) }

// reap collects the status of a process that has ended, or, if wait is set, of one that is about to. It is called with
// p.mu held, and it is the only place that frees the process's number: no signal can reach a stranger.
func (p *Process) reap(wait bool) {
	options := syscall.WNOHANG
	if wait {
		options = 0
	}
	var ws syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(p.cmd.Process.Pid, &ws, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			p.status = err.Error()
		case pid == 0:
			return
		case ws.Signaled():
			p.status = fmt.Sprintf("signal: %v", ws.Signal())
		default:
			p.status = fmt.Sprintf("exit status %d", ws.ExitStatus())
		}
		p.exited = true
		_ = p.cmd.Process.Release() // it only frees memory and a descriptor
		return
	}
}
