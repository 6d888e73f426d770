package saleadmin

import (
	"fmt"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// maxFieldErrors bounds the fields that an answer names.
const maxFieldErrors = 20

// localTime is a time of day without its zone.
const localTime = "2006-01-02T15:04:05"

// sale makes a sale of what was written, with its defaults, or says which fields are wrong.
func (s *SaleSpec) sale() (*flashsale.Sale, error) {
	p := specProblems{}
	sale := flashsale.Sale{ID: s.ID, Title: s.Title, Currency: s.Currency, Zone: s.Zone, Rate: s.Rate}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil || s.Zone == "Local" {
		p.add("zone", "there is no time zone %.40q; give a name like Asia/Shanghai", s.Zone)
		zone = nil
	}
	sale.OpensAt = p.time("opens_at", s.OpensAt, zone)
	sale.ClosesAt = p.time("closes_at", s.ClosesAt, zone)
	sale.Hold = p.duration("hold", s.Hold)
	sale.PayTime = p.duration("pay_time", s.PayTime)
	sale.Grace = p.duration("grace", s.Grace)
	for i := range s.SKUs {
		k := &s.SKUs[i]
		sale.SKUs = append(sale.SKUs, flashsale.SKU{ID: k.ID, Title: k.Title, Total: k.Total, PurchaseLimit: k.PurchaseLimit, Price: k.Price})
	}
	full := sale.WithDefaults()
	p.notDots("id", s.ID)
	for i := range s.SKUs {
		p.notDots(fmt.Sprintf("skus[%d].id", i), s.SKUs[i].ID)
	}
	for _, one := range full.Problems() {
		p.add(one.Field, "%s", one.Text)
	}
	if len(p.errors) > 0 {
		return nil, &Problem{
			Status: http.StatusBadRequest, Code: string(flashsale.CodeInvalidArgument), Detail: "the sale cannot be created as it is", Errors: p.errors,
		}
	}
	return &full, nil
}

// specProblems collects what is wrong, the first thing of each field.
type specProblems struct {
	errors []FieldError
	seen   map[string]bool
}

func (p *specProblems) add(field, format string, args ...any) {
	field = "sale." + field
	if p.seen[field] || len(p.errors) >= maxFieldErrors {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[field] = true
	p.errors = append(p.errors, FieldError{field, fmt.Sprintf(format, args...)})
}

// notDots refuses ids that stand for folders in paths: no URL would reach what they name.
func (p *specProblems) notDots(field, id string) {
	if id == "." || id == ".." {
		p.add(field, "%q cannot be in a URL; give another", id)
	}
}

func (p *specProblems) duration(field, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		p.add(field, "%.40q is no length of time; write one such as 90s or 15m", text)
	case d == 0:
		p.add(field, "it is 0; leave it out for the default, or write at least 1ms")
	}
	return d
}

// time reads an instant: with its offset, or as clocks in the zone show it.
func (p *specProblems) time(field, text string, zone *time.Location) time.Time {
	if text == "" {
		p.add(field, "it is missing; write a time such as 2026-11-11T20:00:00+08:00, or 2026-11-11T20:00:00 for that of the zone")
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC()
	}
	local, err := time.Parse(localTime, text)
	if err != nil || len(text) != len(localTime) {
		p.add(field, "%.40q is no time; write one such as 2026-11-11T20:00:00+08:00, or 2026-11-11T20:00:00 for that of the zone", text)
		return time.Time{}
	}
	if zone == nil {
		return local
	}
	instants := instantsOf(local, zone)
	switch len(instants) {
	case 0:
		p.add(field, "clocks in %s skip %s, when they are put forward; write another time, or this one with its offset", zone, text)
		return local
	case 1:
		return instants[0].UTC()
	}
	p.add(field, "clocks in %s show %s twice, since they are put back; write it with its offset: %s or %s", zone, text,
		instants[0].Format(time.RFC3339), instants[1].Format(time.RFC3339))
	return instants[0].UTC()
}

// instantsOf are the instants at which clocks in a zone show a time: mostly one; none or two where they are put forward or back. A day
// before and after it the offsets are those of each side.
func instantsOf(local time.Time, zone *time.Location) (all []time.Time) {
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := local.Add(near).In(zone).Zone()
		at := local.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Format(localTime) == local.Format(localTime) && (len(all) == 0 || !all[0].Equal(at)) {
			all = append(all, at)
		}
	}
	return all
}
