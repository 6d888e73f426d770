package flashsale

import (
	"fmt"
	"time"
)

// WithDefaults returns the sale with a value in every field that has a default.
func (s Sale) WithDefaults() Sale {
	for field, fallback := range map[*time.Duration]time.Duration{&s.Hold: DefaultHold, &s.PayTime: DefaultPayTime, &s.Grace: DefaultGrace} {
		if *field == 0 {
			*field = fallback
		}
	}
	if s.Rate == 0 {
		s.Rate = DefaultRate
	}
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	s.SKUs = append([]SKU(nil), s.SKUs...)
	for i := range s.SKUs {
		if s.SKUs[i].PurchaseLimit == 0 {
			s.SKUs[i].PurchaseLimit = 1
		}
	}
	return s
}

// Bounds of times.
const (
	minHold, maxHold = time.Second, 24 * time.Hour
	maxGrace         = time.Hour
	maxTitle         = 200
	maxSaleTime      = 366 * 24 * time.Hour
)

// Problem is one thing that is wrong with a sale.
type Problem struct {
	// Field is where, such as "opens_at" or "skus[0].price".
	Field string
	// Text says what is wrong, with the bounds.
	Text string
}

// Validate says, with the field and its bounds, what is wrong first with a sale that has its defaults.
func (s *Sale) Validate() error {
	problems := s.Problems()
	if len(problems) == 0 {
		return nil
	}
	return invalidf("sale %s: %s", quoted(s.ID), problems[0].Text)
}

// Problems lists all that is wrong with a sale that has its defaults, none if it is good.
func (s *Sale) Problems() []Problem {
	var p problems
	p.check("id", CheckID("the id of the sale", s.ID))
	s.times(&p)
	p.unless(isCurrency(s.Currency), "currency", "the currency %s is not three capital letters, like CNY", quoted(s.Currency))
	p.unless(len(s.Title) <= maxTitle, "title", "the title has %d bytes, more than %d", len(s.Title), maxTitle)
	p.unless(s.Rate >= 1 && s.Rate <= MaxRate, "rate", "a rate of %d; give 1 to %d reservations a second", s.Rate, MaxRate)
	if len(s.SKUs) == 0 || len(s.SKUs) > MaxSKUs {
		p.unless(false, "skus", "%d skus; give 1 to %d", len(s.SKUs), MaxSKUs)
		return p
	}
	seen := make(map[string]bool, len(s.SKUs))
	for i := range s.SKUs {
		at := fmt.Sprintf("skus[%d].", i)
		s.SKUs[i].problems(&p, at)
		p.unless(!seen[s.SKUs[i].ID], at+"id", "sku %s stands there twice", quoted(s.SKUs[i].ID))
		seen[s.SKUs[i].ID] = true
	}
	return p
}

type problems []Problem

func (p *problems) check(field string, err error) {
	if err != nil {
		*p = append(*p, Problem{field, err.Error()})
	}
}

func (p *problems) unless(good bool, field, format string, args ...any) {
	if !good {
		*p = append(*p, Problem{field, fmt.Sprintf(format, args...)})
	}
}

func (s *Sale) times(p *problems) {
	_, err := time.LoadLocation(s.Zone)
	p.unless(err == nil, "zone", "there is no time zone %s; give a name like Asia/Shanghai", quoted(s.Zone))
	switch {
	case s.OpensAt.IsZero() || s.ClosesAt.IsZero():
		p.unless(!s.OpensAt.IsZero(), "opens_at", "opens_at and closes_at are needed")
		p.unless(!s.ClosesAt.IsZero(), "closes_at", "opens_at and closes_at are needed")
	case s.OpensAt.Year() < 2000 || s.ClosesAt.Year() > 2200:
		p.unless(s.OpensAt.Year() >= 2000, "opens_at", "opens_at and closes_at lie between the years 2000 and 2200")
		p.unless(s.ClosesAt.Year() <= 2200, "closes_at", "opens_at and closes_at lie between the years 2000 and 2200")
	case !s.ClosesAt.After(s.OpensAt):
		p.unless(false, "closes_at", "it closes at %s, which is not after its opening at %s", s.ClosesAt.Format(time.RFC3339), s.OpensAt.Format(time.RFC3339))
	case s.ClosesAt.Sub(s.OpensAt) > maxSaleTime:
		p.unless(false, "closes_at", "it is open for longer than 366 days")
	}
	p.unless(s.Hold >= minHold && s.Hold <= maxHold, "hold", "a hold of %s; give 1s to 24h", s.Hold)
	p.unless(s.PayTime >= minHold && s.PayTime <= maxHold, "pay_time", "a time to pay of %s; give 1s to 24h", s.PayTime)
	p.unless(s.Grace >= 0 && s.Grace <= maxGrace, "grace", "a grace of %s; give 0s to 1h", s.Grace)
}

func (s *SKU) problems(p *problems, at string) {
	p.check(at+"id", CheckID("the id of a sku", s.ID))
	sku := "sku " + quoted(s.ID) + ": "
	p.unless(len(s.Title) <= maxTitle, at+"title", "%sthe title has %d bytes, more than %d", sku, len(s.Title), maxTitle)
	p.unless(s.Total >= 0 && s.Total <= MaxTotal, at+"total", "%sa total of %d; give 0 to %d units", sku, s.Total, MaxTotal)
	limited := s.PurchaseLimit >= 1 && s.PurchaseLimit <= MaxPurchaseLimit
	p.unless(limited, at+"purchase_limit", "%sa purchase limit of %d; give 1 to %d units", sku, s.PurchaseLimit, MaxPurchaseLimit)
	priced := s.Price >= 0 && s.Price <= MaxPrice
	p.unless(priced, at+"price", "%sa price of %d; give 0 to %d of the smallest unit of the currency", sku, s.Price, MaxPrice)
	if limited && priced && s.Price > 0 {
		p.unless(s.PurchaseLimit <= maxAmount/s.Price, at+"price", "%s%d units at %d each come to more than %d", sku, s.PurchaseLimit, s.Price, int64(maxAmount))
	}
}

// maxAmount bounds what one reservation can cost, so that every sum of a sale fits 63 bits with room.
const maxAmount = 1_000_000_000_000_000

// CheckID says what is wrong with an id: 1 to MaxID letters, digits and . _ - of ASCII. What names it in the error.
func CheckID(what, id string) error {
	if id == "" {
		return invalidf("%s is empty; give 1 to %d letters, digits, dots, underscores or hyphens", what, MaxID)
	}
	if len(id) > MaxID {
		return invalidf("%s has %d bytes, more than %d", what, len(id), MaxID)
	}
	for _, c := range []byte(id) {
		if !isAlphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return invalidf("%s, %s, has another character than letters, digits, dots, underscores and hyphens", what, quoted(id))
		}
	}
	return nil
}

// CheckUser says what is wrong with a user: 1 to MaxUser bytes of any kind. It does not quote the user.
func CheckUser(user string) error {
	if user == "" || len(user) > MaxUser {
		return invalidf("a user of %d bytes; give 1 to %d", len(user), MaxUser)
	}
	return nil
}

// CheckReason says what is wrong with the reason of an operation: 1 to MaxReason bytes.
func CheckReason(reason string) error {
	if reason == "" || len(reason) > MaxReason {
		return invalidf("a reason of %d bytes; say why, in 1 to %d", len(reason), MaxReason)
	}
	return nil
}

func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for _, c := range []byte(s) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

// quoted shows what somebody wrote, cut where it is long.
func quoted(s string) string {
	if len(s) > MaxID {
		s = s[:MaxID] + "…"
	}
	return fmt.Sprintf("%q", s)
}
