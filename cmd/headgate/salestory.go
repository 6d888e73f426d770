package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

func (p page) story(s *saleadmin.Story) {
	at := clockIn(s.Zone)
	user := s.User
	if s.UserBase64 != nil {
		user = string(s.UserBase64)
	}
	p.line("shopper %q of %s, times of %s", user, s.Sale, at.offset(timesOfStory(s)...))
	if s.StockError != "" {
		for why := range strings.SplitSeq(s.StockError, "\n") { // one of each sku
			p.line("reservations may be missing: %s", cell(why))
		}
	}
	if len(s.Reservations) == 0 {
		p.line("no reservation of this shopper is known")
	}
	for i := range s.Reservations {
		p.reservation(&s.Reservations[i], at)
	}
	p.line("")
	p.refusals(&s.Refusals, at)
}

// timesOfStory are the times that a story is told with.
func timesOfStory(s *saleadmin.Story) []time.Time {
	times := []time.Time{s.Refusals.Since}
	for i := range s.Refusals.Of {
		times = append(times, s.Refusals.Of[i].First, s.Refusals.Of[i].Last)
	}
	for i := range s.Reservations {
		r := &s.Reservations[i]
		times = append(times, r.CreatedAt)
		for k := range r.Payments {
			times = append(times, r.Payments[k].ChangedAt)
		}
	}
	return times
}

func (p page) refusals(r *saleadmin.Refusals, at clock) {
	who := "as all instances know it"
	if !r.Fleet {
		who = "as instance " + cell(r.Instance) + " remembers it"
	}
	since := at.at(r.Since)
	if len(r.Of) == 0 {
		p.line("nothing was refused to this shopper since %s, %s", since, who)
	} else {
		var rows [][]string
		for i := range r.Of {
			one := &r.Of[i]
			rows = append(rows, []string{
				cmp.Or(one.SKU, "-"), refusalReason(one), num(one.Count), at.at(one.First), at.after(one.First, one.Last),
			}, []string{"  " + refusalWords(one)})
		}
		p.table([]string{"SKU", "REFUSED", "TIMES", "FIRST", "LAST"}, rows)
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

func (p page) reservation(r *saleadmin.Reservation, at clock) {
	state := r.State
	if r.Reason != "" {
		state += ": " + cell(r.Reason)
	}
	until := ""
	switch {
	case r.Until == nil || r.EndedAt != nil:
	case r.State == "pending":
		until = ", to be decided until " + at.after(r.CreatedAt, *r.Until)
	default:
		until = ", to be paid until " + at.after(r.CreatedAt, *r.Until)
	}
	amount := ""
	if r.Currency != "" { // of what is pending nobody knows yet
		amount = ", " + saleadmin.FormatAmount(r.Amount, r.Currency)
	}
	p.line("%s  %s: %d × %s%s, %s%s", at.at(r.CreatedAt), r.RID, r.Quantity, r.SKU, amount, state, until)
	for i := range r.Payments {
		pay := &r.Payments[i]
		why := ""
		if pay.Reason != "" {
			why = ": " + cell(pay.Reason)
		}
		p.line("  %s  payment %s: %s, %s%s", at.at(pay.ChangedAt), pay.IntentKey, saleadmin.FormatAmount(pay.Amount, pay.Currency), pay.State, why)
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
	at := clockIn(d.Zone)
	var rows [][]string
	var times []time.Time
	for i := range d.DeadLetters {
		l := &d.DeadLetters[i]
		times = append(times, l.DiedAt, l.Deadline)
		rows = append(rows, []string{l.ID, l.RID, num(l.Quantity), num(l.Deliveries), at.at(l.Deadline)},
			[]string{"  died " + at.at(l.DiedAt) + ": " + cell(l.Reason)})
	}
	p.table([]string{"ID", "RESERVATION", "UNITS", "TRIES", "REVIVE BEFORE"}, rows)
	p.line("")
	p.line("times of %s", at.offset(times...))
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
