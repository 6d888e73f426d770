//go:build !unix

package testservers

import (
	"errors"
	"syscall"
)

var errNoSignals = errors.New("testservers: this system cannot pause a process")

// Pause reports that this system cannot.
func (p *Process) Pause() error { return errNoSignals }

// Resume reports that this system cannot.
func (p *Process) Resume() error { return errNoSignals }

func (p *Process) signalGroup(syscall.Signal) error { return p.cmd.Process.Kill() }

func (p *Process) reap(wait bool) {
	if !wait {
		return
	}
	state, err := p.cmd.Process.Wait()
	p.exited = true
	if err != nil {
		p.status = err.Error()
		return
	}
	p.status = state.String()
}
