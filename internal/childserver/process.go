package childserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Process is one life of a server. Its methods are safe for concurrent use.
type Process struct {
	program Program
	cmd     *exec.Cmd
	done    chan struct{} // closes when it has ended
	how     error         // valid when done is closed
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that closes when the process ends, for whatever reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether it has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill ends it at once (SIGKILL) and waits for its end. Killing twice does no harm.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // the only error is that it has ended
	<-p.done
}

// Stop ends it in order, with the program's signal, or at once if that takes longer than this.
func (p *Process) Stop(within time.Duration) {
	_ = end(p.cmd.Process, p.program.End) // the only error is that it has ended
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// Pause stops it (SIGSTOP): connections stay open, and nothing is answered until Resume. Not every system can.
func (p *Process) Pause() error { return pause(p.cmd.Process) }

// Resume lets it go on (SIGCONT).
func (p *Process) Resume() error { return resume(p.cmd.Process) }

const lookEvery = 10 * time.Millisecond

// Await asks whether the server is ready until it is, which ready says with nil. It gives up when the process ends, with the end of its
// log or [ErrPortTaken], and when the context does, with what ready said last. The context of ready ends with the process: whoever else
// listens on its port may never answer.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	alive, dies := context.WithCancel(ctx)
	defer dies()
	go func() {
		select {
		case <-p.done:
			dies()
		case <-alive.Done():
		}
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	err := errors.New("it was not asked")
	for {
		select {
		case <-p.done:
			return p.failed()
		case <-ctx.Done():
			return fmt.Errorf("%s at %s does not get ready: %w: %w; its log ends with %q", p.program.Name, p.program.Addr(), ctx.Err(), err, lastLines(p.log()))
		case <-tick.C:
		}
		if err = ready(alive); err == nil {
			return nil
		}
	}
}

// failed says why it has ended when it should run, in the words of its log.
func (p *Process) failed() error {
	log := p.log()
	if bytes.Contains(log, []byte("already in use")) {
		return fmt.Errorf("%s cannot listen on %s: %w", p.program.Name, p.program.Addr(), ErrPortTaken)
	}
	how := p.how
	if how == nil {
		how = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended when it was started: %w; its log ends with %q", p.program.Name, how, lastLines(log))
}

func (p *Process) log() []byte {
	text, err := os.ReadFile(p.program.Log())
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
