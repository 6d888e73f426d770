package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// fault is an answer of the gateway itself: no verdict of the policy, and no answer of the service.
type fault struct {
	status int
	code   string // a stable word
	detail words  // for the person at the other end
	close  bool   // whether the connection ends: what follows on it cannot be trusted
}

// words are a text in the languages of httpverdict.
type words struct{ en, zh string }

func (w words) in(lang string) string {
	if lang == httpverdict.Chinese {
		return w.zh
	}
	return w.en
}

// titles are those of the statuses of faults; http.StatusText has them in English alone.
var titles = map[int]string{
	http.StatusBadRequest: "请求无效", http.StatusNotFound: "未找到", http.StatusMethodNotAllowed: "不支持的方法",
	http.StatusRequestTimeout: "请求超时", http.StatusRequestEntityTooLarge: "请求过大", http.StatusBadGateway: "网关错误",
	http.StatusGatewayTimeout: "网关超时", http.StatusRequestHeaderFieldsTooLarge: "请求头过大",
}

func faultMalformed(what words) *fault {
	return &fault{
		status: http.StatusBadRequest, code: string(httpverdict.CodeMalformedRequest),
		detail: words{"The request is malformed: " + what.en + ".", "请求格式有误：" + what.zh + "。"}, close: true,
	}
}

func faultNothingHere() *fault {
	return &fault{status: http.StatusNotFound, code: "not_found", detail: words{"There is nothing here.", "此处没有内容。"}}
}

func faultLongBody() *fault {
	return &fault{
		status: http.StatusRequestEntityTooLarge, code: "body_too_large",
		detail: words{"The body of the request is too long.", "请求正文过长。"}, close: true,
	}
}

// fail answers with a problem document (RFC 9457), or a page for people, in the language that the request prefers.
func (x *exchange) fail(f *fault) {
	id := httpverdict.NewID()
	if x.verdict != nil && x.verdict.ID != "" {
		id = x.verdict.ID
	}
	lang := httpverdict.Language(x.r.Header)
	h := x.Header()
	h.Set("Content-Language", lang)
	h.Add("Vary", "Accept-Language")
	body := x.page(f, lang, id)
	if body == nil {
		body = f.problem(lang, id)
		h.Set("Content-Type", "application/problem+json")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set(httpverdict.HeaderID, id)
	if f.close && x.r.ProtoMajor == 1 { // another stream of an HTTP/2 connection is nobody's business here
		h.Set("Connection", "close")
	}
	x.WriteHeader(f.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.Write(body) // the client has gone: nobody is left to tell
	}
}

// page returns the page for people with its headers, where the policy has no style of its own and the code has a page that the request
// prefers; else nil.
func (x *exchange) page(f *fault, lang, id string) []byte {
	if !httpverdict.HasFriendlyPage(f.code) {
		return nil
	}
	if x.verdict != nil && (x.verdict.Response.Style == httpverdict.StyleEnvelope || x.verdict.Response.Style == httpverdict.StyleTemplate) {
		return nil
	}
	h := x.Header()
	h.Add("Vary", "Accept")
	body, ok := httpverdict.FriendlyPage(x.r.Header, &httpverdict.Page{Status: f.status, Lang: lang, Code: f.code, ID: id})
	if !ok {
		return nil
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", httpverdict.FriendlyPolicy)
	return body
}

// problem returns the document.
func (f *fault) problem(lang, id string) []byte {
	title := http.StatusText(f.status)
	if lang == httpverdict.Chinese {
		title = titles[f.status]
	}
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
		ID     string `json:"id"`
	}{"about:blank", title, f.status, f.detail.in(lang), f.code, id})
	if err != nil { // cannot be: strings and integers only
		body = []byte("{}")
	}
	return append(body, '\n')
}

// clientFailed tells whether the client is why there is no answer: it has left, or its body could not be read.
func (x *exchange) clientFailed() bool {
	return x.body.failure() != nil || x.r.Context().Err() != nil
}

// upstreamFailed answers for a service that has not. The fault may be the client's: its body is read while the request is
// sent.
func (x *exchange) upstreamFailed(err error) {
	o, t := x.blame(err)
	x.at.report(o, t, err)
	switch failure := x.body.failure(); {
	case errors.Is(failure, errSlowBody): // before the context, which net/http ends when a read has failed
		x.fail(&fault{
			status: http.StatusRequestTimeout, code: "body_too_slow", close: true,
			detail: words{"The body of the request came too slowly.", "请求正文传输过慢。"},
		})
		return
	case errors.Is(failure, errLongBody):
		x.fail(faultLongBody())
		return
	case x.r.Context().Err() != nil:
		x.abort()
	case failure != nil:
		x.fail(faultMalformed(words{"its body cannot be read", "无法读取正文"}))
		return
	}
	f := &fault{
		status: http.StatusBadGateway, code: "upstream_unreachable",
		detail: words{"The service cannot be reached. Please try again later.", "暂时无法连接到服务，请稍后再试。"},
	}
	switch {
	case isLargeHeader(err):
		f = &fault{
			status: http.StatusRequestHeaderFieldsTooLarge, code: "header_too_large",
			detail: words{"The header of the request is larger than the service takes.", "请求头超出了服务所能接受的大小。"},
		}
		x.fail(f)
		return
	case isTimeout(err):
		f = &fault{
			status: http.StatusGatewayTimeout, code: "upstream_timeout",
			detail: words{"The service does not answer. Please try again later.", "服务没有响应，请稍后再试。"},
		}
	}
	x.warn("the upstream did not answer", err)
	x.serviceFailed(f)
}

// blame tells what a request without an answer says of its upstream. A connection that ends while the request's body is still
// being sent says nothing: an upstream that has refused the body, and closed, looks like that, and clients must not be able to
// have it ejected. Nor does a request that the transport refuses to write.
func (x *exchange) blame(err error) (outcome, timing) {
	switch {
	case x.clientFailed() && x.body.slow(x.at.entered):
		return unknown, untimed
	case x.clientFailed():
		return unknown, atLeast
	case x.at.way.unsent(err):
		return failed, untimed
	case isTimeout(err):
		return failed, timed
	case x.at.way.unsendable():
		return unknown, untimed
	case x.body.sent():
		return failed, untimed
	}
	return unknown, untimed
}

// isLargeHeader tells whether a request is larger than an upstream of HTTP/2 has said to take. net/http has no value for that.
func isLargeHeader(err error) bool {
	return strings.HasSuffix(err.Error(), "header list larger than peer's advertised limit")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// warn logs a fault of the service.
func (x *exchange) warn(message string, err error) {
	x.g.cfg.Logger.LogAttrs(context.WithoutCancel(x.r.Context()), slog.LevelWarn, message,
		slog.String("upstream", x.servedBy), slog.String("method", x.r.Method), slog.String("path", x.judged.Path),
		slog.String("id", x.verdict.ID), slog.String("error", brief(err)))
}

// maxBrief is how many bytes of an error are told.
const maxBrief = 300

// brief is an error in a log, a line of a terminal or a page: short and printable, also where it quotes what a service has sent.
func brief(err error) string {
	text := err.Error()
	if len(text) > maxBrief {
		text = text[:maxBrief] + "…"
	}
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '\uFFFD'
	}, text)
}

// abort ends the connection, or stream, so that what was sent cannot be taken for a whole answer. net/http recovers the
// panic. HTTP/1.0 has no other end of a body than that of the connection, so there it must end in a reset.
func (x *exchange) abort() {
	if conn := connOf(x.r.Context()); conn != nil && !x.r.ProtoAtLeast(1, 1) {
		conn.reset()
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // the only way that net/http knows
}
