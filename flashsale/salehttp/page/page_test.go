package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/salehttp/page"
	"github.com/headgate-io/headgate/internal/testservers"
)

// patience bounds what a page may take, on a busy machine.
const patience = 3 * time.Minute

func TestScriptIsSmall(t *testing.T) {
	t.Parallel()
	if n := len(page.Script()); n >= 6000 {
		t.Errorf("the script has %d bytes; people with a bad network should get less than 6000", n)
	}
}

// TestPage has a page of a shop shown by a real browser. Each scenario has a profile of its own.
func TestPage(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	for name, scenario := range map[string]func(*testing.T, context.Context){
		"buying":         buying,
		"chinese":        chinese,
		"lost answer":    lostAnswer,
		"second tab":     secondTab,
		"busy":           busy,
		"without events": withoutEvents,
		"sold out":       soldOut,
		"not signed in":  notSignedIn,
		"another user":   anotherUser,
		"expired":        expired,
		"between":        between,
		"stalled":        stalled,
		"events again":   eventsAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
			t.Cleanup(cancel)
			scenario(t, ctx)
		})
	}
}

// TestDocsTellEveryState, and every text of the script is in both languages.
func TestDocsTellEveryState(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../../docs/sale-page.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("page.js")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`(?m)^    (\w+): \['([^']+)', '([^']+)'\],$`).FindAllStringSubmatch(string(source), -1)
	if len(words) != 25 {
		t.Errorf("%d texts have two languages; there are 25", len(words))
	}
	for _, w := range words {
		if slices.Contains([]string{"buy", "again", "pay", "cancel", "day"}, w[1]) {
			continue // a button, or a unit
		}
		if !strings.Contains(string(docs), "`"+w[1]+"`") {
			t.Errorf("docs/sale-page.md does not tell of the state %s", w[1])
		}
		if strings.Contains(w[2], "{t}") != strings.Contains(w[3], "{t}") {
			t.Errorf("%s has a time in one language alone", w[1])
		}
	}
}

// browser is a browser with an empty profile. It ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testservers.Need(t, "chromium")), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil { // starts it
		t.Fatalf("the browser does not start: %v", err)
	}
	return ctx
}

// tab is a page of the shop.
type tab struct {
	t   testing.TB
	ctx context.Context
}

func (s *shop) visit(ctx context.Context, lang string) *tab {
	s.Helper()
	p := &tab{s, ctx}
	p.do(chromedp.Navigate(s.http.URL + "/shop?lang=" + lang))
	return p
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page says %q", err, p.text())
	}
}

// text is what the page says now, "" if it does not answer.
func (p *tab) text() string {
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.querySelector("#box")?.innerText ?? document.title`))
	return text
}

// state waits until the page is in a state, and returns what it says.
func (p *tab) state(want string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.WaitReady(`#box[data-state="`+want+`"]`)); err != nil {
		states, _ := chromedp.Run(p.ctx, chromedp.Evaluate[[]string]("log"))
		p.t.Fatalf("waiting for the state %s: %v; the page says %q, and was %q", want, err, p.text(), states)
	}
	return p.text()
}

// click clicks a button a number of times, as fast as a page can.
func (p *tab) click(word string, times int) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(`//button[text()="` + word + `"]`))
	p.run(`var button = [...document.querySelectorAll("button")].find((b) => b.textContent === "` + word + `")`)
	p.run(fmt.Sprintf("for (let i = 0; i < %d; i++) button.click()", times))
}

func (p *tab) run(script string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[int](script+"; 0")); err != nil {
		p.t.Fatal(err)
	}
}

func contains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("the page says %q; it should say %q", text, want)
	}
}

// buying goes from the countdown to the paid order, and sends each request once however often is clicked.
func buying(t *testing.T, ctx context.Context) {
	opens := time.Now().Add(50 * time.Hour)
	s := openShop(t, plan{total: 3, opens: 50 * time.Hour})
	p := s.visit(ctx, "en")
	contains(t, p.state("soon"), "Opens in 2d 0")
	s.jump(opens, 2*time.Second)
	// As after a sleep, in which its clock stood still. A tab behind another one would stay hidden.
	p.run(`Object.defineProperty(document, "hidden", {value: false}); document.dispatchEvent(new Event("visibilitychange"))`)
	p.state("open")
	p.click("Buy", 9)
	contains(t, p.state("reserved"), "Held for you. Pay within 00:1")
	for _, request := range []string{"POST /token", "POST /reservations"} {
		if n := s.times(request); n != 1 {
			t.Errorf("%s came %d times for 9 clicks", request, n)
		}
	}
	p.click("Pay", 9)
	p.do(chromedp.WaitVisible("#back"), chromedp.Click("#back"))
	contains(t, p.state("confirmed"), "Paid. It is yours.")
	if n := s.times("POST /reservations/…/pay"); n != 1 {
		t.Errorf("pay came %d times for 9 clicks", n)
	}
	p.do(chromedp.Reload())
	p.state("confirmed")
}

// chinese: what people read while they wait, in Chinese.
func chinese(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 1, slow: true})
	p := s.visit(ctx, "zh-Hans")
	contains(t, p.state("open"), "正在热卖")
	p.click("立即抢购", 1)
	contains(t, p.state("pending"), "处理中")
	s.decide()
	contains(t, p.state("reserved"), "已为您保留")
	p.click("放弃", 1)
	contains(t, p.state("cancelled"), "已放弃")
}

// decide decides the next job that comes.
func (s *shop) decide() {
	s.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, err := s.Engine.ConsumeOnce(s.Context(), s.key, "test")
		s.Must(err)
		if n > 0 {
			return
		}
	}
	s.Fatal("nothing was reserved")
}

// lostAnswer: a proxy loses the answers to reserve calls, and the page is loaded again; what was reserved is found, and nothing is
// reserved twice.
func lostAnswer(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5})
	inner := s.http.Config.Handler
	var seen atomic.Bool
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		const passed = "X-Passed" // it comes by here again on its way inside
		if !strings.HasSuffix(r.URL.Path, "/reservations") || seen.Load() || r.Header.Get(passed) != "" {
			return false
		}
		r.Header.Set(passed, "1")
		inner.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusGatewayTimeout)
		return true
	})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("retrying")
	seen.Store(true)
	p.do(chromedp.Reload())
	p.state("reserved")
	if n := s.times("POST /token"); n != 1 {
		t.Errorf("%d tokens were asked for: the purchase had more than one key", n)
	}
	view, err := s.Engine.Audit(t.Context(), s.key)
	s.Must(err)
	if !view.OK() || view.Books.State.Reserved != 1 {
		t.Errorf("%d are reserved, not 1: %s", view.Books.State.Reserved, view)
	}
}

// secondTab: what was begun in one tab is seen in another.
func secondTab(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5})
	p := s.visit(ctx, "en")
	p.state("open")
	other, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	q := s.visit(other, "en")
	q.state("open")
	p.click("Buy", 1)
	p.state("reserved")
	q.state("reserved")
	if n := s.times("POST /reservations"); n != 1 {
		t.Errorf("%d reserve calls; one tab has clicked", n)
	}
}

// busy: the page comes back after the time that it was told, and never before.
func busy(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5})
	var seen atomic.Bool
	var refused, answered atomic.Int64
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/reservations") {
			return false
		}
		if before := refused.Load(); before != 0 && time.Duration(time.Now().UnixNano()-before) < 2*time.Second {
			t.Error("it came back before the 2 s were over that it was told")
		}
		if !seen.Load() {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
			refused.Store(time.Now().UnixNano())
			return true
		}
		answered.CompareAndSwap(0, time.Now().UnixNano())
		return false
	})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	contains(t, p.state("retrying"), "We keep trying")
	seen.Store(true)
	p.state("reserved")
	if gap := time.Duration(answered.Load() - refused.Load()); gap < 2*time.Second {
		t.Errorf("it came back after %s; it was told 2 s", gap)
	}
}

// soldOut: who comes too late is told so, whether units can come back or not, and can buy when they do.
func soldOut(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 1, slow: true})
	p := s.visit(ctx, "en")
	p.state("open")
	token, _, err := s.Engine.Token(t.Context(), engine.TokenRequest{Key: s.key, User: "bert"})
	s.Must(err)
	got, err := s.Engine.Reserve(t.Context(), engine.ReserveRequest{Key: s.key, User: "bert", Token: token, Quantity: 1})
	s.Must(err)
	s.decide()
	p.click("Buy", 1)
	contains(t, p.state("all_held"), "Some may come back.")
	_, err = s.Engine.Cancel(t.Context(), got.RID, "bert")
	s.Must(err)
	p.state("open") // the page sees it by itself
	p.click("Buy", 1)
	s.decide()
	p.state("reserved")
	if n := s.times("POST /token"); n != 1 {
		t.Errorf("%d tokens were asked for; a refusal spends none", n)
	}
	s.sellOut(p)
	other, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	q := &tab{t, other}
	q.do(chromedp.Navigate(s.http.URL + "/shop?lang=en"))
	q.run("localStorage.clear()")
	q.do(chromedp.Reload())
	contains(t, q.state("gone"), "Sold out.")
}

// sellOut pays for the last one.
func (s *shop) sellOut(p *tab) {
	s.Helper()
	p.click("Pay", 1)
	p.do(chromedp.WaitVisible("#back"), chromedp.Click("#back"))
	p.state("confirmed")
}

// notSignedIn: a stranger is told to sign in, and nothing is reserved.
func notSignedIn(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 1})
	p := s.visit(ctx, "en")
	p.state("open")
	p.run(`document.cookie = "user=; Max-Age=0; path=/"`)
	p.click("Buy", 1)
	contains(t, p.state("signin"), "Please sign in first.")
}

// anotherUser: whoever signs in on the same computer neither sees nor loses what the one before had under way.
func anotherUser(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("reserved")
	s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Set("Cookie", "user=carl")
		return false
	})
	p.do(chromedp.Reload())
	contains(t, p.state("unknown"), "Nothing is reserved for you.")
	p.click("Try again", 1)
	p.state("reserved")
	view, err := s.Engine.Audit(t.Context(), s.key)
	s.Must(err)
	if !view.OK() || view.Books.Rows[flashsale.Reserved] != 2 {
		t.Errorf("%d reservations, not one for each of the two: %s", view.Books.Rows[flashsale.Reserved], view)
	}
}

// expired: who does not pay in time is told so.
func expired(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5, slow: true})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("pending")
	s.decide()
	p.state("reserved")
	orders, err := s.Engine.Orders(t.Context(), s.key.Sale, "anna")
	s.Must(err)
	_, err = s.Engine.CancelFor(t.Context(), orders[0].RID, "test", "it was given back by an operator")
	s.Must(err)
	contains(t, p.state("cancelled"), "Given back.")
	p.click("Try again", 1)
	p.state("pending")
}
