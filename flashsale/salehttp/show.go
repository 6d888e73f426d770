package salehttp

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// timeFormat is RFC 3339 in UTC, with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// stamp writes a time, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}

func (a *answer) now() string { return stamp(a.h.cfg.Now()) }

// saleBody is a sale as everybody may see it.
type saleBody struct {
	Sale     string    `json:"sale"`
	Title    string    `json:"title"`
	Currency string    `json:"currency"`
	Zone     string    `json:"zone"`
	OpensAt  string    `json:"opens_at"`
	ClosesAt string    `json:"closes_at"`
	SKUs     []skuBody `json:"skus,omitempty"`
	Now      string    `json:"now,omitempty"`
}

type skuBody struct {
	SKU           string             `json:"sku"`
	Title         string             `json:"title"`
	Price         int64              `json:"price"`
	PurchaseLimit int64              `json:"purchase_limit"`
	Status        flashsale.Status   `json:"status"`
	Stock         engine.StockSignal `json:"stock"`
}

type listBody struct {
	Sales []saleBody `json:"sales"`
	Now   string     `json:"now,omitempty"`
}

func saleOf(s *engine.ShownSale) saleBody {
	b := saleBody{Sale: s.ID, Title: s.Title, Currency: s.Currency, Zone: s.Zone, OpensAt: stamp(s.OpensAt), ClosesAt: stamp(s.ClosesAt)}
	for i := range s.SKUs {
		k := &s.SKUs[i]
		b.SKUs = append(b.SKUs, skuBody{k.ID, k.Title, k.Price, k.PurchaseLimit, k.Status, k.Stock})
	}
	return b
}

// list is GET Prefix.
func (a *answer) list() {
	sales, err := a.h.sales.Showcase(a.r.Context())
	if err != nil {
		a.failed(err)
		return
	}
	body := listBody{Sales: make([]saleBody, len(sales))}
	for i := range sales {
		body.Sales[i] = saleOf(&sales[i])
	}
	a.shared(&body, &body.Now)
}

// show is GET …/{sale}.
func (a *answer) show() {
	sale, err := a.h.sales.Shown(a.r.Context(), a.key.Sale)
	if err != nil {
		a.failed(err)
		return
	}
	body := saleOf(sale)
	a.shared(&body, &body.Now)
}

// shared answers with what is the same for everybody, and may be kept for a second. Its tag is weak: it stands for all but the time, so that
// who asks whether anything has changed is told no when only time has passed.
func (a *answer) shared(doc any, now *string) {
	tag := "W/" + entityTag(a.marshal(doc))
	*now = a.now()
	body := a.marshal(doc)
	a.cacheable("application/json", "public, max-age=1", tag, append(body, '\n'))
}

// cacheable answers with a body, or with nothing but its tag if the client has that.
func (a *answer) cacheable(contentType, control, tag string, body []byte) {
	header := a.w.Header()
	header.Set("Cache-Control", control)
	header.Set("Etag", tag)
	if hasTag(a.r.Header["If-None-Match"], tag) {
		a.status(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", contentType)
	a.body(http.StatusOK, body)
}

func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// hasTag compares weakly (RFC 9110, section 13.1.2).
func hasTag(lines []string, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item == "*" || strings.TrimPrefix(item, "W/") == tag {
				return true
			}
		}
	}
	return false
}
