package gateway

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// The gateway's own answers are in the client's language, as denials are.
func TestFaultsInTheClientsLanguage(t *testing.T) {
	addr := served(t, Config{Upstream: "http://" + testservers.UnusedAddr(t)}, ServerConfig{})
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

// People get a page where the service fails them, in their language; programs, and policies with a style of their own, what they got
// before.
func TestFaultsForPeople(t *testing.T) {
	const browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"
	silent := fakeService(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
	switches := fakeService(t, func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 101 Oh\r\n\r\n") })
	for _, c := range []struct{ name, upstream, style, fields, status, want string }{
		{"unreachable", "http://" + testservers.UnusedAddr(t), "", browser, "502", `<html lang="en">|We will be right back|Try again|id-&lt;1`},
		{"unreachable, by name", "http://" + testservers.UnusedAddr(t), httpverdict.StyleProblem, browser + "Accept-Language: zh-CN\r\n", "502", `<html lang="zh-Hans">|我们马上回来|重试`},
		{"no answer", silent, "", browser, "504", `<html lang="en">|That takes too long|before you send it again`},
		{"no answer", silent, "", browser + "Accept-Language: zh\r\n", "504", `<html lang="zh-Hans">|响应时间过长|先确认是否已经生效`},
		{"another protocol", switches, "", browser, "502", "We will be right back"},
		{"a program", silent, "", "Accept: */*\r\n", "504", `"code":"upstream_timeout"`},
		{"an envelope", silent, httpverdict.StyleEnvelope, browser, "504", `"code":"upstream_timeout"`},
		{"a template", silent, httpverdict.StyleTemplate, browser, "504", `"code":"upstream_timeout"`},
		{"a long Accept", silent, "", "Accept: " + strings.Repeat("a/b;q=0.1,", 1000) + "text/html\r\n", "504", `"code":"upstream_timeout"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			style := decider(func(*httpverdict.Request) *httpverdict.Verdict {
				return &httpverdict.Verdict{ID: "id-<1", Binding: -1, Response: httpverdict.ResponseStyle{Style: c.style}}
			})
			addr := served(t, Config{Upstream: c.upstream, Decider: style, ResponseTimeout: map[bool]time.Duration{true: briefly, false: patience}[c.upstream == silent]}, ServerConfig{})
			got := see(t, addr, "GET", getWith("/", c.fields))
			for want := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(got.body, want) {
					t.Errorf("there is no %q in %s", want, got.body)
				}
			}
			h, page := got.header, strings.Contains(c.want, "<html") || c.name == "another protocol"
			kind := map[bool]string{true: "text/html; charset=utf-8", false: "application/problem+json"}[page]
			if got.summary() != c.status || h.Get("Content-Type") != kind || h.Get("Cache-Control") != "no-store" || (h.Get("Content-Security-Policy") != "") != page {
				t.Errorf("%s %v", got.summary(), h)
			}
			if vary := strings.Join(h["Vary"], ", "); vary != map[bool]string{true: "Accept-Language, Accept", false: "Accept-Language"}[c.style == "" || c.style == httpverdict.StyleProblem] {
				t.Errorf("Vary: %s", vary)
			}
		})
	}
}

// A request that finds no place is told so in the same way.
func TestNoPlaceForPeople(t *testing.T) {
	g, addr := gatewayOf(t, Config{Upstream: "http://" + testservers.UnusedAddr(t), Adaptive: &Adaptive{Initial: 1, Least: 1, Most: 1}})
	at, _ := g.pool.pick(search{now: time.Now()})
	defer at.leave()
	got := see(t, addr, "GET", getWith("/", "Accept: text/html\r\n"))
	if got.summary() != "503" || !strings.Contains(got.body, "It is busy here") || got.header.Get("Retry-After") != "1" || got.header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s %s %v", got.summary(), got.body, got.header)
	}
}
