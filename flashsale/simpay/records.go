package simpay

import (
	"iter"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// changes is what has changed, in order; an entry that is not its payment's latest stands for nothing any more.
type changes struct {
	entries []change
	seq     int64
}

type change struct {
	seq int64
	at  time.Time
	pay *payment
}

// live reports whether an entry is its payment's latest.
func (c *change) live() bool { return c.pay != nil && c.pay.change == c.seq }

// add notes that a payment has changed, and now and then leaves out what stands for nothing.
func (c *changes) add(payments map[string]*payment, pay *payment) {
	at := pay.changeAt
	if n := len(c.entries); n > 0 && at.Before(c.entries[n-1].at) {
		at = c.entries[n-1].at // a clock that went back does not spoil the order
	}
	c.seq++
	pay.change = c.seq
	c.entries = append(c.entries, change{seq: c.seq, at: at, pay: pay})
	if len(c.entries) > 2*len(payments)+1024 {
		c.entries = slices.DeleteFunc(c.entries, func(e change) bool { return !e.live() })
	}
}

// list is a page of what has changed since a time. The cursor is the number of the last change that was seen.
func (p *Provider) list(since time.Time, cursor string, limit int) (page []flashsale.ProviderPayment, next string, err error) {
	entries := p.changes.entries
	from := sort.Search(len(entries), func(i int) bool { return !entries[i].at.Before(since) })
	if cursor != "" {
		seen, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			return nil, "", errorf(flashsale.CodeInvalidArgument, "list: the cursor %q is none of this provider's", cursor)
		}
		from = max(from, sort.Search(len(entries), func(i int) bool { return entries[i].seq > seen }))
	}
	limit = min(max(limit, 1), 1000)
	for i := from; i < len(entries); i++ {
		e := &entries[i]
		if !e.live() {
			continue
		}
		if len(page) == limit {
			return page, next, nil
		}
		page = append(page, e.pay.show(p.cfg.URL))
		next = strconv.FormatInt(e.seq, 10)
	}
	return page, "", nil
}

// makeRoom reports whether there is room for a payment, and forgets old ones that have ended if there is not.
func (p *Provider) makeRoom(now time.Time) bool {
	if len(p.payments) < p.cfg.MaxPayments {
		return true
	}
	const atOnce = 1000
	forgotten := 0
	for i := range p.changes.entries {
		e := &p.changes.entries[i]
		if now.Sub(e.at) < p.cfg.Keep || forgotten == atOnce {
			break
		}
		if e.live() && e.pay.status != flashsale.PayOpen {
			delete(p.payments, e.pay.intent.Key)
			e.pay = nil
			forgotten++
		}
	}
	return forgotten > 0
}

// Record is a payment as a test or an operator sees it.
type Record struct {
	Intent  flashsale.Intent
	Status  flashsale.PayStatus
	Voiding bool
	// Captures and Refunds count: neither is ever above 1. Amount and Currency are what a capture took.
	Captures, Refunds    int64
	Amount               int64
	Currency             string
	CreatedAt, ChangedAt time.Time
}

// Charged tells that the shopper's money is here.
func (r *Record) Charged() bool { return r.Captures > r.Refunds }

// Record returns a payment.
func (p *Provider) Record(intentKey string) (Record, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pay := p.payments[intentKey]; pay != nil {
		return pay.record(), true
	}
	return Record{}, false
}

// Records are all payments, longest unchanged first. It is a copy of one moment.
func (p *Provider) Records() iter.Seq[Record] {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Record, 0, len(p.payments))
	for i := range p.changes.entries {
		if e := &p.changes.entries[i]; e.live() {
			all = append(all, e.pay.record())
		}
	}
	return slices.Values(all)
}

func (pay *payment) record() Record {
	return Record{
		Intent: pay.intent, Status: pay.status, Voiding: pay.voiding, Captures: pay.captures, Refunds: pay.refunds,
		Amount: pay.took, Currency: pay.currency, CreatedAt: pay.createdAt, ChangedAt: pay.changeAt,
	}
}

// Stats count what the provider did.
type Stats struct {
	// Calls of its interface, and how many of them Failed by an outage.
	Calls, Failed int64
	// Webhooks that were sent, that the receiver refused, and that were lost for good.
	Sent, Refused, Lost int64
	// Payments that are kept, and things that are planned.
	Payments, Planned int
}

// Stats returns the counts.
func (p *Provider) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Payments, s.Planned = len(p.payments), p.agenda.Len()
	return s
}
