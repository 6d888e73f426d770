package app

import (
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is the part of the control group's memory that the Go runtime is told to keep to: what it does not know of,
// such as socket buffers, needs the rest.
const memoryShare = 0.9

// BoundMemory tells the Go runtime how much memory the control group grants, unless GOMEMLIMIT does. Without a bound garbage is
// let grow until the kernel ends the process, and counts as memory in use for the overload. It is for the start of a program.
func BoundMemory(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	granted, err := memlimit.FromCgroup()
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrNoLimit):
		return
	case err != nil:
		log.Warn("the memory that the control group grants cannot be read; set GOMEMLIMIT", "error", err)
		return
	}
	bound := int64(float64(granted) * memoryShare)
	debug.SetMemoryLimit(bound)
	log.Info("memory is bounded by the control group", "granted", granted, "GOMEMLIMIT", bound)
}
