package redisstore

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

// The answers of refund.lua for one charge.
const (
	refundLate = 0
	refundDone = 1
)

// Refund implements [headgate.Refunder]. On a cluster it is one call for each shard; if one of them fails the others have
// given back all the same, and the receipts say what was. What may have been given back (CodeIndeterminate) is off the
// receipts too, so that a second Refund cannot give it twice.
func (v *view) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	if len(d.Outcomes) != len(charges) {
		return newError(headgate.CodeInvalidCharge, nil, "%d charges and %d outcomes are not of one take", len(charges), len(d.Outcomes))
	}
	groups := v.s.partition(charges)
	var first *headgate.Error
	for _, indexes := range groups {
		if err := v.refundGroup(ctx, charges, indexes, d); err != nil && first == nil {
			first = err
		}
	}
	return v.s.fail(first)
}

// partition is groups, with one group where one script can have all.
func (s *Store) partition(charges []headgate.Charge) map[int][]int {
	if len(charges) == 0 {
		return nil
	}
	if groups := s.groups(charges); groups != nil {
		return groups
	}
	all := make([]int, len(charges))
	for i := range all {
		all[i] = i
	}
	return map[int][]int{0: all}
}

// refundGroup gives back what lies in one shard.
func (v *view) refundGroup(ctx context.Context, charges []headgate.Charge, indexes []int, d *headgate.Decision) *headgate.Error {
	var owed []headgate.Charge
	var marks []int64
	var of []int
	for _, i := range indexes {
		r := &d.Outcomes[i].Receipt
		n := min(charges[i].Cost, r.Charged)
		if n <= 0 {
			continue
		}
		c := charges[i]
		c.Cost, c.Mode, c.Lockout = n, headgate.Settle, nil // a settling cost is cut to what the limit can hold
		owed, marks, of = append(owed, c), append(marks, r.Mark), append(of, i)
	}
	if len(owed) == 0 {
		return nil
	}
	answer, err := v.refund(ctx, owed, marks)
	if err != nil {
		if err.Code == headgate.CodeIndeterminate || err.Code == headgate.CodeInternal {
			forfeit(owed, of, d)
		}
		return err
	}
	for j, i := range of {
		r := &d.Outcomes[i].Receipt
		if r.Charged -= owed[j].Cost; answer[j] == refundLate {
			r.Charged = 0
		}
	}
	return nil
}

// forfeit takes what may have been given back off the receipts, so that asking again cannot give it back twice. A slot stays:
// freeing it again frees nothing.
func forfeit(owed []headgate.Charge, of []int, d *headgate.Decision) {
	for j, i := range of {
		if kindOf(owed[j].Limit) != kindHolders {
			d.Outcomes[i].Receipt.Charged -= owed[j].Cost
		}
	}
}

// refund runs refund.lua on charges of one shard and returns its answer for each of them. Where the clocks differ too far for a
// calendar it asks again, once.
func (v *view) refund(ctx context.Context, owed []headgate.Charge, marks []int64) (string, *headgate.Error) {
	if err := v.s.lane(owed[0].Key).barred(); err != nil {
		return "", err
	}
	for again, around := false, int64(0); ; again = true {
		o, wall, err := v.begin(ctx, v.s.scripts.refund)
		if err != nil {
			return "", err
		}
		o.load(v.s.names, owed)
		o.marks = marks
		if again {
			o.around = around
		}
		if err := v.s.run(ctx, v.s.lane(owed[0].Key), o, wall); err != nil {
			return "", err
		}
		reply := o.reply
		v.s.free(o)
		if len(reply) != headLength+len(owed) {
			return "", badReply()
		}
		switch answer := reply[headLength:]; {
		case answer[0] == replySkew && !again:
			around = replyTime(reply)
		case answer[0] == replySkew:
			return "", newError(headgate.CodeClockSkew, nil, "the clocks of Redis and of this machine are too far apart for a calendar window")
		case answer[0] == replyForeign:
			return "", newError(headgate.CodeUnavailable, nil, "a key of this namespace holds another program's data; nothing was given back")
		default:
			return answer, nil
		}
	}
}
