package redisstock

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/headgate-io/headgate/flashsale"
)

// Point implements [flashsale.Loader].
func (s *Stock) Point(ctx context.Context, key flashsale.Key, epoch int64) ([]int64, error) {
	o, err := s.op(s.scripts.point, key, epoch, forAll, "the epochs")
	if err != nil {
		return nil, err
	}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	older := make([]int64, len(all))
	for i := range all {
		if older[i], err = all[i].AsInt64(); err != nil {
			return nil, badReply(o.what)
		}
	}
	return older, nil
}

// Load implements [flashsale.Loader].
func (s *Stock) Load(ctx context.Context, key flashsale.Key, epoch int64, part *flashsale.LoadPart) error {
	o, err := s.op(s.scripts.load, key, epoch, forAll, "a load")
	if err != nil {
		return err
	}
	if err := checkPart(key, part); err != nil {
		return err
	}
	counts := binary.LittleEndian.AppendUint32(nil, uint32(len(part.Entries)))
	counts = binary.LittleEndian.AppendUint32(counts, uint32(len(part.Buyers)))
	counts = binary.LittleEndian.AppendUint32(counts, uint32(len(part.Adjusted)))
	o.args = append(make([]string, 0, 3+2*len(part.Entries)+2*len(part.Buyers)+len(part.Adjusted)), string(counts), packTotals(part), packMarks(part))
	for i := range part.Entries {
		o.args = append(o.args, part.Entries[i].RID, packEntry(&part.Entries[i]))
	}
	for i := range part.Buyers {
		o.args = append(o.args, part.Buyers[i].User, packBuyer(&part.Buyers[i]))
	}
	o.args = append(o.args, part.Adjusted...)
	return s.numbers(ctx, o)
}

// packTotals is what the last part brings, nothing of others.
func packTotals(part *flashsale.LoadPart) string {
	if !part.Last {
		return ""
	}
	var b []byte
	to := &part.Settings
	for _, n := range [...]int64{part.Total, part.Reserved, part.Sold, micros(to.OpensAt), micros(to.ClosesAt), to.PurchaseLimit, to.Rate} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return string(b)
}

// packMarks is who is known from then on.
func packMarks(part *flashsale.LoadPart) string {
	b := make([]byte, 0, 16*len(part.Entries)+8*len(part.Buyers))
	for i := range part.Entries {
		b = appendMarks(b, part.Entries[i].RID, part.Entries[i].User)
	}
	for i := range part.Buyers {
		b = appendMarks(b, part.Buyers[i].User)
	}
	return string(b)
}

// checkPart refuses what SQL cannot hold.
func checkPart(key flashsale.Key, part *flashsale.LoadPart) error {
	if err := checkCount("rows of a snapshot", len(part.Entries)+len(part.Buyers)+len(part.Adjusted)); err != nil {
		return err
	}
	for i := range part.Entries {
		e := &part.Entries[i]
		f := flashsale.Effect{RID: e.RID, User: e.User, Quantity: e.Quantity, State: e.State, Version: e.Version}
		if err := checkEffect(key, &f); err != nil {
			return err
		}
	}
	for i := range part.Buyers {
		if err := checkBuyer(key, &part.Buyers[i]); err != nil {
			return err
		}
	}
	for _, id := range part.Adjusted {
		if err := flashsale.CheckID("redisstock: the id of an operation", id); err != nil {
			return err
		}
	}
	if !part.Last {
		return nil
	}
	if part.Reserved < 0 || part.Sold < 0 || part.Reserved+part.Sold > part.Total || part.Total > flashsale.MaxTotal {
		return failf(flashsale.CodeInvalidArgument, nil, "loading %s: reserved %d and sold %d of a total of %d", key, part.Reserved, part.Sold, part.Total)
	}
	return checkSettings(key, &part.Settings)
}

func checkBuyer(key flashsale.Key, b *flashsale.Buyer) error {
	if err := flashsale.CheckUser(b.User); err != nil {
		return err
	}
	if b.Quantity < 0 || b.Quantity > math.MaxUint32 {
		return failf(flashsale.CodeInvalidArgument, nil, "loading %s: a user with %d units", key, b.Quantity)
	}
	for _, rid := range b.RIDs {
		if err := flashsale.CheckID("redisstock: the rid of a buyer", rid); err != nil {
			return err
		}
	}
	return nil
}

// Drain implements [flashsale.Loader]. How often a job was delivered is not told.
func (s *Stock) Drain(ctx context.Context, key flashsale.Key, epoch, older int64, after string, limit int) ([]flashsale.Job, error) {
	if err := checkOlder(key, epoch, older); err != nil {
		return nil, err
	}
	if after != "" && !isJobID(after) {
		return nil, failf(flashsale.CodeInvalidArgument, nil, "draining epoch %d of %s: %.64q is no job; begin with an empty id", older, key, after)
	}
	const q = 5 // its place among all keys
	keys := s.keysOf(key, older, forAll)
	o := &op{script: s.scripts.drain, key: key, epoch: epoch, keys: []string{keys[0], keys[q]}, what: "an older queue"}
	o.args = []string{after, itoa(int64(min(max(limit, 0), maxList)))}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	return parseList(all, o.what, parseJob)
}

// Drop implements [flashsale.Loader].
func (s *Stock) Drop(ctx context.Context, key flashsale.Key, epoch, older int64) error {
	if err := checkOlder(key, epoch, older); err != nil {
		return err
	}
	o := &op{script: s.scripts.drop, key: key, epoch: epoch, keys: s.keysOf(key, older, forAll), what: "a drop"}
	o.args = []string{itoa(older)}
	return s.numbers(ctx, o)
}

// Remove implements [flashsale.Loader], in a call for each older epoch and a last one, before which the sku is as it was.
func (s *Stock) Remove(ctx context.Context, key flashsale.Key, epoch int64) error {
	for {
		o, err := s.op(s.scripts.remove, key, epoch, forAll, "a removal")
		if err != nil {
			return err
		}
		older, err := s.run(ctx, o)
		if err != nil || len(older) == 0 {
			return err
		}
		for i := range older {
			e, err := older[i].AsInt64()
			if err != nil {
				return badReply(o.what)
			}
			if err := s.Drop(ctx, key, epoch, e); err != nil {
				return err
			}
		}
	}
}

func checkOlder(key flashsale.Key, epoch, older int64) error {
	if err := checkKey(key, epoch); err != nil {
		return err
	}
	if older >= epoch {
		return failf(flashsale.CodeInvalidArgument, nil, "epoch %d of %s is not older than %d", older, key, epoch)
	}
	return nil
}
