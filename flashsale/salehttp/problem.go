package salehttp

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Codes of this package, beside those of flashsale.
const (
	codeNoRoute         flashsale.Code = "no_such_path"
	codeMethod          flashsale.Code = "method_not_allowed"
	codeCrossOrigin     flashsale.Code = "cross_origin"
	codeUnauthenticated flashsale.Code = "unauthenticated"
	codeMediaType       flashsale.Code = "unsupported_media_type"
	codeTooLarge        flashsale.Code = "body_too_large"
	codeBodyTimeout     flashsale.Code = "body_timeout"
	codeTooManyStreams  flashsale.Code = "too_many_streams"
	codeInvalidTicket   flashsale.Code = "invalid_ticket"
)

// phrase is a text in every language.
type phrase struct{ en, zh string }

func (p phrase) in(lang string) string {
	if lang == httpverdict.Chinese {
		return p.zh
	}
	return p.en
}

// answerTo is how a code is answered.
type answerTo struct {
	status int
	// again is when asking again may help, where the fault does not say it itself; 0: it does not, or nobody knows when.
	again       time.Duration
	title, text phrase
}

// answers is the table of everything that can go wrong. What is missing is answered as CodeInternal.
var answers = map[flashsale.Code]answerTo{
	codeNoRoute:                    {http.StatusNotFound, 0, phrase{"Not found", "未找到"}, phrase{"There is nothing here.", "此处没有内容。"}},
	codeMethod:                     {http.StatusMethodNotAllowed, 0, phrase{"Method not allowed", "请求方法不允许"}, phrase{"This cannot be asked in this way.", "不支持以此方式请求。"}},
	codeCrossOrigin:                {http.StatusForbidden, 0, phrase{"Not from this page", "来源不被允许"}, phrase{"The request comes from a page of another site.", "请求来自其他网站的页面。"}},
	codeUnauthenticated:            {http.StatusUnauthorized, 0, phrase{"Not signed in", "未登录"}, phrase{"Please sign in first.", "请先登录。"}},
	codeMediaType:                  {http.StatusUnsupportedMediaType, 0, phrase{"Not JSON", "内容类型不支持"}, phrase{"The body of the request must be JSON, in UTF-8.", "请求内容必须是 UTF-8 编码的 JSON。"}},
	codeTooLarge:                   {http.StatusRequestEntityTooLarge, 0, phrase{"Too large", "内容过大"}, phrase{"The body of the request is too large.", "请求内容过大。"}},
	codeBodyTimeout:                {http.StatusRequestTimeout, time.Second, phrase{"Too slow", "请求超时"}, phrase{"The body of the request did not come in time. Please try again; nothing is ordered twice.", "请求内容未能及时送达，请重试，不会重复下单。"}},
	codeTooManyStreams:             {http.StatusTooManyRequests, 5 * time.Second, phrase{"Too many open pages", "连接过多"}, phrase{"Too many pages wait for results. Please close some, or try again soon.", "等待结果的页面过多。请关闭一些页面，或稍后再试。"}},
	codeInvalidTicket:              {http.StatusForbidden, 0, phrase{"Ticket not valid", "凭证无效"}, phrase{"The ticket has been used, has expired, or is for something else. Please get another one.", "凭证已使用、已过期或不适用于此处，请重新获取。"}},
	flashsale.CodeUnknownSale:      {http.StatusNotFound, 0, phrase{"No such sale", "没有该活动"}, phrase{"There is no such sale.", "没有这个活动。"}},
	flashsale.CodeUnknownSKU:       {http.StatusNotFound, 0, phrase{"No such item", "没有该商品"}, phrase{"There is no such item in this sale.", "活动中没有这件商品。"}},
	flashsale.CodeNotFound:         {http.StatusNotFound, 0, phrase{"Not reserved", "未预订"}, phrase{"You have no such reservation. Please try again.", "您没有该预订，请重试。"}},
	flashsale.CodeUnknownPayment:   {http.StatusNotFound, 0, phrase{"No such payment", "没有该付款"}, phrase{"There is no such payment.", "没有这笔付款。"}},
	flashsale.CodeInvalidArgument:  {http.StatusBadRequest, 0, phrase{"Not understood", "请求无效"}, phrase{"The request cannot be understood.", "无法理解该请求。"}},
	flashsale.CodeInvalidQuantity:  {http.StatusUnprocessableEntity, 0, phrase{"Quantity not possible", "数量无效"}, phrase{"Choose a quantity from 1 to what one person may buy.", "购买数量不在允许范围内。"}},
	flashsale.CodeConflict:         {http.StatusUnprocessableEntity, 0, phrase{"Already used", "请求冲突"}, phrase{"This order has been sent already, with another quantity.", "该订单已用其他数量提交过。"}},
	flashsale.CodeInvalidToken:     {http.StatusForbidden, 0, phrase{"Not valid", "订单令牌无效"}, phrase{"This order is not valid for you and this item. Please start again.", "该订单令牌对您或该商品无效，请重新开始。"}},
	flashsale.CodeTokenExpired:     {http.StatusForbidden, 0, phrase{"Too late", "订单令牌已过期"}, phrase{"That took too long, and nothing is reserved. Please start again.", "操作超时，未为您预订任何商品，请重新开始。"}},
	flashsale.CodeNotOpen:          {http.StatusConflict, 0, phrase{"Not on sale", "未在销售"}, phrase{"This is not on sale now.", "该商品当前不在销售中。"}},
	flashsale.CodePurchaseLimit:    {http.StatusConflict, 0, phrase{"Purchase limit", "已达限购"}, phrase{"With this you would hold and have bought more than one person may.", "加上本次，您预订和购买的数量将超过限购数量。"}},
	flashsale.CodeSoldOut:          {http.StatusConflict, 0, phrase{"Sold out", "已售罄"}, phrase{"There is nothing left now.", "商品已被抢光。"}},
	flashsale.CodeInvalidState:     {http.StatusConflict, 0, phrase{"Not possible now", "当前无法操作"}, phrase{"That is not possible with this order any more, or not yet.", "该订单当前不能进行此操作。"}},
	flashsale.CodePastDeadline:     {http.StatusConflict, 0, phrase{"Time is over", "已超时"}, phrase{"The time to pay is over.", "付款时间已过。"}},
	flashsale.CodeBusy:             {http.StatusServiceUnavailable, time.Second, phrase{"Very busy", "系统繁忙"}, phrase{"Many are buying at this moment. Please try again in a moment; you lose nothing.", "当前抢购人数较多，请稍后重试，不会影响您的资格。"}},
	flashsale.CodeRebuilding:       {http.StatusServiceUnavailable, time.Second, phrase{"One moment", "请稍候"}, phrase{"The sale is being prepared. Please try again in a moment.", "活动正在准备中，请稍后重试。"}},
	flashsale.CodeUnavailable:      {http.StatusServiceUnavailable, time.Second, phrase{"One moment", "暂时不可用"}, phrase{"The answer did not come in time. Please try again; nothing is ordered twice.", "暂时未得到结果，请重试，不会重复下单。"}},
	flashsale.CodeClosed:           {http.StatusServiceUnavailable, time.Second, phrase{"One moment", "暂时不可用"}, phrase{"This server is about to stop. Please try again.", "该服务器即将停止，请重试。"}},
	flashsale.CodeInvalidSignature: {http.StatusUnauthorized, 0, phrase{"Signature not valid", "签名无效"}, phrase{"The message is not signed by the payment provider.", "消息未经支付服务商签名。"}},
	flashsale.CodeAmountMismatch:   {http.StatusUnprocessableEntity, 0, phrase{"Another amount", "金额不符"}, phrase{"The amount is not the one that was asked for.", "金额与应付金额不符。"}},
	flashsale.CodeCurrencyMismatch: {http.StatusUnprocessableEntity, 0, phrase{"Another currency", "币种不符"}, phrase{"The currency is not the one that was asked for.", "币种与应付币种不符。"}},
	flashsale.CodeInternal:         {http.StatusInternalServerError, 0, phrase{"Something went wrong", "出错了"}, phrase{"Something went wrong here. Please try again later.", "服务器出错，请稍后再试。"}},
}

// fault is what went wrong with one request.
type fault struct {
	code flashsale.Code
	// after is when to ask again, if that is known.
	after time.Duration
	// never tells that asking again does not help, whatever the table says.
	never bool
	// more are members of the problem document.
	more extras
	// err is logged where it is nobody's fault outside.
	err error
}

// extras are members of a problem document that some codes have.
type extras struct {
	// Errors say which fields of the request cannot be used, and what they take.
	Errors []fieldError `json:"errors,omitempty"`
	// Reason says why something is not on sale: not_yet, ended, or its status.
	Reason  string `json:"reason,omitempty"`
	OpensAt string `json:"opens_at,omitempty"`
	// Stock says, of what is sold out, whether units can come back: all_held or gone.
	Stock string `json:"stock,omitempty"`
	// Holds are the shopper's own reservations that fill the purchase limit.
	Holds []resultBody `json:"holds,omitempty"`
}

// problemBody is a document of RFC 9457.
type problemBody struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Status     int            `json:"status"`
	Detail     string         `json:"detail"`
	Code       flashsale.Code `json:"code"`
	ID         string         `json:"id"`
	RetryAfter int64          `json:"retry_after,omitempty"`
	extras
}

// failed answers an error of the sale's.
func (a *answer) failed(err error) { a.problem(a.faultOf(err)) }

// faultOf makes a fault of an error of the sale's.
func (a *answer) faultOf(err error) *fault {
	code := flashsale.CodeOf(err)
	switch code {
	case flashsale.CodeStaleEpoch, flashsale.CodeFenced: // somebody else is at it
		code = flashsale.CodeRebuilding
	case "":
		code = flashsale.CodeInternal
	}
	if _, known := answers[code]; !known {
		code = flashsale.CodeInternal
	}
	return &fault{code: code, err: err}
}

// problem answers what went wrong.
func (a *answer) problem(f *fault) {
	to := answers[f.code]
	lang := httpverdict.Language(a.r.Header)
	header := a.w.Header()
	body := problemBody{
		Type: "about:blank", Title: to.title.in(lang), Status: to.status, Detail: to.text.in(lang), Code: f.code, ID: a.verdictID(), extras: f.more,
	}
	if wait := max(f.after, to.again); wait > 0 && !f.never {
		body.RetryAfter = a.h.seconds(wait)
		header.Set("Retry-After", strconv.FormatInt(body.RetryAfter, 10))
	}
	if to.status == http.StatusUnauthorized {
		header.Set("Www-Authenticate", `Headgate realm="sale"`)
	}
	if to.status == http.StatusInternalServerError && f.err != nil && a.r.Context().Err() == nil {
		a.h.cfg.Logger.LogAttrs(a.r.Context(), slog.LevelError, "a request to the sale has failed", slog.String("id", body.ID), slog.Any("error", f.err))
	}
	header.Set("Content-Language", lang)
	header.Add("Vary", "Accept-Language")
	a.json(to.status, "application/problem+json", &body)
}

// verdictID is the name by which the answer can be found in logs: that of the verdict that let the request pass, or a new one.
func (a *answer) verdictID() string {
	header := a.w.Header()
	id := header.Get(httpverdict.HeaderID)
	if id == "" {
		id = httpverdict.NewID()
		header.Set(httpverdict.HeaderID, id)
	}
	return id
}

// seconds makes a Retry-After: whole seconds, at least 1, never less than d, and more for some than for others, so that those who were
// refused together do not come back together.
func (h *Handler) seconds(d time.Duration) int64 {
	least := max(1, int64((d+time.Second-1)/time.Second))
	spread := max(1, least/2)
	return least + int64(h.cfg.Random()*float64(spread+1))
}

// json answers with a document that nobody else may keep.
func (a *answer) json(status int, contentType string, doc any) {
	header := a.w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", contentType)
	a.body(status, append(a.marshal(doc), '\n'))
}

// marshal writes a document of this package: texts and numbers only, so that there is no error to come.
func (a *answer) marshal(doc any) []byte {
	body, err := json.Marshal(doc)
	if err != nil {
		a.h.cfg.Logger.LogAttrs(a.r.Context(), slog.LevelError, "a document cannot be written", slog.Any("error", err))
		return []byte("{}")
	}
	return body
}

// body sends a body whose headers are set. HEAD gets its length alone.
func (a *answer) body(status int, body []byte) {
	a.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	a.w.Header().Set("X-Content-Type-Options", "nosniff")
	a.status(status)
	if a.r.Method != http.MethodHead {
		_, _ = a.w.Write(body) // the client has gone: nobody is left to tell
	}
}

func (a *answer) status(status int) {
	a.begun = true
	a.w.WriteHeader(status)
}
