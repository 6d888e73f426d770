package main

import (
	"errors"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/process"
)

// saleCPU is the processor time that a sale has used so far: all of it, and its database's. Unlike the wall's, it is not that of others who
// are at work.
type saleCPU struct{ all, database time.Duration }

func (s *sale) cpu() (c saleCPU, err error) {
	redis, err1 := treeCPU(s.place.redis)
	database, err2 := treeCPU(s.place.database)
	return saleCPU{all: cpuTime() + redis + database, database: database}, errors.Join(err1, err2)
}

// perJob returns the microseconds that each of n jobs has taken since an earlier moment.
func (c saleCPU) perJob(before saleCPU, n float64) (all, database float64) {
	return float64(c.all-before.all) / 1e3 / n, float64(c.database-before.database) / 1e3 / n
}

// treeCPU is the processor time of a server and of its children that still are, such as one for each connection. PID 0 is no server.
func treeCPU(pid int) (time.Duration, error) {
	if pid == 0 {
		return 0, nil
	}
	server, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0, err
	}
	children, err := server.Children()
	if err != nil && !errors.Is(err, process.ErrorNoChildren) {
		return 0, err
	}
	var sum float64
	for _, p := range append(children, server) {
		t, err := p.Times()
		if err != nil {
			continue // a child that has just ended
		}
		sum += t.User + t.System
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// machineCPU is the processor time that everybody on the machine has used.
func machineCPU() (time.Duration, error) {
	all, err := cpu.Times(false)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, t := range all {
		sum += t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	}
	return time.Duration(sum * float64(time.Second)), nil
}
