package httpverdict

import (
	_ "embed" // the page
	"html"
	"net/http"
	"strconv"
	"strings"
)

// friendlyPage is for people who wait: it needs nothing but itself, neither scripts nor what lies elsewhere.
//
//go:embed friendly.html
var friendlyPage string

// FriendlyPolicy is the Content-Security-Policy of a friendly page: it lets a browser do no more with the page than show it.
const FriendlyPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

// friendly is what a page says.
type friendly struct{ title, message phrase }

// friendlyTexts has the codes that have a page: answers that coming again later helps against.
var friendlyTexts = map[string]friendly{
	"restricted": {phrase{"We will be right back", "我们马上回来"},
		phrase{"The service is open to some visitors only for the moment, so that it is soon there for everyone again.", "服务暂时只对部分用户开放，以便尽快为所有人恢复。"}},
	"overloaded": {friendlyBusy, friendlyCrowd}, "shed": {friendlyBusy, friendlyCrowd}, "wait_timeout": {friendlyBusy, friendlyCrowd},
	"upstream_busy":        {friendlyBusy, friendlyCrowd},
	"upstream_unavailable": {friendlyBack, friendlyAway}, "upstream_unreachable": {friendlyBack, friendlyAway}, "upstream_protocol": {friendlyBack, friendlyAway},
	"upstream_timeout": {phrase{"That takes too long", "响应时间过长"},
		phrase{"The service has not answered in time. If you have sent something, please look whether it has arrived before you send it again.",
			"服务没有及时响应。如果您刚提交了内容，请先确认是否已经生效，再重新提交。"}},
}

var (
	friendlyBack  = phrase{"We will be right back", "我们马上回来"}
	friendlyAway  = phrase{"The service cannot be reached at the moment. Nothing is wrong on your side.", "服务暂时无法访问，并非您的操作有误。"}
	friendlyBusy  = phrase{"It is busy here", "访问人数较多"}
	friendlyCrowd = phrase{"More people are here than can be served at once. Nothing is wrong on your side.", "当前访问的人很多，暂时无法为您服务，并非您的操作有误。"}
)

// The words around them.
var (
	friendlyButton = phrase{"Try again", "重试"}
	friendlyNote   = phrase{"If you write to us about this, please include", "如需联系我们，请提供编号"}
)

// HasFriendlyPage tells whether a code has a page for people: what answers it differs by the request's Accept.
func HasFriendlyPage(code string) bool {
	_, ok := friendlyTexts[code]
	return ok
}

// FriendlyPage returns the HTML page that a denial with the code of p is answered with where the request, of which it needs the
// header, prefers one; ok is false if it does not, or if the code has none. It is in the language of p, English or Chinese, and
// says the message of p or, where that is empty, one of its own.
func FriendlyPage(request http.Header, p *Page) (page []byte, ok bool) {
	text, ok := friendlyTexts[p.Code]
	if !ok || !PrefersHTML(request) {
		return nil, false
	}
	message := p.Message
	if message == "" {
		message = text.message.in(p.Lang)
	}
	lang := English
	if p.Lang == Chinese {
		lang = "zh-Hans" // chooses the shapes of the characters
	}
	fill := strings.NewReplacer("{{lang}}", lang, "{{title}}", text.title.in(p.Lang), "{{message}}", html.EscapeString(message),
		"{{again}}", again(p.RetryAfter).in(p.Lang), "{{button}}", friendlyButton.in(p.Lang),
		"{{note}}", friendlyNote.in(p.Lang), "{{id}}", html.EscapeString(p.ID))
	return []byte(fill.Replace(friendlyPage)), true
}

// again says when to come again: in minutes, rounded up, where seconds would only look exact.
func again(seconds int64) phrase {
	minutes := strconv.FormatInt((seconds+59)/60, 10)
	text := strconv.FormatInt(seconds, 10)
	switch {
	case seconds <= 0:
		return phrase{"Please come again a little later.", "请稍后再来。"}
	case seconds == 1:
		return phrase{"Please try again in a second.", "请在 1 秒后重试。"}
	case seconds < 60:
		return phrase{"Please try again in " + text + " seconds.", "请在 " + text + " 秒后重试。"}
	case seconds == 60:
		return phrase{"Please try again in a minute.", "请在 1 分钟后重试。"}
	}
	return phrase{"Please try again in about " + minutes + " minutes.", "请在约 " + minutes + " 分钟后重试。"}
}

// PrefersHTML tells whether a request's Accept (RFC 9110, section 12.5.1) names HTML and nothing before it, as browsers do when
// they open a page. Programs that take anything, or JSON as gladly, get JSON.
func PrefersHTML(h http.Header) bool {
	page, data, rest, left := 0, 0, 0, maxRanges
	for _, line := range h["Accept"] {
		for item := range strings.SplitSeq(line, ",") {
			if left--; left < 0 {
				break
			}
			media, weight := weightedMedia(item)
			switch media = strings.ToLower(media); {
			case media == "text/html" || media == "application/xhtml+xml" || media == "text/*":
				page = max(page, weight)
			case strings.HasSuffix(media, "json") || media == "application/*":
				data = max(data, weight)
			case media == "*/*":
				rest = max(rest, weight)
			}
		}
	}
	return page > data && page >= rest && page > 0
}

// weightedMedia is weighted for a media range, which may have parameters before its weight.
func weightedMedia(item string) (media string, weight int) {
	media, params, _ := strings.Cut(item, ";")
	for param := range strings.SplitSeq(params, ";") {
		if param = strings.TrimSpace(param); len(param) > 1 && param[0]|0x20 == 'q' && param[1] == '=' {
			return weighted(media + ";" + param)
		}
	}
	return weighted(media)
}
