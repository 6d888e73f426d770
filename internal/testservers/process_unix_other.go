//go:build unix && !linux

package testservers

import "syscall"

func processAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
