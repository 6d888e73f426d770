package flashsale

import (
	"strings"
	"testing"
	"time"
)

func goodSale() Sale {
	at := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	return Sale{
		ID: "eleven", Title: "11.11", Currency: "CNY", OpensAt: at, ClosesAt: at.Add(2 * time.Hour), Zone: "Asia/Shanghai",
		SKUs: []SKU{{ID: "phone-1", Title: "A phone", Total: 500, Price: 399900}},
	}.WithDefaults()
}

func TestSaleDefaults(t *testing.T) {
	t.Parallel()
	s := goodSale()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.Hold != 15*time.Minute || s.PayTime != 5*time.Minute || s.Grace != 10*time.Second || s.Rate != 1000 || s.SKUs[0].PurchaseLimit != 1 {
		t.Errorf("the defaults are %+v", s)
	}
	given := Sale{SKUs: []SKU{{ID: "a"}}}
	_ = given.WithDefaults()
	if given.SKUs[0].PurchaseLimit != 0 {
		t.Error("WithDefaults writes into the sale that it was given")
	}
}

func TestSaleValidate(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(*Sale)
		want   string
	}{
		"no id":           {func(s *Sale) { s.ID = "" }, "id of the sale is empty"},
		"long id":         {func(s *Sale) { s.ID = strings.Repeat("a", 65) }, "65 bytes, more than 64"},
		"id with a brace": {func(s *Sale) { s.ID = "a}b" }, `"a}b", has another character`},
		"id of a letter":  {func(s *Sale) { s.ID = "é" }, "another character"},
		"currency":        {func(s *Sale) { s.Currency = "yuan" }, `currency "yuan"`},
		"lower currency":  {func(s *Sale) { s.Currency = "cny" }, `currency "cny"`},
		"zone":            {func(s *Sale) { s.Zone = "Asia/Shangri-La" }, `no time zone "Asia/Shangri-La"`},
		"no opening":      {func(s *Sale) { s.OpensAt = time.Time{} }, "opens_at and closes_at are needed"},
		"closes first":    {func(s *Sale) { s.ClosesAt = s.OpensAt }, "not after its opening at 2026-11-11T12:00:00Z"},
		"far away":        {func(s *Sale) { s.ClosesAt = s.OpensAt.AddDate(300, 0, 0) }, "between the years 2000 and 2200"},
		"long":            {func(s *Sale) { s.ClosesAt = s.OpensAt.AddDate(2, 0, 0) }, "longer than 366 days"},
		"hold":            {func(s *Sale) { s.Hold = -1 }, "give 1s to 24h"},
		"long hold":       {func(s *Sale) { s.Hold = 25 * time.Hour }, "a hold of 25h0m0s"},
		"time to pay":     {func(s *Sale) { s.PayTime = time.Millisecond }, "a time to pay of 1ms"},
		"grace":           {func(s *Sale) { s.Grace = 2 * time.Hour }, "a grace of 2h0m0s"},
		"rate":            {func(s *Sale) { s.Rate = -1 }, "a rate of -1"},
		"no skus":         {func(s *Sale) { s.SKUs = nil }, "0 skus; give 1 to 200"},
		"many skus":       {func(s *Sale) { s.SKUs = make([]SKU, 201) }, "201 skus"},
		"twice":           {func(s *Sale) { s.SKUs = append(s.SKUs, s.SKUs[0]) }, `sku "phone-1" stands there twice`},
		"sku id":          {func(s *Sale) { s.SKUs[0].ID = "a:b" }, `the id of a sku, "a:b"`},
		"total":           {func(s *Sale) { s.SKUs[0].Total = -1 }, "a total of -1"},
		"huge total":      {func(s *Sale) { s.SKUs[0].Total = MaxTotal + 1 }, "a total of 1000000001"},
		"limit":           {func(s *Sale) { s.SKUs[0].PurchaseLimit = -3 }, "a purchase limit of -3"},
		"price":           {func(s *Sale) { s.SKUs[0].Price = -1 }, "a price of -1"},
		"amount":          {func(s *Sale) { s.SKUs[0].Price, s.SKUs[0].PurchaseLimit = MaxPrice, 1001 }, "come to more than"},
		"title":           {func(s *Sale) { s.Title = strings.Repeat("t", 201) }, "the title has 201 bytes"},
	} {
		s := goodSale()
		c.change(&s)
		err := s.Validate()
		if CodeOf(err) != CodeInvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

func TestCheckUser(t *testing.T) {
	t.Parallel()
	for user, good := range map[string]bool{"": false, "u": true, "\x00\xff": true, strings.Repeat("u", 255): true, strings.Repeat("u", 256): false} {
		if err := CheckUser(user); (err == nil) != good {
			t.Errorf("a user of %d bytes: %v", len(user), err)
		} else if err != nil && strings.Contains(err.Error(), "uuu") {
			t.Errorf("the error quotes the user: %v", err)
		}
	}
}

// TestOpeningBeforeZoneMatters: the sale's times are instants; the zone is for those who read them.
func TestOpeningBeforeZoneMatters(t *testing.T) {
	t.Parallel()
	s := goodSale()
	s.OpensAt = s.OpensAt.In(time.FixedZone("", 8*3600))
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// TestProblemsNameFields: all of them come, each with its field.
func TestProblemsNameFields(t *testing.T) {
	t.Parallel()
	s := goodSale()
	if p := s.Problems(); p != nil {
		t.Fatalf("a good sale has %+v", p)
	}
	s = Sale{ID: "a b", OpensAt: s.OpensAt, Zone: "Nowhere", Hold: -1, PayTime: 1, Grace: -1, Title: strings.Repeat("t", 201), SKUs: []SKU{
		{ID: "a", Total: -1, PurchaseLimit: -1, Price: -1, Title: strings.Repeat("t", 201)}, {ID: "a", PurchaseLimit: 1001, Price: MaxPrice},
	}}
	var fields []string
	for _, p := range s.Problems() {
		fields = append(fields, p.Field)
	}
	want := "id zone closes_at hold pay_time grace currency title rate skus[0].title skus[0].total skus[0].purchase_limit skus[0].price skus[1].price skus[1].id"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
