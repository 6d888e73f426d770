//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that this process has used: unlike the wall's, it is not that of others who are at work.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
