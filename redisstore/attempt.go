package redisstore

import (
	"context"
	"time"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

// attempt sends a batch once. again tells that nothing ran and its ops wait to be asked again; else all have their answer.
func (s *Store) attempt(ctx context.Context, b *batch, w *watcher) (f fate, again bool) {
	keys, arg := b.prepare(s)
	if len(b.sent) == 0 {
		return fateRefused, false // all have left
	}
	script := b.script(&s.scripts)
	text := unsafe.String(unsafe.SliceData(arg), len(arg)) // arg is not written to again
	w.sends(script.name, len(b.sent), time.Now())
	reply, err := s.client.EvalSHA(ctx, script.sha, keys, text)
	if err != nil {
		if f, _ = judge(err); f == fateLoad {
			reply, err = s.client.Eval(ctx, script.text, keys, text)
		}
	}
	if s.broken.Load() != (err != nil) {
		s.broken.Store(err != nil)
	}
	if err == nil {
		w.ends("")
		s.deliver(b, reply)
		return fateRefused, false
	}
	f, hint := judge(err)
	failure := callError(f, hint, err)
	if f == fateRepeat || f == fateApart {
		w.refused(failure.Code)
		b.requeue(failure)
		return f, true
	}
	w.ends(failure.Code)
	s.complain(failure)
	for _, o := range b.sent {
		o.finish("", 0, failure)
	}
	return f, false
}

// attemptApart sends each op of a batch alone and reports whether some must be asked again. Those stay in the batch; an op that
// has its answer is its caller's, and may be another request by now.
func (s *Store) attemptApart(ctx context.Context, b *batch, w *watcher) (again bool) {
	one := newBatch()
	waiting := b.ops[:0]
	for _, o := range b.ops {
		one.ops = append(one.ops[:0], o)
		if _, more := s.attempt(ctx, one, w); more {
			waiting = append(waiting, o)
		}
	}
	clear(b.ops[len(waiting):])
	b.ops = waiting
	return len(waiting) > 0
}

// requeue makes the ops wait again, so that a caller who leaves now knows that nothing ran, and why.
func (b *batch) requeue(refusal *headgate.Error) {
	for _, o := range b.sent {
		o.refusal.Store(refusal)
		o.state.CompareAndSwap(opSent, opQueued)
	}
}

// prepare returns what to send.
func (b *batch) prepare(s *Store) (keys []string, arg []byte) {
	if first := b.ops[0]; first.raw != nil {
		b.sent = b.sent[:0]
		if first.state.CompareAndSwap(opQueued, opSent) {
			b.sent = append(b.sent, first)
		}
		return first.raw.keys, first.raw.arg
	}
	b.shortcut = s.scripts.one != nil
	return b.build(s.bounds)
}

// deliver gives each op its part of the reply.
func (s *Store) deliver(b *batch, reply string) {
	if b.sent[0].script != s.scripts.take {
		b.sent[0].finish(reply, 0, nil)
		return
	}
	if len(reply) < headLength {
		for _, o := range b.sent {
			o.finish("", 0, badReply())
		}
		return
	}
	at := headLength
	if unknown := unknownStates(reply); unknown > 0 {
		s.cfg.Observer.UnknownStates(unknown)
	}
	for i, o := range b.sent {
		next, err := skip(reply, at, len(o.charges))
		if err != nil { // what follows cannot be found either
			for _, o := range b.sent[i:] {
				o.finish("", 0, err)
			}
			return
		}
		o.finish(reply, at, nil)
		at = next
	}
}

// complain logs a failure of Redis, at most once a second. What the store's own end cuts short is none.
func (s *Store) complain(err *headgate.Error) {
	if s.base.Err() != nil {
		return
	}
	now := time.Now().UnixNano()
	last := s.complained.Load()
	if now-last > int64(time.Second) && s.complained.CompareAndSwap(last, now) {
		s.cfg.Logger.Warn("a call of Redis failed", "code", string(err.Code), "error", err.Error())
	}
}
