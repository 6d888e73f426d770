package engine

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// touchRefusals is how long the log is left alone if there is nothing to write: it has to be begun, and trimmed, all the same.
	touchRefusals = time.Minute
	// maxRefusalPause bounds the pauses between tries to write while the log does not take anything.
	maxRefusalPause = 30 * time.Second
	// lastRefusals bounds how long is written when all ends.
	lastRefusals = 2 * time.Second
)

// RefusalObserver is an [Observer] that is also told of the log of refusals.
type RefusalObserver interface {
	// RefusalsWritten tells of a try to write: how many refusals are in the log for it, how many it says were dropped unwritten, and the
	// code of its error.
	RefusalsWritten(refusals, dropped int64, code string)
}

// refusalLog writes what the journal has not written yet. Nothing of the sale waits for it.
type refusalLog struct {
	log flashsale.RefusalLog // nil: there is none
	id  uint64               // of this run of this instance
	// observer is told of each try, nil if nobody is.
	observer RefusalObserver

	mu    sync.Mutex // one writes at a time
	next  entryWriter
	count uint64
	// held is an entry that the log may not have, with what it counts.
	held              []byte
	more              bool // something waits behind held
	refusals, dropped int64
	touched           time.Time

	told    sync.Mutex
	failing error // the error of the last try
}

func newRefusalLog(log flashsale.RefusalLog, random io.Reader, told Observer) *refusalLog {
	if log == nil {
		return &refusalLog{}
	}
	var id [8]byte
	_, _ = io.ReadFull(random, id[:]) // a source that fails makes a poorer name
	observer, _ := told.(RefusalObserver)
	return &refusalLog{log: log, id: binary.LittleEndian.Uint64(id[:]), observer: observer}
}

// WriteRefusalsOnce writes all refusals that wait for the log when it is called, and returns how many. Run does so about once a second. What
// could not be written is kept for the next time.
func (e *Engine) WriteRefusalsOnce(ctx context.Context) (int64, error) {
	l := e.refusalLog
	if l.log == nil {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var all int64
	l.more = true // behind an entry that is left from the last time
	for {
		if l.held == nil && !l.pack(e.refusals) {
			return all, e.touchRefusals(ctx)
		}
		err := l.log.AppendRefusals(ctx, l.held)
		if flashsale.CodeOf(err) == flashsale.CodeInvalidArgument { // it never will be
			e.log.Error("an entry of refusals was refused for good, and is dropped", slog.Int64("refusals", l.refusals), slog.Any("error", err))
			e.refusals.lose(l.refusals, e.cfg.Now())
			l.held = nil
		}
		e.toldRefusals(ctx, err)
		if err != nil {
			return all, err
		}
		all, l.held, l.touched = all+l.refusals, nil, e.cfg.Now()
		if !l.more { // what has come meanwhile waits for the next time: in a flood there would be no end of small entries
			return all, nil
		}
	}
}

// pack makes an entry of what waits, if anything does.
func (l *refusalLog) pack(j *journal) bool {
	if l.more = j.drain(&l.next); l.next.n == 0 {
		return false
	}
	l.count++
	l.refusals, l.dropped = l.next.refusals, l.next.dropped
	l.held = l.next.entry(l.id, l.count)
	return true
}

// touchRefusals sees to it that there is a log, and that it is trimmed where nothing is written.
func (e *Engine) touchRefusals(ctx context.Context) error {
	l, now := e.refusalLog, e.cfg.Now()
	if since := now.Sub(l.touched); since >= 0 && since < touchRefusals {
		return nil
	}
	err := l.log.AppendRefusals(ctx, nil)
	if err == nil {
		l.touched = now
	}
	l.refusals, l.dropped = 0, 0
	e.toldRefusals(ctx, err)
	return err
}

// toldRefusals tells what came of a try to write, unless it was broken off. A failure is logged once.
func (e *Engine) toldRefusals(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	l := e.refusalLog
	refusals, dropped := l.refusals, l.dropped
	l.told.Lock()
	before := l.failing
	l.failing = err
	l.told.Unlock()
	switch {
	case err != nil && codeOf(err) != codeOf(before):
		e.log.Warn("refusals cannot be written to where all instances read them; they are kept in memory, as many as go, and it is tried again", slog.Any("error", err))
	case err == nil && before != nil:
		e.log.Info("refusals are written again to where all instances read them")
	}
	if err == nil && dropped > 0 {
		e.log.Warn("refusals were dropped before they were written, and stories lack them", slog.Int64("dropped", dropped))
	}
	if l.observer != nil {
		if err != nil {
			refusals, dropped = 0, 0
		}
		l.observer.RefusalsWritten(refusals, dropped, codeOf(err))
	}
}

// why is the error of the last try to write, nil if it was well.
func (l *refusalLog) why() error {
	l.told.Lock()
	defer l.told.Unlock()
	return l.failing
}

// runRefusals writes refusals until the context ends, and then what is left.
func (e *Engine) runRefusals(ctx context.Context) {
	if e.refusalLog.log == nil {
		return
	}
	every := e.cfg.Jobs.Refusals
	pause := every
	timer := time.NewTimer(every)
	defer timer.Stop()
	for ctx.Err() == nil {
		full := e.refusals.full
		if e.writeRefusals(ctx) == nil {
			pause = every
		} else {
			pause, full = min(2*pause, max(maxRefusalPause, every)), nil
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-full:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRefusals)
	defer cancel()
	if err := e.writeRefusals(last); err != nil {
		e.log.Warn("the last refusals were not written, and stories lack them", slog.Any("error", err))
	}
}

func (e *Engine) writeRefusals(ctx context.Context) error {
	return e.shielded("the log of refusals", func() error {
		_, err := e.WriteRefusalsOnce(ctx)
		return err
	})
}
