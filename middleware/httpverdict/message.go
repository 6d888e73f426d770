package httpverdict

// The languages of titles and messages.
const (
	English = "en"
	Chinese = "zh" // simplified
)

// phrase is a text in every language.
type phrase struct{ en, zh string }

func (p phrase) in(lang string) string {
	if lang == Chinese {
		return p.zh
	}
	return p.en
}

// kindTexts has the texts of verdicts whose code has none of its own.
var kindTexts = [...]struct{ title, message phrase }{
	Allow: {phrase{"Allowed", "已放行"}, phrase{"The request is allowed.", "请求已放行。"}},
	Limited: {phrase{"Too many requests", "请求过多"},
		phrase{"Too many requests. Please try again later.", "请求过于频繁，请稍后再试。"}},
	LockedOut: {phrase{"Locked out", "暂时锁定"},
		phrase{"Access is closed for a while after too many requests. Please try again later.", "由于请求过多，访问已暂时关闭，请稍后再试。"}},
	Forbidden:  {phrase{"Forbidden", "禁止访问"}, phrase{"Access is not allowed.", "不允许访问。"}},
	BadRequest: {phrase{"Bad request", "请求无效"}, phrase{"The request cannot be understood.", "无法理解该请求。"}},
	Unavailable: {phrase{"Unavailable", "服务暂不可用"},
		phrase{"The service cannot take the request at the moment. Please try again.", "服务暂时无法处理该请求，请重试。"}},
	Overloaded: {phrase{"Overloaded", "服务繁忙"},
		phrase{"The service is busy. Please try again later.", "服务繁忙，请稍后再试。"}},
}

// codeTexts has the messages of codes that say more than their kind.
var codeTexts = map[string]phrase{
	"cost_exceeds_limit":   {"The request is larger than what is allowed.", "该请求超出了允许的用量。"},
	"dimension_missing":    {"The request lacks something that is needed to let it pass.", "请求缺少放行所需的信息。"},
	"gone":                 {"The request came too late. Please send it again.", "该请求已失效，请重新发送。"},
	"invalid_cost":         {"The cost of the request cannot be charged.", "无法计算该请求的用量。"},
	"malformed_request":    {"The request is malformed.", "请求格式有误。"},
	"restricted":           {"The service is open to some users only for the moment. Please try again later.", "服务暂时只对部分用户开放，请稍后再试。"},
	"upstream_unavailable": {"The service is not available at the moment. Please try again later.", "服务暂时不可用，请稍后再试。"},
	"wait_timeout":         {"The request has waited for its turn in vain. Please try again later.", "排队等待超时，请稍后再试。"},
}

// Message returns the title of a kind, and what a verdict of that kind and code says to the person at the other end unless
// it has a Detail, in a language that [Language] returns.
func Message(code string, kind Kind, lang string) (title, message string) {
	if int(kind) >= len(kindTexts) {
		return phrase{"Internal error", "内部错误"}.in(lang), phrase{"Something went wrong. Please try again later.", "出错了，请稍后再试。"}.in(lang)
	}
	texts := kindTexts[kind]
	if own, known := codeTexts[code]; known {
		return texts.title.in(lang), own.in(lang)
	}
	return texts.title.in(lang), texts.message.in(lang)
}
