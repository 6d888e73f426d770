//go:build unix && !linux

package postgresserver

import "syscall"

func attributes(a *account) *syscall.SysProcAttr { return common(a) }
