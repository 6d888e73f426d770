package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

func (p page) list(l *saleadmin.List) {
	if len(l.Sales) == 0 {
		p.line("there are no sales; headgate sale create makes one")
		return
	}
	var rows [][]string
	for i := range l.Sales {
		s := &l.Sales[i]
		var statuses []string
		for status := range s.Statuses {
			statuses = append(statuses, status)
		}
		slices.Sort(statuses)
		at := clockIn(s.Zone)
		rows = append(rows, []string{s.ID, strings.Join(statuses, "+"), at(s.OpensAt), at(s.ClosesAt), strconv.Itoa(s.SKUs), num(s.Total), num(s.Reserved), num(s.Sold), cell(s.Title)})
	}
	p.table([]string{"SALE", "STATUS", "OPENS", "CLOSES", "SKUS", "TOTAL", "RESERVED", "SOLD", "TITLE"}, rows)
	if l.Next != "" {
		p.line("there are older ones; see --limit")
	}
}

func (p page) created(c *saleadmin.Created) {
	if slices.ContainsFunc(c.Sale.SKUs, func(k saleadmin.SKU) bool { return k.Status != "draft" }) {
		p.line("%s was there already, and is no draft any more; headgate sale show %s says how it stands", c.Sale.ID, c.Sale.ID)
		return
	}
	p.line("%s is there, as a draft with %s; headgate sale preflight %s says when it can be opened", c.Sale.ID, plural(c.Sale.SKUCount, "sku"), c.Sale.ID)
}

func (p page) dropped(d *saleadmin.Dropped) { p.line("%s is dropped", d.Sale) }

func (p page) sale(s *saleadmin.Sale) {
	at := clockIn(s.Zone)
	title := s.ID
	if s.Title != "" {
		title += ": " + cell(s.Title)
	}
	p.line("%s", title)
	p.line("opens %s, closes %s, %s", at(s.OpensAt), at(s.ClosesAt), s.Zone)
	p.line("hold %s, to pay %s, grace %s, prices in the smallest unit of %s", s.Hold, s.PayTime, s.Grace, s.Currency)
	p.line("")
	p.counters(s.SKUs)
	p.line("")
	p.queues(s.SKUs)
	for i := range s.SKUs {
		if k := &s.SKUs[i]; k.StockError != "" {
			p.line("%s: the stock does not answer: %s", k.ID, cell(k.StockError))
		}
	}
	p.line("")
	p.alarms(s.Alarms, s.Instance)
	p.line("")
	p.operations(s.Operations, at)
}

func (p page) counters(skus []saleadmin.SKU) {
	var rows [][]string
	for i := range skus {
		k := &skus[i]
		rows = append(rows, []string{k.ID, k.Status, num(k.Price), num(k.PurchaseLimit), "SQL", num(k.SQL.Total), num(k.SQL.Available), num(k.SQL.Reserved), num(k.SQL.Sold), num(k.SQL.Epoch)})
		if k.Stock != nil {
			rows = append(rows, []string{"", "", "", "", "stock", num(k.Stock.Total), num(k.Stock.Available), num(k.Stock.Held), num(k.Stock.Sold), num(k.Stock.Epoch)})
		}
	}
	p.table([]string{"SKU", "STATUS", "PRICE", "LIMIT", "STORE", "TOTAL", "AVAILABLE", "HELD", "SOLD", "EPOCH"}, rows)
}

func (p page) queues(skus []saleadmin.SKU) {
	var rows [][]string
	for i := range skus {
		k := &skus[i]
		rate := num(k.Rate)
		if k.Queue == nil {
			rows = append(rows, []string{k.ID, rate, "-", "-", "-", "-", "-", cell(k.UnderWay)})
			continue
		}
		if k.StockRate != k.Rate {
			rate = fmt.Sprintf("%d → %d", k.StockRate, k.Rate)
		}
		oldest := (time.Duration(k.Queue.OldestMs) * time.Millisecond).Truncate(time.Second)
		rows = append(rows, []string{k.ID, rate, num(k.Queue.Depth), num(k.Queue.Pulled), num(k.Queue.Pending), num(k.Queue.Dead), oldest.String(), cell(k.UnderWay)})
	}
	p.table([]string{"SKU", "RATE", "WAITING", "PULLED", "PENDING", "DEAD", "OLDEST", "UNDER WAY"}, rows)
}

func (p page) alarms(alarms []saleadmin.Alarm, instance string) {
	if len(alarms) == 0 {
		p.line("no alarm is on at instance %s", cell(instance))
		return
	}
	var rows [][]string
	for _, a := range alarms {
		sku := a.SKU
		if sku == "" {
			sku = "all"
		}
		rows = append(rows, []string{a.Kind, sku, a.Since.Format(time.RFC3339), cell(a.Why)})
	}
	p.table([]string{"ALARM", "SKU", "SINCE", "WHY"}, rows)
}

func (p page) operations(ops []saleadmin.Operation, at func(time.Time) string) {
	if len(ops) == 0 {
		p.line("nothing has been done to it yet")
		return
	}
	var rows [][]string
	for i := range ops {
		op := &ops[i]
		rows = append(rows, []string{at(op.CreatedAt), op.SKU, whatOf(op), op.State, cell(op.By), cell(op.Reason), cell(op.Detail)})
	}
	p.table([]string{"TIME", "SKU", "OPERATION", "STATE", "BY", "REASON", "DETAIL"}, rows)
}

// whatOf says in words what an operation does.
func whatOf(op *saleadmin.Operation) string {
	switch op.Kind {
	case "top_up":
		return "top up " + num(op.Units)
	case "withdraw":
		return "withdraw " + num(op.Units)
	case "rate":
		return "rate " + num(op.Rate)
	case "status":
		return "to " + op.Status
	}
	return op.Kind
}

func stateOf(op *saleadmin.Operation) string {
	if op.Detail == "" {
		return op.State
	}
	return op.State + " (" + cell(op.Detail) + ")"
}

func (p page) change(c *saleadmin.Change) {
	for i := range c.Operations {
		op := &c.Operations[i]
		state := stateOf(op)
		if op.State != "done" {
			state += "; it is being finished, see headgate sale show " + op.Sale
		}
		p.line("%s/%s: %s: %s", op.Sale, op.SKU, whatOf(op), state)
	}
	p.findings(c.Findings)
}

func (p page) findings(findings []saleadmin.Finding) {
	for _, f := range findings {
		p.line("%s: %s", f.Severity, cell(whose(f.SKU)+f.Text))
	}
}

func (p page) preflight(f *saleadmin.Preflight) {
	p.findings(f.Findings)
	switch {
	case !f.OK:
		p.line("not ready to be opened")
	case len(f.Findings) > 0:
		p.line("ready to be opened, with warnings")
	default:
		p.line("ready to be opened")
	}
}

func (p page) story(s *saleadmin.Story) {
	if s.StockError != "" {
		for why := range strings.SplitSeq(s.StockError, "\n") { // one of each sku
			p.line("reservations may be missing: %s", cell(why))
		}
	}
	if len(s.Reservations) == 0 {
		p.line("no reservation of this shopper is known")
	}
	for i := range s.Reservations {
		p.reservation(&s.Reservations[i])
	}
	p.line("")
	p.refusals(&s.Refusals)
}

func (p page) refusals(r *saleadmin.Refusals) {
	who := "as all instances know it"
	if !r.Fleet {
		who = "as instance " + cell(r.Instance) + " remembers it"
	}
	since := r.Since.Format(time.RFC3339)
	if len(r.Of) == 0 {
		p.line("nothing was refused to this shopper since %s, %s", since, who)
	} else {
		var rows [][]string
		for i := range r.Of {
			one := &r.Of[i]
			rows = append(rows, []string{
				cmp.Or(one.SKU, "-"), refusalReason(one), num(one.Count), one.First.Format(time.RFC3339), one.Last.Format(time.RFC3339), refusalWords(one),
			})
		}
		p.table([]string{"SKU", "REFUSED", "TIMES", "FIRST", "LAST", "WHICH MEANS"}, rows)
		p.line("complete since %s, %s", since, who)
	}
	for _, why := range r.Missing {
		p.line("some may be missing: %s", cell(why))
	}
}

// refusalReason is the code of a refusal, with what says more of it.
func refusalReason(r *saleadmin.Refusal) string {
	if r.Detail == "" {
		return cell(r.Code)
	}
	return cell(r.Code + " (" + r.Detail + ")")
}

func (p page) reservation(r *saleadmin.Reservation) {
	state := r.State
	if r.Reason != "" {
		state += ": " + cell(r.Reason)
	}
	until := ""
	switch {
	case r.Until == nil || r.EndedAt != nil:
	case r.State == "pending":
		until = ", to be decided until " + r.Until.Format(time.RFC3339)
	default:
		until = ", to be paid until " + r.Until.Format(time.RFC3339)
	}
	p.line("%s %s: %d × %s, %d %s, %s%s", r.CreatedAt.Format(time.RFC3339), r.RID, r.Quantity, r.SKU, r.Amount, r.Currency, state, until)
	for i := range r.Payments {
		pay := &r.Payments[i]
		why := ""
		if pay.Reason != "" {
			why = ": " + cell(pay.Reason)
		}
		p.line("  %s payment %s: %d %s, %s%s", pay.ChangedAt.Format(time.RFC3339), pay.IntentKey, pay.Amount, pay.Currency, pay.State, why)
	}
}

// refusalWords says for people what a code means.
func refusalWords(r *saleadmin.Refusal) string {
	if r.Rule != "" {
		return cell(turnedAwayWords(r))
	}
	words := map[string]string{
		"sold_out":         "nothing was left at that moment",
		"purchase_limit":   "with this the shopper would have held and bought more than one may",
		"invalid_token":    "the order token was forged, or another's",
		"token_expired":    "the order token was too old",
		"invalid_quantity": "more units at once than one may have",
		"conflict":         "the order token had been spent on another quantity",
		"busy":             "too many were waiting; asked to come back",
		"rebuilding":       "the stock was being loaded; asked to come back",
		"unavailable":      "a store did not answer; asked to come back",
	}
	if r.Code != "not_open" {
		return words[r.Code]
	}
	switch r.Detail {
	case "not_yet":
		return "it was before the opening"
	case "ended":
		return "it was after the closing"
	case "":
		return "it was not on sale"
	}
	return "the sku was " + r.Detail
}

// turnedAwayWords says by what a request was turned away, and until when.
func turnedAwayWords(r *saleadmin.Refusal) string {
	words := "turned away by the policy's rule " + r.Rule
	if list, ok := strings.CutPrefix(r.Rule, "list:"); ok {
		words = "turned away by the policy's list " + list
	}
	if r.RetryAfterMs > 0 {
		words += ", to come back " + (time.Duration(r.RetryAfterMs) * time.Millisecond).String() + " after the last time"
	}
	return words
}

func (p page) dead(d *saleadmin.DeadLetters) {
	if len(d.DeadLetters) == 0 {
		p.line("there are no dead letters")
		return
	}
	var rows [][]string
	for i := range d.DeadLetters {
		l := &d.DeadLetters[i]
		rows = append(rows, []string{l.ID, l.RID, num(l.Quantity), num(l.Deliveries), l.DiedAt.Format(time.RFC3339), l.Deadline.Format(time.RFC3339), cell(l.Reason)})
	}
	p.table([]string{"ID", "RESERVATION", "UNITS", "TRIES", "DIED", "REVIVE BEFORE", "REASON"}, rows)
	if d.More {
		p.line("there are younger ones; see --limit")
	}
}

func (p page) revived(r *saleadmin.Revived, asked int) {
	wait := "wait"
	if r.Revived == 1 {
		wait = "waits"
	}
	p.line("%d of %d %s to be decided again", r.Revived, asked, wait)
	if r.Revived < asked {
		p.line("the others are past their deadline, decided meanwhile, or not there")
	}
}

func (p page) report(r *saleadmin.Report) {
	if r.Reconciliation == nil {
		p.line("instance %s has made no reconciliation yet", cell(r.Instance))
	} else {
		p.line("the last reconciliation that instance %s has made was at %s; another may have made later ones", cell(r.Instance), r.Reconciliation.At.Format(time.RFC3339))
		for i := range r.Reconciliation.SKUs {
			p.reconciled(&r.Reconciliation.SKUs[i])
		}
	}
	for i := range r.Audits {
		a := &r.Audits[i]
		switch {
		case !a.OK:
			p.line("audit of %s: %s", a.SKU, plural(len(a.Broken), "thing")+" not as it must be")
		case a.UnderWay != "":
			p.line("audit of %s: all holds, as far as can be said while %s", a.SKU, cell(a.UnderWay))
		default:
			p.line("audit of %s: all holds", a.SKU)
		}
		for _, b := range a.Broken {
			p.line("  %s: %s", b.Invariant, cell(b.Text))
		}
	}
}

func (p page) reconciled(k *saleadmin.ReconciledSKU) {
	if k.Skipped != "" {
		p.line("  %s: not compared: %s", k.SKU, cell(k.Skipped))
		return
	}
	p.line("  %s: %s compared, %d behind and repaired", k.SKU, plural(k.Compared, "reservation"), k.Replayed)
	if len(k.Ahead) > 0 {
		p.line("    the stock knows more than SQL of %s", strings.Join(k.Ahead, ", "))
	}
	if len(k.Missing) > 0 {
		p.line("    the stock has lost %s", strings.Join(k.Missing, ", "))
	}
	if k.Drift != "" {
		p.line("    %s", cell(k.Drift))
	}
}

func (p page) match(m *saleadmin.Match) {
	p.line("since %s: %s of the provider, %d here, %d paid; %d repaired", m.Since.Format(time.RFC3339), plural(m.Provider, "payment"), m.Payments, m.Paid, m.Repaired)
	for i := range m.Differences {
		d := &m.Differences[i]
		p.line("%s %s: %s", d.Kind, strings.TrimSpace(d.IntentKey+" "+d.RID), cell(d.Detail))
	}
	switch {
	case m.OK:
		p.line("they agree")
	case m.Omitted > 0:
		p.line("and %s", plural(m.Omitted, "more difference"))
	}
}

func (p page) plans(plans *saleadmin.Plans) {
	for i := range plans.Plans {
		k := &plans.Plans[i]
		why := k.Why
		if why == "" {
			why = "nothing tells of a loss, there is no need"
		}
		p.line("%s: %s", k.SKU, cell(why))
		p.line("  epoch %d → %d: %s decided first, %s dropped, %s of %s loaded, then %s followed", k.From, k.To,
			plural(int(k.Jobs), "job"), plural(int(k.Dead), "dead letter"), plural(k.Entries, "reservation"), plural(k.Buyers, "buyer"), plural(int(k.SQL.Unsent), "row"))
		p.line("  available %d → %d, held %d → %d, sold %d → %d", k.Stock.Available, k.SQL.Available, k.Stock.Held, k.SQL.Reserved, k.Stock.Sold, k.SQL.Sold)
	}
}
