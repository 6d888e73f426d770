package app

import (
	"cmp"
	_ "embed"
	"html/template"
	"net/http"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

//go:embed salepay.html
var payHTML string

// payPages is the page of the simulated provider, on which a person pays or lets it fail: GET shows it, POST with outcome captured or
// failed does that.
type payPages struct {
	provider *simpay.Provider
	prefix   string // what stands before the key of an intent in a path
	page     *template.Template
	cross    *http.CrossOriginProtection
	back     string
}

// NewPayPages returns the pages of a simulated provider, under [PayPath]. Back is where a link leads shoppers back to whose intent does
// not say where, "" for none.
func NewPayPages(provider *simpay.Provider, back string) http.Handler {
	return payPagesAt(provider, PayPath, back)
}

func payPagesAt(provider *simpay.Provider, prefix, back string) http.Handler {
	return &payPages{
		provider: provider, prefix: prefix, page: template.Must(template.New("pay").Parse(payHTML)), cross: http.NewCrossOriginProtection(), back: back,
	}
}

// payView is what the page shows.
type payView struct {
	Lang, Amount, OrderID, Status, Standing, Back string
	Chinese, Open                                 bool
}

// payStanding says for people how a payment stands.
func payStanding(status flashsale.PayStatus, chinese bool) string {
	words := map[flashsale.PayStatus][2]string{
		flashsale.PayOpen: {"to be paid", "待支付"}, flashsale.PayCaptured: {"paid", "已支付"}, flashsale.PayFailed: {"failed", "支付失败"},
		flashsale.PayVoid: {"cancelled", "已取消"}, flashsale.PayRefunded: {"paid back", "已退款"},
	}[status]
	if chinese {
		return cmp.Or(words[1], string(status))
	}
	return cmp.Or(words[0], string(status))
}

// ServeHTTP shows where a payment stands, after doing to it what was asked.
func (p *payPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, intent := http.StatusOK, strings.TrimPrefix(r.URL.Path, p.prefix)
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		status = p.pay(w, r, intent)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		status = http.StatusMethodNotAllowed
	}
	record, known := p.provider.Record(intent)
	if !known {
		status = http.StatusNotFound
	}
	lang := httpverdict.Language(r.Header)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", lang)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = p.page.Execute(w, p.view(&record, lang)) // a client that has gone away needs no page
}

// view is what there is to show of a payment, of the zero Record that there is none.
func (p *payPages) view(r *simpay.Record, lang string) *payView {
	chinese := lang == httpverdict.Chinese
	return &payView{
		Lang: lang, Chinese: chinese, Amount: flashsale.FormatAmount(r.Intent.Amount, r.Intent.Currency), OrderID: r.Intent.OrderID,
		Status: string(r.Status), Standing: payStanding(r.Status, chinese), Open: r.Status == flashsale.PayOpen, Back: cmp.Or(r.Intent.ReturnURL, p.back),
	}
}

// pay does to a payment what a form asks for. One of another site does nothing: the answer to it is the page, for the shopper to decide.
func (p *payPages) pay(w http.ResponseWriter, r *http.Request, intent string) (status int) {
	if httpverdict.CheckOrigin(p.cross, r) != nil {
		return http.StatusForbidden
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	return payStatus(p.provider.Pay(intent, flashsale.PayStatus(r.PostFormValue("outcome"))))
}

// payStatus is the status of the answer to who pays.
func payStatus(err error) int {
	switch flashsale.CodeOf(err) {
	case "":
		return http.StatusOK
	case flashsale.CodeInvalidArgument:
		return http.StatusBadRequest
	case flashsale.CodeUnknownPayment:
		return http.StatusNotFound
	}
	return http.StatusConflict
}
