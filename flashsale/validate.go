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

// Validate says, with the field and its bounds, what is wrong with a sale that has its defaults.
func (s *Sale) Validate() error {
	at := "sale " + quoted(s.ID)
	if err := CheckID("the id of the sale", s.ID); err != nil {
		return err
	}
	if err := s.validateTimes(at); err != nil {
		return err
	}
	switch {
	case !isCurrency(s.Currency):
		return invalidf("%s: the currency %s is not three capital letters, like CNY", at, quoted(s.Currency))
	case len(s.Title) > maxTitle:
		return invalidf("%s: the title has %d bytes, more than %d", at, len(s.Title), maxTitle)
	case s.Rate < 1 || s.Rate > MaxRate:
		return invalidf("%s: a rate of %d; give 1 to %d reservations a second", at, s.Rate, MaxRate)
	case len(s.SKUs) == 0 || len(s.SKUs) > MaxSKUs:
		return invalidf("%s: %d skus; give 1 to %d", at, len(s.SKUs), MaxSKUs)
	}
	seen := make(map[string]bool, len(s.SKUs))
	for i := range s.SKUs {
		if err := s.SKUs[i].validate(at); err != nil {
			return err
		}
		if seen[s.SKUs[i].ID] {
			return invalidf("%s: sku %s stands there twice", at, quoted(s.SKUs[i].ID))
		}
		seen[s.SKUs[i].ID] = true
	}
	return nil
}

func (s *Sale) validateTimes(at string) error {
	if _, err := time.LoadLocation(s.Zone); err != nil {
		return invalidf("%s: there is no time zone %s; give a name like Asia/Shanghai", at, quoted(s.Zone))
	}
	switch {
	case s.OpensAt.IsZero() || s.ClosesAt.IsZero():
		return invalidf("%s: opens_at and closes_at are needed", at)
	case s.OpensAt.Year() < 2000 || s.ClosesAt.Year() > 2200:
		return invalidf("%s: opens_at and closes_at lie between the years 2000 and 2200", at)
	case !s.ClosesAt.After(s.OpensAt):
		return invalidf("%s: it closes at %s, which is not after its opening at %s", at, s.ClosesAt.Format(time.RFC3339), s.OpensAt.Format(time.RFC3339))
	case s.ClosesAt.Sub(s.OpensAt) > maxSaleTime:
		return invalidf("%s: it is open for longer than 366 days", at)
	case s.Hold < minHold || s.Hold > maxHold:
		return invalidf("%s: a hold of %s; give 1s to 24h", at, s.Hold)
	case s.PayTime < minHold || s.PayTime > maxHold:
		return invalidf("%s: a time to pay of %s; give 1s to 24h", at, s.PayTime)
	case s.Grace < 0 || s.Grace > maxGrace:
		return invalidf("%s: a grace of %s; give 0s to 1h", at, s.Grace)
	}
	return nil
}

func (s *SKU) validate(at string) error {
	if err := CheckID(at+": the id of a sku", s.ID); err != nil {
		return err
	}
	at += ", sku " + quoted(s.ID)
	switch {
	case len(s.Title) > maxTitle:
		return invalidf("%s: the title has %d bytes, more than %d", at, len(s.Title), maxTitle)
	case s.Total < 0 || s.Total > MaxTotal:
		return invalidf("%s: a total of %d; give 0 to %d units", at, s.Total, MaxTotal)
	case s.PurchaseLimit < 1 || s.PurchaseLimit > MaxPurchaseLimit:
		return invalidf("%s: a purchase limit of %d; give 1 to %d units", at, s.PurchaseLimit, MaxPurchaseLimit)
	case s.Price < 0 || s.Price > MaxPrice:
		return invalidf("%s: a price of %d; give 0 to %d of the smallest unit of the currency", at, s.Price, MaxPrice)
	case s.Price > 0 && s.PurchaseLimit > maxAmount/s.Price:
		return invalidf("%s: %d units at %d each come to more than %d", at, s.PurchaseLimit, s.Price, int64(maxAmount))
	}
	return nil
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
