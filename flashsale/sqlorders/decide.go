package sqlorders

import (
	"github.com/headgate-io/headgate/flashsale"

	"context"
)

// maxBatch bounds what one transaction decides.
const maxBatch = 10_000

// Decide is T1 for a batch: one transaction, whose statements are as many for a thousand jobs as for one. An error that is the
// batch's own, and not that of another transaction or of the connection, may be that of one of its jobs.
func (o *Orders) Decide(ctx context.Context, b *flashsale.Batch) ([]flashsale.Decided, error) {
	cases := make([]asked, len(b.Jobs))
	for i := range b.Jobs {
		j := &b.Jobs[i]
		cases[i] = asked{rid: j.RID, user: j.User, quantity: j.Quantity, origin: j.Origin, seq: j.Seq}
	}
	return o.rule(ctx, "Decide", &hearing{
		key: b.Key, cases: cases, seq: !b.Drain,
		admit:   func(s *flashsale.SKUState) error { return admits(s, b) },
		refusal: func(d *desk, a *asked) string { return d.refusal(a, b.Drain) },
	})
}

// Tombstone is T2: what has no row gets one that says no, and what has one is answered with it.
func (o *Orders) Tombstone(ctx context.Context, key flashsale.Key, pending []flashsale.Entry) ([]flashsale.Decided, error) {
	cases := make([]asked, len(pending))
	for i := range pending {
		e := &pending[i]
		cases[i] = asked{rid: e.RID, user: e.User, quantity: e.Quantity}
	}
	return o.rule(ctx, "Tombstone", &hearing{
		key: key, cases: cases,
		admit:   func(*flashsale.SKUState) error { return nil },
		refusal: func(*desk, *asked) string { return flashsale.ReasonDeadline },
	})
}

// admits says whether a batch may be decided now at all.
func admits(s *flashsale.SKUState, b *flashsale.Batch) error {
	switch {
	case s.Epoch != b.Epoch:
		return errorf(flashsale.CodeStaleEpoch, "%s is at epoch %d, and the batch is of epoch %d; nothing was decided", b.Key, s.Epoch, b.Epoch)
	case b.Drain && !s.Rebuilding:
		return errorf(flashsale.CodeStaleEpoch, "the rebuild of %s for epoch %d has ended already; nothing was decided", b.Key, b.Epoch)
	case !b.Drain && s.Rebuilding:
		return errorf(flashsale.CodeRebuilding, "%s is being rebuilt; nothing was decided", b.Key)
	}
	return nil
}

// asked is a reservation that has to be decided.
type asked struct {
	rid, user string
	quantity  int64
	origin    string
	seq       int64
}

// check refuses what no row can hold, with the rid, so that one such job can be told from the others of its batch.
func (a *asked) check() error {
	if err := flashsale.CheckID("the id of a reservation", a.rid); err != nil {
		return err
	}
	switch {
	case a.user == "" || len(a.user) > flashsale.MaxUser:
		return invalidf("reservation %s has a user of %d bytes; it must be 1 to %d", a.rid, len(a.user), flashsale.MaxUser)
	case a.quantity < 1 || a.quantity > flashsale.MaxTotal:
		return errorf(flashsale.CodeInvalidQuantity, "reservation %s has a quantity of %d; it must be 1 to %d", a.rid, a.quantity, int64(flashsale.MaxTotal))
	case a.origin != "" && !isIntentKey(a.origin):
		return invalidf("reservation %s has an origin that is not the key of an intent", a.rid)
	}
	return nil
}

// hearing is a call that decides reservations of one sku.
type hearing struct {
	key   flashsale.Key
	cases []asked
	// admit looks at the locked sku, whether anything can be decided; refusal says why a reservation is refused, "" if it is not.
	admit   func(*flashsale.SKUState) error
	refusal func(*desk, *asked) string
	// seq tells that the cases have sequence numbers of this epoch.
	seq bool
}

// rule decides the cases of a hearing in their order, and writes what came of them.
func (o *Orders) rule(ctx context.Context, method string, h *hearing) (decided []flashsale.Decided, err error) {
	if len(h.cases) == 0 {
		return nil, nil
	}
	if len(h.cases) > maxBatch {
		return nil, invalidf("%d reservations to decide at once; the most are %d", len(h.cases), maxBatch)
	}
	for i := range h.cases {
		if err := h.cases[i].check(); err != nil {
			return nil, err
		}
	}
	err = o.write(ctx, method, func(t *tx) (err error) {
		decided, err = t.rule(h)
		return err
	})
	if err != nil {
		return nil, err
	}
	return decided, nil
}

func (t *tx) rule(h *hearing) ([]flashsale.Decided, error) {
	s, err := t.lockSKU(h.key)
	if err != nil {
		return nil, err
	}
	if err := h.admit(s); err != nil {
		return nil, err
	}
	d := &desk{sku: s, left: s.Available()}
	if err := t.knownTo(d, h.cases); err != nil {
		return nil, err
	}
	if err := t.heldBy(d, h.cases); err != nil {
		return nil, err
	}
	decided := d.decide(h.cases, h.refusal)
	if h.seq {
		d.noteSeq(h.cases)
	}
	return decided, t.record(d, decided)
}

// knownTo reads the rows that there are.
func (t *tx) knownTo(d *desk, cases []asked) error {
	rids := make([]string, len(cases))
	for i := range cases {
		rids[i] = cases[i].rid
	}
	d.known = make(map[string]flashsale.Decided, len(cases))
	return t.eachReservation(rids, func(r *flashsale.Reservation) error {
		if r.Key != d.sku.Key {
			return errorf(flashsale.CodeConflict, "reservation %s is one of %s, and cannot be decided for %s", r.RID, r.Key, d.sku.Key)
		}
		d.known[r.RID] = replayed(r)
		return nil
	})
}

// heldBy reads what the buyers hold whose cases have no row.
func (t *tx) heldBy(d *desk, cases []asked) error {
	d.held = make(map[string]int64, len(cases))
	var users [][]byte
	for i := range cases {
		c := &cases[i]
		if _, known := d.known[c.rid]; known {
			continue
		}
		if _, there := d.held[c.user]; !there {
			d.held[c.user] = 0
			users = append(users, []byte(c.user))
		}
	}
	return inParts(t.d, users, func(part [][]byte) error {
		query, args := t.d.buyersOf(d.sku.Key, part)
		return t.query(query, args,
			func(scan func(...any) error) error {
				var user []byte
				var quantity int64
				err := scan(&user, &quantity)
				d.held[string(user)] = quantity
				return err
			})
	})
}

// buyersOf reads rows of buyers by their whole key.
func (d *dialect) buyersOf(key flashsale.Key, users [][]byte) (string, []any) {
	const columns, where = "SELECT user_id, quantity FROM buyer", " WHERE sale = ? AND sku = ? AND "
	if d.arrays {
		// One look into the index for each: for "= ANY", a plan that was made while there were few would read all buyers of the sku.
		return "SELECT b.* FROM unnest(CAST(? AS BYTEA[])) AS u(id) CROSS JOIN LATERAL (" + columns + where + "user_id = u.id OFFSET 0) b",
			[]any{users, key.Sale, key.SKU}
	}
	those, args := in(d, "user_id", users)
	return columns + where + those, append([]any{key.Sale, key.SKU}, args...)
}
