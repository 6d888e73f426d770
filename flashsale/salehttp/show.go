package salehttp

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
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

// saleBody is a sale as everybody may see it; where it stands alone, "now" follows.
type saleBody struct {
	Sale     string    `json:"sale"`
	Title    string    `json:"title"`
	Currency string    `json:"currency"`
	Zone     string    `json:"zone"`
	OpensAt  string    `json:"opens_at"`
	ClosesAt string    `json:"closes_at"`
	SKUs     []skuBody `json:"skus,omitempty"`
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
	var of any
	if len(sales) > 0 {
		of = &sales[0]
	}
	a.shared("", of, func() any {
		body := listBody{Sales: make([]saleBody, len(sales))}
		for i := range sales {
			body.Sales[i] = saleOf(&sales[i])
		}
		return &body
	})
}

// show is GET …/{sale}.
func (a *answer) show() {
	sale, err := a.h.sales.Shown(a.r.Context(), a.key.Sale)
	if err != nil {
		a.failed(err)
		return
	}
	a.shared(sale.ID, sale, func() any {
		body := saleOf(sale)
		return &body
	})
}

// shared answers with what is the same for everybody, and may be kept for a second. It has no tag: whoever keeps an answer and is told that nothing
// has changed would go on showing the old time.
func (a *answer) shared(name string, of any, document func() any) {
	page := a.h.pages.of(name, of)
	if page == nil {
		text := a.marshal(document())
		page = &showPage{of: of, open: text[:len(text)-1]}
		a.h.pages.keep(name, page)
	}
	body := make([]byte, 0, len(page.open)+len(`,"now":""}`)+len(timeFormat)+1)
	body = append(append(body, page.open...), `,"now":"`...)
	body = append(a.h.cfg.Now().UTC().AppendFormat(body, timeFormat), "\"}\n"...)
	a.w.Header().Set("Cache-Control", "public, max-age=1")
	a.w.Header().Set("Content-Type", "application/json")
	a.body(http.StatusOK, body)
}

// showPages keeps what was written of sales as long as those are the same: a crowd that waits for an opening asks for little else.
type showPages struct {
	mu   sync.Mutex
	kept map[string]*showPage
}

// showPage is a document but for its last member, the time, and its end.
type showPage struct {
	of   any
	open []byte
}

// maxPages bounds them: there are as many as sales are shown, and some that are not any more.
const maxPages = 1000

func (p *showPages) of(name string, of any) *showPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if page := p.kept[name]; page != nil && page.of == of && of != nil {
		return page
	}
	return nil
}

func (p *showPages) keep(name string, page *showPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil || len(p.kept) >= maxPages {
		p.kept = map[string]*showPage{}
	}
	p.kept[name] = page
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
