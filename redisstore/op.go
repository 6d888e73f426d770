package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// The states of an op. A caller may leave while it is queued or sent; who changes the state first decides.
const (
	opQueued int32 = iota
	opSent
	opDone
	opLeft
)

// ref names the keys of one charge, and their places in the call that it is sent in.
type ref struct {
	state, lock, live, gone string
	stateAt, lockAt, liveAt int
}

// raw is what to send as it is.
type raw struct {
	keys []string
	arg  []byte
}

// op is one request on its way to Redis: a take, or what another script does. It owns all that it needs, since its caller
// may leave before it is sent. Once its state is opDone it is the caller's again; once it is opLeft it is nobody's.
type op struct {
	script  *script
	timed   bool
	now     int64 // µs, if timed
	around  int64 // µs: the time around which windows of calendars are sent
	charges []headgate.Charge
	locks   []headgate.Lockout // what the charges' Lockout point to
	refs    []ref
	marks   []int64 // of a refund
	what    byte    // of slots.lua
	raw     *raw    // of the other scripts
	keys    int     // at most
	plain   bool    // paying charges without lockouts or holders

	deadline time.Time
	state    atomic.Int32
	refusal  atomic.Pointer[headgate.Error] // what Redis last answered, while it is repeated
	done     chan struct{}
	timer    *time.Timer

	// The answer, written before done gets its value.
	reply string // of the whole call
	at    int    // where this op's part of it begins
	err   *headgate.Error
}

func newOp() *op {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &op{done: make(chan struct{}, 1), timer: t}
}

// load copies the charges into the op, and names their keys.
func (o *op) load(n *namer, charges []headgate.Charge) {
	o.charges = append(o.charges[:0], charges...)
	o.refs, o.locks = o.refs[:0], o.locks[:0]
	o.keys, o.plain = 0, true
	for i := range charges {
		if charges[i].Lockout != nil {
			o.locks = append(o.locks, *charges[i].Lockout)
		}
	}
	locks := o.locks
	for i := range o.charges {
		c := &o.charges[i]
		r := ref{state: n.name(keyState, c.Slot, c.Key)}
		o.keys++
		if c.Mode != headgate.Pay {
			o.plain = false
		}
		if c.Lockout != nil {
			o.plain = false
			c.Lockout, locks = &locks[0], locks[1:]
			if c.Mode != headgate.Settle {
				r.lock = n.another(r.state, keyLockout)
				o.keys++
			}
		}
		if kindOf(c.Limit) == kindHolders {
			r.live, r.gone = n.another(r.state, keyHolders), n.another(r.state, keyGone)
			o.keys += 2
			o.plain = false
		}
		o.refs = append(o.refs, r)
	}
}

// await waits for the answer until the op's or the caller's time is up. left tells that the op is not the caller's any more.
func (o *op) await(ctx context.Context, now time.Time) (err *headgate.Error, left bool) {
	o.timer.Reset(o.deadline.Sub(now))
	var own error
	select {
	case <-o.done:
		o.timer.Stop()
		return o.err, false
	case <-ctx.Done():
		own = ctx.Err()
		o.timer.Stop()
	case <-o.timer.C:
		if first, ok := ctx.Deadline(); ok && first.Before(o.deadline) { // both are over, this one was the first
			own = context.DeadlineExceeded
		}
	}
	for {
		switch state := o.state.Load(); state {
		case opDone: // the answer is on its way
			<-o.done
			return o.err, false
		default:
			refusal := o.refusal.Load()
			if o.state.CompareAndSwap(state, opLeft) {
				return leaveError(state == opSent, own, refusal), true
			}
		}
	}
}

// finish gives the op its answer, unless its caller has left.
func (o *op) finish(reply string, at int, err *headgate.Error) {
	if !o.state.CompareAndSwap(opSent, opDone) {
		return
	}
	o.reply, o.at, o.err = reply, at, err
	o.done <- struct{}{}
}
