package gateway

import (
	"encoding/json"
	"strings"
	"testing"
)

// The gateway's own answers are in the client's language, as denials are.
func TestFaultsInTheClientsLanguage(t *testing.T) {
	addr := served(t, Config{Upstream: "http://" + unusedAddr(t)}, ServerConfig{})
	for _, c := range []struct{ request, lang, title, detail string }{
		{"GET / HTTP/1.1\r\nHost: x\r\nAccept-Language: zh-CN\r\n\r\n", "zh", "网关错误", "暂时无法连接到服务，请稍后再试。"},
		{"GET / HTTP/1.1\r\nHost: x\r\nAccept-Language: fr\r\n\r\n", "en", "Bad Gateway", "The service cannot be reached. Please try again later."},
		{"GET /_headgate/x HTTP/1.1\r\nHost: x\r\nAccept-Language: zh\r\n\r\n", "zh", "未找到", "此处没有内容。"},
		{"get / HTTP/1.1\r\nHost: x\r\nAccept-Language: zh\r\n\r\n", "zh", "请求无效", "请求格式有误：方法名须为大写字母。"},
		{"GET / HTTP/1.1\r\nHost: x\r\nAccept-Language: zh\r\nConnection: x-a\r\nX-A: 1\r\n\r\n", "zh", "请求无效", "请求格式有误：Connection 点名了请求头 X-A。"},
		{"TRACE / HTTP/1.1\r\nHost: x\r\nAccept-Language: zh\r\n\r\n", "zh", "不支持的方法", "不转发 TRACE 方法。"},
		{"GET /%zz HTTP/1.1\r\nHost: x\r\nAccept-Language: zh\r\n\r\n", "", "", ""}, // net/http's own
		{"GET /a%00 HTTP/1.1\r\nHost: x\r\nAccept-Language: zh\r\n\r\n", "zh", "请求无效", "请求格式有误。"},
	} {
		got := see(t, addr, "GET", c.request)
		if c.lang == "" {
			continue
		}
		var problem struct{ Title, Detail string }
		if err := json.Unmarshal([]byte(got.body), &problem); err != nil || problem.Title != c.title || problem.Detail != c.detail {
			t.Errorf("%.30q: %s %+v %v, want %s %s", c.request, got.summary(), problem, err, c.title, c.detail)
		}
		if h := got.header; h.Get("Content-Language") != c.lang || !strings.Contains(h.Get("Vary"), "Accept-Language") {
			t.Errorf("%.30q: header %v", c.request, h)
		}
	}
	for status := range titles {
		if titles[status] == "" {
			t.Errorf("%d has no title", status)
		}
	}
}
