package salehttp

import (
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/jsonbody"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const (
	// maxBody bounds the body of a shopper's request, in bytes; maxWebhook that of the provider's.
	maxBody    = 4 << 10
	maxWebhook = 64 << 10
)

// read reads a body that may have so many bytes. What is longer is not read.
func (a *answer) read(most int64) ([]byte, *fault) {
	body, bad := jsonbody.Read(a.w, a.r, most)
	if bad == nil {
		return body, nil
	}
	switch bad.Kind {
	case jsonbody.TooLarge:
		return nil, &fault{code: codeTooLarge}
	case jsonbody.Stalled:
		return nil, &fault{code: codeBodyTimeout}
	}
	return nil, a.invalid(wholeBody, phrase{"It breaks off.", "内容在传输中中断。"})
}

// fields reads the JSON object of a POST into the fields it may have, which names lists in the order in which they are told. A request without a
// body has none.
func (a *answer) fields(into any, names ...string) *fault {
	if a.r.ContentLength != 0 || len(a.r.Header["Content-Type"]) > 0 {
		if !jsonbody.Is(a.r.Header) {
			return &fault{code: codeMediaType}
		}
	}
	body, f := a.read(maxBody)
	if f != nil || len(body) == 0 {
		return f
	}
	if bad := jsonbody.Decode(body, into); bad != nil {
		return a.invalid(whatIsWrong(bad, names))
	}
	return nil
}

// bare answers a request that has anything in its body.
func (a *answer) bare() bool {
	if f := a.fields(&struct{}{}); f != nil {
		a.problem(f)
		return false
	}
	return true
}

// fieldError is what is wrong with a field, for people.
type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// invalid is a request with a field that cannot be used.
func (a *answer) invalid(field string, why phrase) *fault {
	message := why.in(httpverdict.Language(a.r.Header))
	return &fault{code: flashsale.CodeInvalidArgument, more: extras{Errors: []fieldError{{field, message}}}}
}

// wholeBody stands for a field where it is the whole body, or a field whose name is not one to repeat.
const wholeBody = "body"

// takes says what the fields of bodies take.
func takes(field string) phrase {
	switch field {
	case "token":
		return phrase{"the order token, as a text", "订单令牌（字符串）"}
	case "quantity":
		return phrase{"how many units, as a whole number", "购买数量（整数）"}
	}
	return phrase{"something else", "其他类型的值"}
}

// missing is a request that lacks a field.
func (a *answer) missing(field string) *fault {
	want := takes(field)
	return a.invalid(field, phrase{"It is missing; it takes " + want.en + ".", "缺少该字段，应为" + want.zh + "。"})
}

// whatIsWrong puts a fault of a body into words. It repeats no value, and of names only those that can be names: who puts a token where a
// name belongs does not get it back.
func whatIsWrong(bad *jsonbody.Fault, names []string) (field string, why phrase) {
	switch bad.Kind {
	case jsonbody.NotUTF8:
		return wholeBody, phrase{"It is not UTF-8.", "内容不是 UTF-8 编码。"}
	case jsonbody.NotJSON:
		return wholeBody, phrase{"It is not JSON.", "内容不是 JSON。"}
	case jsonbody.Partial:
		return wholeBody, phrase{"It is not one whole JSON object.", "内容不是完整的 JSON 对象。"}
	case jsonbody.NotObject:
		return wholeBody, phrase{"It must be a JSON object.", "内容必须是 JSON 对象。"}
	case jsonbody.TooDeep:
		return wholeBody, phrase{"It is nested too deep.", "内容嵌套过深。"}
	case jsonbody.Trailing:
		return wholeBody, phrase{"Something follows the JSON object.", "JSON 对象之后还有其他内容。"}
	case jsonbody.Repeated:
		return shown(bad.Field), phrase{"It stands there twice.", "该字段重复出现。"}
	case jsonbody.WrongType:
		want := takes(bad.Field)
		return shown(bad.Field), phrase{"It takes " + want.en + ".", "应为" + want.zh + "。"}
	}
	if len(names) == 0 {
		return shown(bad.Field), phrase{"There is no such field; this request takes none.", "没有该字段；此请求不需要任何字段。"}
	}
	return shown(bad.Field), phrase{"There is no such field; there is " + strings.Join(names, ", ") + ".", "没有该字段；可用字段：" + strings.Join(names, "、") + "。"}
}

// shown is a field's name if it looks like one.
func shown(name string) string {
	const most = 32
	if name == "" || len(name) > most || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return wholeBody
	}
	return name
}
