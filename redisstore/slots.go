package redisstore

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

// What slots.lua does.
const (
	slotRenew   = 1
	slotRelease = 2
)

// Renew implements [headgate.Slots].
func (v *view) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	return v.slot(ctx, c, slotRenew)
}

// Release implements [headgate.Slots].
func (v *view) Release(ctx context.Context, c *headgate.Charge) error {
	_, err := v.slot(ctx, c, slotRelease)
	return err
}

func (v *view) slot(ctx context.Context, c *headgate.Charge, what byte) (alive bool, err error) {
	acquire := [1]headgate.Charge{*c}
	acquire[0].Cost, acquire[0].Lockout = 1, nil
	if err := headgate.Validate(acquire[:]); err != nil {
		return false, err
	}
	l, ok := c.Limit.(headgate.Concurrency)
	if !ok {
		e := newError(headgate.CodeInvalidLimit, nil, "%s has no holders", c.Limit.Algorithm())
		e.Charge = 0
		return false, e
	}
	if failed := v.s.lane(c.Key).barred(); failed != nil {
		return false, v.s.fail(failed)
	}
	if l.Count() == 0 { // nobody can acquire, but the slots there are live on
		if acquire[0].Limit, err = headgate.NewConcurrency(1, l.TTL()); err != nil {
			return false, err
		}
	}
	o, wall, failed := v.begin(ctx, v.s.scripts.slots)
	if failed != nil {
		return false, v.s.fail(failed)
	}
	o.load(v.s.names, acquire[:])
	o.what = what
	if failed := v.s.run(ctx, v.s.lane(c.Key), o, wall); failed != nil {
		return false, v.s.fail(failed)
	}
	reply := o.reply
	v.s.free(o)
	if len(reply) != headLength+1 {
		return false, v.s.fail(badReply())
	}
	if reply[headLength] == replyForeign {
		return false, v.s.fail(newError(headgate.CodeUnavailable, nil, "a key of this namespace holds another program's data; nothing was done"))
	}
	return reply[headLength] == 1, nil
}
