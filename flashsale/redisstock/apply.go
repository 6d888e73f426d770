package redisstock

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// maxNumber is how far the numbers of Lua are exact.
const maxNumber = 1 << 53

// maxList bounds what one call may list.
const maxList = 100_000

// Apply implements [flashsale.Stock]. A reservation that has ended never changes again, whatever version says so.
func (s *Stock) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	o, err := s.op(s.scripts.apply, key, epoch, forReserve, "effects")
	if err != nil {
		return nil, err
	}
	if err := checkCount("effects and acknowledgements", len(effects)+len(acks)); err != nil {
		return nil, err
	}
	head := make([]byte, 0, 25*len(effects))
	o.args = make([]string, 1, 1+2*len(effects)+len(acks))
	for i := range effects {
		f := &effects[i]
		if err := checkEffect(key, f); err != nil {
			return nil, err
		}
		head = binary.LittleEndian.AppendUint64(append(head, byte(f.State)), uint64(f.Version))
		head = appendMarks(head, f.RID, f.User)
		t := text{quantity: f.Quantity, user: f.User}
		o.args = append(o.args, f.RID, t.string())
	}
	o.args[0] = string(head)
	for _, id := range acks {
		if isJobID(id) { // nothing else is in the queue
			o.args = append(o.args, id)
		}
	}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, badReply(o.what)
	}
	digits, err := all[0].ToString()
	if err != nil || len(digits) != len(effects) {
		return nil, badReply(o.what)
	}
	applied := make([]flashsale.Applied, len(effects))
	for i := range applied {
		applied[i] = flashsale.Applied(digits[i] - '0')
	}
	return applied, nil
}

// checkEffect refuses what SQL cannot say.
func checkEffect(key flashsale.Key, f *flashsale.Effect) error {
	if err := flashsale.CheckID("redisstock: the rid of an effect", f.RID); err != nil {
		return err
	}
	if err := flashsale.CheckUser(f.User); err != nil {
		return err
	}
	switch {
	case f.State < flashsale.Reserved || f.State > flashsale.Rejected:
		return failf(flashsale.CodeInvalidArgument, nil, "an effect on %s says that %s is %s, which SQL never does", key, f.RID, f.State)
	case f.Version < 1 || f.Version > maxNumber || f.Quantity < 0 || f.Quantity > flashsale.MaxTotal:
		return failf(flashsale.CodeInvalidArgument, nil, "an effect on %s, %s: version %d or quantity %d is out of range", key, f.RID, f.Version, f.Quantity)
	}
	return nil
}

func checkCount(what string, n int) error {
	if n > maxList {
		return failf(flashsale.CodeInvalidArgument, nil, "%d %s in one call; at most %d go", n, what, maxList)
	}
	return nil
}

// isJobID tells whether this can be the id of an entry of a stream: digits, '-', digits.
func isJobID(id string) bool {
	ms, seq, ok := strings.Cut(id, "-")
	return ok && isNumber(ms) && isNumber(seq)
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 18
}

// Adjust implements [flashsale.Stock].
func (s *Stock) Adjust(ctx context.Context, key flashsale.Key, epoch int64, id string, delta int64) (flashsale.AdjustResult, error) {
	var result flashsale.AdjustResult
	o, err := s.op(s.scripts.adjust, key, epoch, forAll, "an adjustment")
	if err != nil {
		return result, err
	}
	if err := flashsale.CheckID("redisstock: the id of the operation", id); err != nil {
		return result, err
	}
	if delta < -flashsale.MaxTotal || delta > flashsale.MaxTotal {
		return result, failf(flashsale.CodeInvalidQuantity, nil, "adjusting %s by %d; up to %d are allowed", key, delta, flashsale.MaxTotal)
	}
	o.args = []string{id, itoa(delta)}
	var done int64
	err = s.numbers(ctx, o, &done, &result.Available)
	result.Done = done == 1
	return result, err
}

// numbers makes a call that is answered with numbers.
func (s *Stock) numbers(ctx context.Context, o *op, to ...*int64) error {
	all, err := s.run(ctx, o)
	if err != nil {
		return err
	}
	if len(all) != len(to) {
		return badReply(o.what)
	}
	for i := range all {
		if *to[i], err = all[i].AsInt64(); err != nil {
			return badReply(o.what)
		}
	}
	return nil
}

// Configure implements [flashsale.Stock].
func (s *Stock) Configure(ctx context.Context, key flashsale.Key, epoch int64, to *flashsale.Settings) error {
	o, err := s.op(s.scripts.configure, key, epoch, forAll, "settings")
	if err != nil {
		return err
	}
	if err := checkSettings(key, to); err != nil {
		return err
	}
	o.args = []string{itoa(to.Version), string(to.Status), itoa(micros(to.OpensAt)), itoa(micros(to.ClosesAt)), itoa(to.PurchaseLimit), itoa(to.Rate)}
	return s.numbers(ctx, o)
}

func checkSettings(key flashsale.Key, to *flashsale.Settings) error {
	if to.Rate < 0 || to.Rate > flashsale.MaxRate || to.PurchaseLimit < 0 || to.Version > maxNumber {
		return failf(flashsale.CodeInvalidArgument, nil, "settings of %s: a rate of %d a second, a purchase limit of %d or version %d is out of range", key, to.Rate, to.PurchaseLimit, to.Version)
	}
	return nil
}
