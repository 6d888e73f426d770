package resilience

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// errHangs is the failure of a probe that could not be made, since the one before it has not come back.
var errHangs = errors.New("an earlier probe has not come back")

// opened shuts a node off, unless another call has done so.
func (b *Breakers) opened(n *node, why string) {
	b.mu.Lock()
	if b.closed || (*b.all.Load())[n.name] != n || !n.open.CompareAndSwap(false, true) {
		b.mu.Unlock()
		return
	}
	n.opens(time.Now(), why)
	b.open.Add(1)
	b.probers.Add(1)
	b.mu.Unlock()
	n.telling.Lock()
	b.tell(n, true, why)
	n.telling.Unlock()
	go b.look(n)
}

func (b *Breakers) tell(n *node, open bool, why string) {
	level, text := slog.LevelInfo, "a node of the store is back"
	if open {
		level, text = slog.LevelWarn, "a node of the store is shut off until a probe finds it well"
	}
	b.cfg.Logger.Log(context.Background(), level, text, "node", n.name, "why", why)
	b.cfg.Observer.BreakerChanged(n.name, open, why)
}

// reclose lets calls through to a node again, or forgets it if it serves nothing any more.
func (b *Breakers) reclose(n *node, why string, forget bool) {
	n.telling.Lock()
	defer n.telling.Unlock()
	n.closes(time.Now(), why)
	b.tell(n, false, why) // first: once it is closed it may be dropped for another, and open anew under the same name
	if forget {
		b.forget(n)
	}
	n.open.Store(false)
	b.open.Add(-1)
}

// look probes a node until it is well, or the breakers are closed.
func (b *Breakers) look(n *node) {
	defer b.probers.Done()
	tick := time.NewTimer(b.cfg.ProbeEvery)
	defer tick.Stop()
	for row := 0; ; {
		select {
		case <-b.base.Done():
			return
		case <-tick.C:
		}
		err := b.probe(n)
		if b.base.Err() != nil {
			return
		}
		need, open := n.probed(time.Now(), err)
		wait := b.cfg.ProbeEvery
		switch {
		case err == nil:
			row++
		case gone(err):
			b.reclose(n, "the node serves nothing any more", true)
			return
		default:
			row, wait = 0, min(max(wait, open/10), b.cfg.ProbeMost)
		}
		if row >= need {
			b.reclose(n, fmt.Sprintf("%d probes in a row succeeded", row), false)
			return
		}
		tick.Reset(wait)
	}
}

// probe asks a node whether it can do its work, and waits for no more than ProbeTimeout.
func (b *Breakers) probe(n *node) error {
	if !n.probing.CompareAndSwap(false, true) {
		return errHangs
	}
	ctx, cancel := context.WithTimeout(b.base, b.cfg.ProbeTimeout)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		err := b.cfg.Probe(ctx, n.name)
		n.probing.Store(false)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done: // it has just come back
		return err
	default:
		return fmt.Errorf("the probe has not come back within %s", b.cfg.ProbeTimeout)
	}
}

// gone tells whether an error says that a node serves nothing any more.
func gone(err error) bool {
	var e interface{ Gone() bool }
	return errors.As(err, &e) && e.Gone()
}
