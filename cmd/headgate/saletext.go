package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// maxListedID is the longest id beside which the rest of a list has room in 80 columns; a longer one has a line of its own.
const maxListedID = 24

func (p page) list(l *saleadmin.List) {
	if len(l.Sales) == 0 {
		p.line("there are no sales; headgate sale create makes one")
		return
	}
	zone := oneZone(l.Sales)
	var rows [][]string
	for i := range l.Sales {
		s := &l.Sales[i]
		id := s.ID
		if len(id) > maxListedID {
			rows = append(rows, []string{id})
			id = ""
		}
		status, skus := statusOf(s)
		at := clockIn(s.Zone)
		rows = append(rows, []string{id, status, at.minute(s.OpensAt), num(s.Total), num(s.Reserved), num(s.Sold)})
		closes := "closes " + at.minute(s.ClosesAt)
		if zone == "" {
			closes += " " + at.name
		}
		rows = append(rows, []string{"  " + strings.TrimSuffix(closes+", "+skus+": "+cell(s.Title), ": ")})
	}
	p.table([]string{"SALE", "STATUS", "OPENS", "TOTAL", "HELD", "SOLD"}, rows)
	if zone != "" {
		p.line("")
		p.line("times of %s", zone)
	}
	if l.Next != "" {
		p.line("there are older ones; see --limit")
	}
}

// oneZone is the zone of all sales, "" if they have several.
func oneZone(sales []saleadmin.Summary) string {
	zone := clockIn(sales[0].Zone).name
	for i := range sales {
		if clockIn(sales[i].Zone).name != zone {
			return ""
		}
	}
	return zone
}

// statusOf is the status that all skus of a sale have, and how many there are; where they differ, how many have which.
func statusOf(s *saleadmin.Summary) (status, skus string) {
	statuses := slices.Sorted(maps.Keys(s.Statuses))
	skus = plural(s.SKUs, "sku")
	if len(statuses) == 1 {
		return statuses[0], skus
	}
	counts := make([]string, len(statuses))
	for i, status := range statuses {
		counts[i] = strconv.Itoa(s.Statuses[status]) + " " + status
	}
	return "mixed", skus + " (" + strings.Join(counts, ", ") + ")"
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
		title += ": " + s.Title
	}
	p.line("%s", title)
	p.line("opens %s, closes %s, times of %s", at.minute(s.OpensAt), at.minute(s.ClosesAt), at.offset(timesOf(s)...))
	p.line("hold %s, to pay %s, grace %s, prices in %s", s.Hold, s.PayTime, s.Grace, s.Currency)
	p.line("")
	p.offers(s.SKUs, s.Currency)
	p.line("")
	p.counters(s.SKUs)
	p.line("")
	p.queues(s.SKUs)
	p.stockErrors(s.SKUs)
	p.line("")
	p.alarms(s.Alarms, s.Instance, at)
	p.line("")
	p.operations(s.Operations, at)
}

// timesOf are the times that a sale is shown with.
func timesOf(s *saleadmin.Sale) []time.Time {
	times := []time.Time{s.OpensAt, s.ClosesAt}
	for i := range s.Alarms {
		times = append(times, s.Alarms[i].Since)
	}
	for i := range s.Operations {
		times = append(times, s.Operations[i].CreatedAt)
	}
	return times
}

// offers shows what is sold, and how.
func (p page) offers(skus []saleadmin.SKU, currency string) {
	var rows [][]string
	for i := range skus {
		k := &skus[i]
		rate := num(k.Rate)
		if k.Queue != nil && k.StockRate != k.Rate {
			rate = fmt.Sprintf("%d → %d", k.StockRate, k.Rate)
		}
		rows = append(rows, []string{k.ID, k.Status, saleadmin.FormatDecimal(k.Price, currency), num(k.PurchaseLimit), rate, cell(k.Title)})
	}
	p.table([]string{"SKU", "STATUS", "PRICE", "LIMIT", "RATE", "TITLE"}, rows)
}

func (p page) counters(skus []saleadmin.SKU) {
	var rows [][]string
	for i := range skus {
		k := &skus[i]
		rows = append(rows, []string{k.ID, "SQL", num(k.SQL.Total), num(k.SQL.Available), num(k.SQL.Reserved), num(k.SQL.Sold), num(k.SQL.Epoch)})
		if k.Stock != nil {
			rows = append(rows, []string{"", "stock", num(k.Stock.Total), num(k.Stock.Available), num(k.Stock.Held), num(k.Stock.Sold), num(k.Stock.Epoch)})
		}
	}
	p.table([]string{"SKU", "STORE", "TOTAL", "AVAILABLE", "HELD", "SOLD", "EPOCH"}, rows)
}

func (p page) queues(skus []saleadmin.SKU) {
	var rows [][]string
	for i := range skus {
		k := &skus[i]
		row := []string{k.ID, "-", "-", "-", "-", "-"}
		if q := k.Queue; q != nil {
			oldest := (time.Duration(q.OldestMs) * time.Millisecond).Truncate(time.Second)
			row = []string{k.ID, num(q.Depth), num(q.Pulled), num(q.Pending), num(q.Dead), oldest.String()}
		}
		rows = append(rows, append(row, cell(k.UnderWay)))
	}
	p.table([]string{"SKU", "WAITING", "PULLED", "PENDING", "DEAD", "OLDEST", "UNDER WAY"}, rows)
}

// stockErrors says why the stock does not answer, each reason once: mostly it is one for all skus.
func (p page) stockErrors(skus []saleadmin.SKU) {
	var reasons []string
	of := map[string][]string{}
	for i := range skus {
		k := &skus[i]
		if k.StockError == "" {
			continue
		}
		if of[k.StockError] == nil {
			reasons = append(reasons, k.StockError)
		}
		of[k.StockError] = append(of[k.StockError], k.ID)
	}
	for _, why := range reasons {
		if ids := of[why]; len(ids) < len(skus) {
			p.line("the stock does not answer for %s: %s", strings.Join(ids, ", "), why)
		} else {
			p.line("the stock does not answer: %s", why)
		}
	}
}

func (p page) alarms(alarms []saleadmin.Alarm, instance string, at clock) {
	if len(alarms) == 0 {
		p.line("no alarm is on at instance %s", instance)
		return
	}
	var rows [][]string
	for _, a := range alarms {
		rows = append(rows, []string{a.Kind, cmp.Or(a.SKU, "all"), at.at(a.Since)}, []string{"  " + cell(a.Why)})
	}
	p.table([]string{"ALARM", "SKU", "SINCE"}, rows)
}

func (p page) operations(ops []saleadmin.Operation, at clock) {
	if len(ops) == 0 {
		p.line("nothing has been done to it yet")
		return
	}
	var rows [][]string
	for i := range ops {
		op := &ops[i]
		rows = append(rows, []string{at.at(op.CreatedAt), op.SKU, whatOf(op), op.State, cell(op.By), cell(op.Reason)})
		if op.Detail != "" {
			rows = append(rows, []string{"  " + cell(op.Detail)})
		}
	}
	p.table([]string{"TIME", "SKU", "OPERATION", "STATE", "BY", "REASON"}, rows)
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

func (p page) report(r *saleadmin.Report) {
	if r.Reconciliation == nil {
		p.line("instance %s has made no reconciliation yet", cell(r.Instance))
	} else {
		p.line("the last reconciliation that instance %s has made was at %s; another may have made later ones", r.Instance, clockIn(r.Zone).named(r.Reconciliation.At))
		if len(r.Reconciliation.SKUs) == 0 {
			p.line("  it has compared nothing of this sale")
		}
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
			why = "nothing tells of a loss, so there is no need"
		}
		p.line("%s: %s", k.SKU, cell(why))
		p.line("  epoch %d → %d: first %s decided and %s dropped, then %s of %s loaded, and %s of the outbox sent after them", k.From, k.To,
			plural(int(k.Jobs), "job"), plural(int(k.Dead), "dead letter"), plural(k.Entries, "reservation"), plural(k.Buyers, "buyer"), plural(int(k.SQL.Unsent), "row"))
		p.line("  available %d → %d, held %d → %d, sold %d → %d", k.Stock.Available, k.SQL.Available, k.Stock.Held, k.SQL.Reserved, k.Stock.Sold, k.SQL.Sold)
	}
}
