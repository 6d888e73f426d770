//go:build !unix

package postgresserver

import (
	"os"
	"syscall"
)

type account struct{}

func unprivileged() (*account, error) { return nil, nil }

func (*account) own(string) error { return nil }

func attributes(*account) *syscall.SysProcAttr { return nil }

func stop(p *os.Process) error { return p.Kill() }
