package redisstore

import (
	"encoding/binary"

	headgate "github.com/headgate-io/headgate"
)

// batch is one call of a script: the ops that it carries, and what is sent for them. It is used by one goroutine.
type batch struct {
	ops     []*op
	sent    []*op // of ops, those that had not left when it was built
	strings []string
	sets    []string
	index   map[string]int // of strings, from 1
	specs   []spec
	kinds   uint16
	size    int // bytes of the last body, to begin the next with

	shortcut bool // whether there is a script for lone plain charges
}

func newBatch() *batch { return &batch{index: make(map[string]int, maxBatchKeys)} }

// build takes the ops that are still waited for and returns what to send; nothing if there are none.
func (b *batch) build(bounds func(l headgate.Limit, around int64) [4]int64) (keys []string, arg []byte) {
	b.sent, b.strings, b.sets, b.specs, b.kinds = b.sent[:0], b.strings[:0], b.sets[:0], b.specs[:0], 0
	clear(b.index)
	for _, o := range b.ops {
		if o.state.CompareAndSwap(opQueued, opSent) {
			b.sent = append(b.sent, o)
			b.intern(o)
		}
	}
	if len(b.sent) == 0 {
		return nil, nil
	}
	keys = make([]string, 0, len(b.strings)+len(b.sets))
	keys = append(append(keys, b.strings...), b.sets...)
	return keys, b.encode(bounds)
}

// intern gives each key of the op its place among the keys of the call.
func (b *batch) intern(o *op) {
	for i := range o.refs {
		r := &o.refs[i]
		r.stateAt = b.place(r.state)
		if r.lock != "" {
			r.lockAt = b.place(r.lock)
		}
		if r.live != "" {
			r.liveAt = b.placeSets(r.live, r.gone)
		}
	}
}

func (b *batch) place(key string) int {
	at, ok := b.index[key]
	if !ok {
		b.strings = append(b.strings, key)
		at = len(b.strings)
		b.index[key] = at
	}
	return at
}

// placeSets returns the place of the first of two keys among the sets, which stand after all strings.
func (b *batch) placeSets(live, gone string) int {
	at, ok := b.index[live]
	if !ok {
		b.sets = append(b.sets, live, gone)
		at = len(b.sets) - 1
		b.index[live] = at
	}
	return at
}

// lone tells whether the batch is one plain charge, which has a script of its own.
func (b *batch) lone() bool {
	return len(b.sent) == 1 && b.sent[0].plain && len(b.sent[0].charges) == 1 && b.shortcut && b.sent[0].marks == nil && b.sent[0].what == 0
}

// script returns the script that the batch is for.
func (b *batch) script(all *scripts) *script {
	if o := b.sent[0]; o.script != all.take || !b.lone() {
		return o.script
	}
	return all.one
}

// encode writes the head, the specs and the ops. The specs are known once the ops are written, so those are written apart.
func (b *batch) encode(bounds func(headgate.Limit, int64) [4]int64) []byte {
	var space [2048]byte
	body := space[:0]
	for _, o := range b.sent {
		body = b.appendOp(body, o, bounds)
	}
	units := len(b.sent) // takes, or of a refund, which is alone, its charges
	if b.sent[0].marks != nil {
		units = len(b.sent[0].charges)
	}
	first := b.sent[0]
	arg := make([]byte, 0, max(b.size, 128)+64)
	arg = append(arg, boolByte(first.timed), byte(b.kinds), byte(b.kinds>>8), byte(units), byte(len(b.specs)))
	arg = binary.LittleEndian.AppendUint16(arg, uint16(len(b.strings)))
	arg = binary.LittleEndian.AppendUint64(arg, uint64(first.now))
	for i := range b.specs {
		arg = b.specs[i].append(arg)
	}
	if !b.lone() {
		arg = append(arg, body...)
	}
	b.size = len(arg)
	return arg
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// appendOp writes what one op asks, as the script that it is for reads it.
func (b *batch) appendOp(body []byte, o *op, bounds func(headgate.Limit, int64) [4]int64) []byte {
	if o.marks == nil && o.what == 0 {
		body = append(body, byte(len(o.charges)), boolByte(o.plain))
		if !o.plain {
			b.kinds |= kindsGeneral
		}
	}
	for i := range o.charges {
		c, r := &o.charges[i], &o.refs[i]
		s := spec{limit: c.Limit, cost: c.Cost, mode: c.Mode, refund: o.marks != nil}
		if c.Lockout != nil {
			s.lockout = *c.Lockout
		}
		kind := kindOf(c.Limit)
		if kind == kindCalendar {
			s.bounds = bounds(c.Limit, o.around)
		}
		b.kinds |= 1 << kind
		at := b.spec(&s)
		if o.what != 0 {
			body = append(body, o.what)
		} else {
			body = append(body, byte(at))
		}
		body = binary.LittleEndian.AppendUint16(body, uint16(r.stateAt))
		switch {
		case o.marks != nil:
			body = putUint(body, uint64(o.marks[i]), 7)
		case r.lock != "":
			body = binary.LittleEndian.AppendUint16(body, uint16(r.lockAt))
		}
		if r.live != "" {
			body = binary.LittleEndian.AppendUint16(body, uint16(len(b.strings)+r.liveAt))
			body = append(append(body, byte(len(c.Holder))), c.Holder...)
		}
	}
	return body
}

// spec returns the place of a spec, from 1. Only the last few are looked at for the same: few limits are hot, and a batch
// of many different ones must not take time that grows with the square of their number.
func (b *batch) spec(s *spec) int {
	for i := len(b.specs) - 1; i >= 0 && i >= len(b.specs)-16; i-- {
		if b.specs[i] == *s {
			return i + 1
		}
	}
	b.specs = append(b.specs, *s)
	return len(b.specs)
}
