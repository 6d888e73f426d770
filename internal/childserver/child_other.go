//go:build !unix

package childserver

import (
	"errors"
	"os"
	"syscall"
)

// Attributes are those of the system.
func Attributes(Account, syscall.Signal) *syscall.SysProcAttr { return nil }

func end(p *os.Process, _ syscall.Signal) error { return p.Kill() }

var errNoSignals = errors.New("this system cannot pause a process")

func pause(*os.Process) error  { return errNoSignals }
func resume(*os.Process) error { return errNoSignals }
