package saleadmin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// many creates sales of many skus, the last of them with id "s4".
func many(r *rig, sales, skus int) {
	r.Helper()
	for i := range sales {
		r.Clock.Pass(time.Second)
		sale := SaleSpec{ID: fmt.Sprintf("s%d", i), Currency: "CNY", OpensAt: "2026-11-11T12:00:00", ClosesAt: "2026-11-12T12:00:00"}
		for k := range skus {
			sale.SKUs = append(sale.SKUs, SKUSpec{ID: fmt.Sprintf("k%02d", skus-k), Total: 3, Price: 1})
		}
		body, err := json.Marshal(CreateOrder{Reason: "a test", Sale: sale})
		r.Must(err)
		r.post("admin", "/sales", string(body)).is(http.StatusCreated).says(fmt.Sprintf(`"sku_count":%d`, skus))
	}
	r.Watch()
}

// follow gets all pages of a list, and returns how many there were and the names in them.
func follow(r *rig, path string, names func(body []byte) []string) (pages int, all []string) {
	r.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		var page struct {
			Next string `json:"next"`
		}
		got := r.get("viewer", path+"&cursor="+url.QueryEscape(cursor)).is(http.StatusOK)
		r.Must(json.Unmarshal(got.body, &page))
		if pages++; pages > 100 {
			r.Fatal("there is no end")
		}
		all, cursor = append(all, names(got.body)...), page.Next
	}
	return pages, all
}

func namesOf[T any](r *rig, of func(*T) []string) func([]byte) []string {
	return func(body []byte) []string {
		var doc T
		r.Must(json.Unmarshal(body, &doc))
		return of(&doc)
	}
}

// TestListsInPages: each entry comes once, in order, in as many pages as asked for; and sales are read in one go, however many they are.
func TestListsInPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	many(r, 5, 7)
	skus := []string{"k07", "k06", "k05", "k04", "k03", "k02", "k01"} // as the sale has them
	for _, c := range []struct {
		path  string
		pages int
		want  []string
		names func([]byte) []string
	}{
		{"/sales?limit=2", 3, []string{"s4", "s3", "s2", "s1", "s0"}, namesOf(r, func(l *List) (names []string) {
			for _, s := range l.Sales {
				if s.SKUs != 7 || s.Total != 21 || s.Statuses["draft"] != 7 {
					r.Errorf("%+v", s)
				}
				names = append(names, s.ID)
			}
			return names
		})},
		{"/sales/s1?limit=3", 3, skus, namesOf(r, func(s *Sale) (names []string) {
			for _, k := range s.SKUs {
				names = append(names, k.ID)
			}
			return names
		})},
		{"/sales/s1/report?limit=7", 1, skus, namesOf(r, func(p *Report) (names []string) {
			for _, a := range p.Audits {
				names = append(names, a.SKU)
			}
			return names
		})},
		{"/sales/s1/rebuild?limit=6", 2, skus, namesOf(r, func(p *Plans) (names []string) {
			for _, one := range p.Plans {
				names = append(names, one.SKU)
			}
			return names
		})},
	} {
		if pages, got := follow(r, c.path, c.names); pages != c.pages || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d pages of %v, want %d of %v", c.path, pages, got, c.pages, c.want)
		}
	}
	var calls []string
	r.Gate.Before = func(_ context.Context, call string) error {
		calls = append(calls, call)
		return nil
	}
	r.get("viewer", "/sales").is(http.StatusOK)
	r.Gate.Before = nil
	if !slices.Equal(calls, []string{"orders.SalesAfter"}) {
		t.Errorf("a list of sales asks %v", calls)
	}
	for path, field := range map[string]string{
		"/sales?cursor=none": "cursor", "/sales?limit=101": "limit", "/sales/s1?cursor=none": "cursor", "/sales/s1?limit=201": "limit",
		"/sales/s1/report?cursor=none": "cursor", "/sales/s1/report?limit=51": "limit", "/sales/s1/rebuild?limit=0": "limit",
		"/sales/s1/skus/k01/dead-letters?limit=501": "limit", "/sales?cursor=a&cursor=b": "cursor",
	} {
		r.get("viewer", path).is(http.StatusBadRequest).says(`"field":"` + field + `"`)
	}
	r.get("viewer", "/sales?cursor="+strings.Repeat("x", 5000)).is(http.StatusBadRequest)
}

// TestDeadLettersSayThatThereAreMore.
func TestDeadLettersSayThatThereAreMore(t *testing.T) {
	t.Parallel()
	r := opened(t)
	key := flashsale.Key{Sale: "eleven", SKU: "phone"}
	for _, user := range []string{"ann", "bob"} {
		if _, code := r.reserve("phone", user); code != "" {
			t.Fatal(code)
		}
		r.bury(key, "the database refuses it")
	}
	for limit, more := range map[int]bool{1: true, 2: false, 500: false} {
		r.get("viewer", fmt.Sprintf("/sales/eleven/skus/phone/dead-letters?limit=%d", limit)).is(http.StatusOK).says(fmt.Sprintf(`"more":%t`, more))
	}
}
