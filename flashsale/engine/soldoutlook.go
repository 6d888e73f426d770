package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// minMarks is how many places a set of marks has at first.
const minMarks = 1024

// glance is a look, one for all who wait for it.
type glance struct {
	done chan struct{}
	err  error // when done
	// led tells that one of those who waited in vain makes its own call.
	led atomic.Bool
}

// wait returns when the look has ended, with an error if the caller leaves before.
func (l *glance) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return interrupted(ctx)
	}
}

// share gives all who wait for a look that failed its error, but for one, who is to find out for himself.
func (l *glance) share() error {
	if !retriable(l.err) || l.led.CompareAndSwap(false, true) {
		return nil
	}
	return l.err
}

func (m *memory) underWay() *glance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.look
}

// glanceAt returns the look that is under way, or begins one, which waits until it may be made. It returns nil where there is nothing to
// be learnt for now.
func (e *Engine) glanceAt(m *memory, notBefore time.Time) *glance {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.look != nil || m.gone || now.Before(m.rest) {
		return m.look
	}
	l := &glance{done: make(chan struct{})}
	m.look, m.last = l, now
	var wait time.Duration
	if !notBefore.IsZero() {
		wait = min(notBefore.Sub(e.cfg.Now()), flashsale.LullFor)
	}
	go e.makeGlance(m, l, wait)
	return l
}

func (e *Engine) makeGlance(m *memory, l *glance, after time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), glanceTime)
	defer cancel()
	if after > 0 {
		_ = pause(ctx, after)
	}
	l.err = e.shielded("a look at what is sold out", func() error { return e.learn(ctx, m) })
	m.mu.Lock()
	e.concluded(m, l.err)
	m.look = nil
	m.mu.Unlock()
	close(l.done)
}

// concluded decides whether there is still a memory after a look that failed.
func (e *Engine) concluded(m *memory, err error) {
	if err == nil {
		m.failed = 0
		return
	}
	if m.failed++; m.failed < maxFailed && retriable(err) {
		return
	}
	e.log.Warn("sold out is not answered from memory for a while", slog.String("sku", m.key.String()), slog.Any("error", err))
	m.failed, m.rest = 0, time.Now().Add(restLooks)
	m.calm.Store(nil)
}

// learn makes a look, once more if its answer was lost.
func (e *Engine) learn(ctx context.Context, m *memory) error {
	once := func() error {
		return e.inEpoch(ctx, m.key, func(epoch int64) error { return e.learnIn(ctx, m, epoch) })
	}
	err := once()
	if flashsale.CodeOf(err) == flashsale.CodeUnavailable && pause(ctx, jittered(repeatAfter)) {
		err = once()
	}
	return err
}

// learnIn reads marks until it has all of them, and keeps what the Stock says with the last ones.
func (e *Engine) learnIn(ctx context.Context, m *memory, epoch int64) error {
	if m.epoch != epoch || m.marks == nil {
		e.soldOut.release(m)
		m.epoch, m.marks, m.count, m.mark = epoch, newMarks(minMarks), 0, 0
	}
	for {
		began := e.cfg.Now()
		l, err := e.stock.Lull(ctx, m.key, epoch, flashsale.LullAsk{After: m.count, Last: m.mark, Limit: glancePage})
		if err != nil {
			return err
		}
		more := e.soldOut.keep(m, &l)
		switch {
		case l.Code != "" || l.Count >= flashsale.MaxMarks:
			m.calm.Store(nil)
			return nil
		case l.For > 0:
			m.calm.Store(m.calmOf(&l, began))
			return nil
		case !more:
			return errorf(flashsale.CodeInternal, "%s: the stock tells neither who is known nor of a lull", m.key)
		case e.soldOut.marks.Load() > flashsale.MaxMarks:
			e.soldOut.release(m)
			return errorf(flashsale.CodeInternal, "%s: there is no room for who is known of it; what is remembered has %d marks", m.key, flashsale.MaxMarks)
		}
	}
}

// keep adds the marks of a page, and reports whether there were any.
func (o *soldOut) keep(m *memory, l *flashsale.Lull) bool {
	m.count = l.From
	was := m.marks.n
	for _, mark := range l.Marks {
		m.marks = m.marks.add(mark)
		m.mark = mark
	}
	m.count += int64(len(l.Marks))
	o.marks.Add(int64(m.marks.n - was))
	return len(l.Marks) > 0
}

// calmOf is what a look that began then has found.
func (m *memory) calmOf(l *flashsale.Lull, began time.Time) *calm {
	c := &calm{epoch: m.epoch, marks: m.marks, until: began.Add(l.For), above: l.Above, next: began.Add(glanceEvery)}
	if l.Available > l.Above { // units wait for the end of the lull
		c.next = c.until
	}
	c.left.Store(herd * l.Above)
	return c
}
