//go:build !unix

package redisserver

import (
	"errors"
	"os"
	"syscall"
)

var errNoSignals = errors.New("this system cannot pause a process")

func pause(*os.Process) error  { return errNoSignals }
func resume(*os.Process) error { return errNoSignals }

func attributes() *syscall.SysProcAttr { return nil }
