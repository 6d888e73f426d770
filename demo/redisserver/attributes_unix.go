//go:build unix && !linux

package redisserver

import "syscall"

// attributes keep the signals of the terminal from the process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
