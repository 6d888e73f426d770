package gateway

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// pace is how long a peer may keep us waiting. It starts with the whole stall time; waiting spends it, and every byte earns
// a little of it back. So a fast peer may pause, and one that trickles runs out.
type pace struct {
	mu      sync.Mutex
	most    time.Duration
	credit  time.Duration
	perByte time.Duration
	armed   time.Time // the deadline that is set, zero if none is
}

func newPace(stall time.Duration, minRate int64) pace {
	return pace{most: stall, credit: stall, perByte: time.Second / time.Duration(max(minRate, 1))}
}

// arm returns the deadline for a wait that begins now. set is false if one that is good enough is in place: setting a
// deadline costs more than a small write.
func (p *pace) arm(now time.Time) (deadline time.Time, set bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline = now.Add(p.credit)
	if !p.armed.IsZero() && !p.armed.After(deadline) && p.armed.After(now.Add(p.credit/2)) {
		return p.armed, false
	}
	p.armed = deadline
	return deadline, true
}

// spent notes a wait and what came of it.
func (p *pace) spent(waited time.Duration, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	earned := p.perByte * time.Duration(min(bytes, 1<<24))
	p.credit = min(p.credit-waited+earned, p.most)
}

// write writes in pieces, each of which earns what the next one may take: a deadline for all of a long text at once would
// ask for a rate that nobody has asked for.
func (p *pace) write(text []byte, write func([]byte) (int, error), setDeadline func(time.Time) error) (written int, err error) {
	for more := true; more; more = len(text) > 0 {
		start := time.Now()
		if deadline, set := p.arm(start); set {
			if err := setDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return written, err
			}
		}
		n, err := write(text[:min(len(text), copyBuffer)])
		p.spent(time.Since(start), n)
		written, text = written+n, text[n:]
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// flush is write for what was kept back. It takes the deadline away: what comes next may be long in coming.
func (p *pace) flush(flush func() error, setDeadline func(time.Time) error) error {
	start := time.Now()
	if deadline, set := p.arm(start); set {
		if err := setDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	err := flush()
	p.spent(time.Since(start), 0)
	p.replaced()
	if lifted := setDeadline(time.Time{}); err == nil && !errors.Is(lifted, http.ErrNotSupported) {
		err = lifted
	}
	return err
}

// replaced notes that somebody else has set the deadline.
func (p *pace) replaced() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = time.Time{}
}
