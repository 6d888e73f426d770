package redisstore

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

// few is the number of charges up to which a take works on the stack.
const few = 4

// Take implements [headgate.Limiter]. Its codes: CodeOverloaded, CodeTimeout and CodeUnavailable (nothing was charged), CodeIndeterminate
// (it may have been), CodeClockSkew, CodeClosed, CodeInternal, and those of [headgate.Validate].
func (v *view) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	if len(charges) == 0 {
		d.Conclude(charges)
		return nil
	}
	err := v.take(ctx, charges, d)
	if err != nil {
		d.Reset(0)
	}
	return v.s.fail(err)
}

func (v *view) take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) *headgate.Error {
	if err := v.s.barred(charges); err != nil {
		return err
	}
	if groups := v.s.groups(charges); groups != nil {
		return v.takeSpread(ctx, charges, groups, d)
	}
	var space [few]part
	a := answerer{charges: charges, parts: space[:0]}
	if err := v.ask(ctx, &a); err != nil {
		return err
	}
	return v.s.decide(&a, d)
}

// ask runs take.lua on charges that one script can have, and reads its answer. Where the clocks differ too far for a
// calendar it asks again, once, with the windows around the clock of Redis.
func (v *view) ask(ctx context.Context, a *answerer) *headgate.Error {
	for again := false; ; again = true {
		o, wall, err := v.begin(ctx, v.s.scripts.take)
		if err != nil {
			return err
		}
		o.load(v.s.names, a.charges)
		if again {
			o.around = a.now
		}
		if err := v.s.run(ctx, v.s.lane(a.charges[0].Key), o, wall); err != nil {
			return err
		}
		a.zones, a.now, a.parts = &v.s.zones, replyTime(o.reply), a.parts[:0]
		err = a.read(o.reply, o.at)
		v.s.free(o)
		if again || err == nil || err.Code != headgate.CodeClockSkew {
			return err
		}
	}
}

// read reads the parts of a reply.
func (a *answerer) read(reply string, at int) *headgate.Error {
	for range a.charges {
		var p part
		next, ok := readPart(reply, at, &p)
		switch {
		case !ok:
			return badReply()
		case p.flags&replySkew != 0:
			return newError(headgate.CodeClockSkew, nil, "the clocks of Redis and of this machine are too far apart for a calendar window; set them right")
		case p.flags&replyForeign != 0:
			return newError(headgate.CodeUnavailable, nil, "a key of this namespace holds another program's data; nothing was charged")
		}
		a.parts = append(a.parts, p)
		at = next
	}
	return nil
}

// decide writes the decision of a take whose charges all lay in one script.
func (s *Store) decide(a *answerer, d *headgate.Decision) *headgate.Error {
	a.judge()
	d.Reset(len(a.charges))
	for i := range a.charges {
		if err := a.outcome(i, a.charged(i), &d.Outcomes[i]); err != nil {
			return err
		}
		s.noteNew(&a.charges[i], &a.parts[i])
	}
	d.Conclude(a.charges)
	return nil
}

// noteNew tells the observer of a key that had no state and has one now.
func (s *Store) noteNew(c *headgate.Charge, p *part) {
	if p.flags&(replyCharged|replyState) == replyCharged {
		s.cfg.Observer.NewKey(c.Slot)
	}
}

// groups divides the charges of a take over the shards of a cluster: for each shard the indexes of its charges. It is nil
// where one script can have them all.
func (s *Store) groups(charges []headgate.Charge) map[int][]int {
	if len(s.lanes) == 1 {
		return nil
	}
	first, one := s.names.shard(charges[0].Key), true
	for i := range charges[1:] {
		if charges[1+i].Key != charges[0].Key && s.names.shard(charges[1+i].Key) != first {
			one = false
			break
		}
	}
	if one {
		return nil
	}
	groups := map[int][]int{}
	for i := range charges {
		shard := s.names.shard(charges[i].Key)
		groups[shard] = append(groups[shard], i)
	}
	return groups
}
