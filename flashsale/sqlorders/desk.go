package sqlorders

import "github.com/headgate-io/headgate/flashsale"

// desk decides reservations of a locked sku one after another, each in the light of those before it. It knows no database.
type desk struct {
	sku *flashsale.SKUState
	// left is what the sku has left; held is what each buyer of the batch holds and has bought.
	left int64
	held map[string]int64
	// known are the reservations that have been decided, earlier or in this batch.
	known map[string]flashsale.Decided

	// What has to be written: the cases that were decided here, the units they take, by whom, and the highest sequence number.
	fresh  []verdict
	taken  int64
	bought map[string]int64
	seq    int64
}

// verdict is a case that was decided now, against it if there is a reason.
type verdict struct {
	*asked
	at     int // in what is returned
	reason string
}

func (v *verdict) state() flashsale.State {
	if v.reason == "" {
		return flashsale.Reserved
	}
	return flashsale.Rejected
}

// decide answers every case, in order. What has a row is answered as it is there, before anything else is looked at.
func (d *desk) decide(cases []asked, refusal func(*desk, *asked) string) []flashsale.Decided {
	decided := make([]flashsale.Decided, len(cases))
	d.fresh = make([]verdict, 0, len(cases))
	d.bought = make(map[string]int64, len(cases))
	for i := range cases {
		c := &cases[i]
		if known, there := d.known[c.rid]; there {
			decided[i] = known
			continue
		}
		v := verdict{asked: c, at: i, reason: refusal(d, c)}
		if v.reason == "" {
			d.take(c)
		}
		d.fresh = append(d.fresh, v)
		decided[i] = flashsale.Decided{RID: c.rid, User: c.user, Quantity: c.quantity, State: v.state(), Version: 1, Reason: v.reason}
		again := decided[i]
		again.Replayed = true
		d.known[c.rid] = again
	}
	return decided
}

func (d *desk) take(c *asked) {
	d.left -= c.quantity
	d.taken += c.quantity
	d.held[c.user] += c.quantity
	d.bought[c.user] += c.quantity
}

// refusal is the guard of T1: why a case is rejected, "" if it is not. The jobs of a drain were taken under a status that held then.
func (d *desk) refusal(c *asked, drain bool) string {
	switch {
	case !drain && !d.sku.Settings.Status.Decides():
		return flashsale.ReasonNotOpen
	case d.held[c.user]+c.quantity > d.sku.Settings.PurchaseLimit:
		return flashsale.ReasonPurchaseLimit
	case c.quantity > d.left:
		return flashsale.ReasonSoldOut
	}
	return ""
}

// noteSeq keeps the highest sequence number of the Stock that SQL has seen in this epoch, by which a loss of the Stock is noticed.
func (d *desk) noteSeq(cases []asked) {
	for i := range cases {
		d.seq = max(d.seq, cases[i].seq)
	}
}

// each calls f with every verdict, or with those alone that reserve.
func (d *desk) each(reserved bool, f func(*verdict)) {
	for i := range d.fresh {
		if v := &d.fresh[i]; !reserved || v.reason == "" {
			f(v)
		}
	}
}
