package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/headgate-io/headgate/flashsale"
)

// temper is what a guest is like.
type temper int

const (
	plain    temper = iota
	hasty           // clicks nine times
	restless        // loads the page anew whenever it says something else
	unlucky         // the first card fails
	giver           // gives back what they got
	tempers
)

// guest is a person with a browser in front of them.
type guest struct {
	sale   *killedSale
	temper temper
	home   string
	ctx    context.Context // of the tab

	mu      sync.Mutex
	user    string
	heard   []string // what the page said, as its events tell
	last    glance
	end     string // the final answer
	again   string // what they are told when they come again
	failed  bool   // a card has
	paid    bool
	pressed time.Time
}

// glance is what a guest sees.
type glance struct {
	// At is where: shop, door (of the shop, not signed in), bank, or elsewhere, as when there is no page.
	At    string `json:"at"`
	State string `json:"state"`
	User  string `json:"user"`
	Text  string `json:"text"`
}

// wish is what a guest does with what they see: the button that they press in a state of the page, and at the bank.
type wish struct {
	Press map[string]string `json:"press"` // main or back, by state
	Times int               `json:"times"`
	Bank  string            `json:"bank"`
}

// Hands looks at what is in the browser, and does what is wished. A page whose script has not come says nothing.
const hands = `((wish) => {
	const at = (where, state = '', user = '') => ({at: where, state, user, text: document.body?.innerText ?? ''});
	const box = document.querySelector('[data-headgate-sale]');
	if (box) {
		const door = document.querySelector('form[action^="/guest"] button');
		if (door) {
			door.click();
			return at('door');
		}
		const seen = at('shop', box.dataset.state, document.querySelector('.who b')?.textContent);
		const [main, back] = box.querySelectorAll('button');
		const button = {main, back}[wish.press?.[seen.state]];
		for (let n = 0; button && !button.hidden && n < wish.times; n++) button.click();
		return seen;
	}
	const status = document.querySelector('#status');
	if (!status) return at('elsewhere', document.readyState);
	const seen = at('bank', status.dataset.status);
	document.querySelector('button[value="' + wish.bank + '"]')?.click();
	return seen;
})`

// saying is what the page's events tell.
type saying struct {
	State  string  `json:"state"`
	Result *result `json:"result"`
	User   string  `json:"user"`
}

func newGuest(s *killedSale, browser context.Context, n int) *guest {
	ctx, cancel := chromedp.NewContext(browser)
	s.t.Cleanup(cancel)
	return &guest{sale: s, temper: temper(n) % tempers, home: s.front.home(n), ctx: ctx}
}

// open opens the tab.
func (g *guest) open() error {
	if err := chromedp.Do(g.ctx, chromedp.ExposeFunc("told", g.hear)); err != nil {
		return err
	}
	_, err := chromedp.Call(g.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `addEventListener("headgate", (e) => told({...e.detail, user: document.querySelector('.who b')?.textContent}))`,
	})
	return err
}

// hear notes what the page has said. Events of before the end of a page can come when the next one is there.
func (g *guest) hear(_ context.Context, said saying) (chromedp.Void, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, said.State)
	if said.Result != nil && said.Result.State == said.State { // else it is the last one before
		g.sale.heard.hear(guestAccount+said.User, said.Result)
	}
	return chromedp.Void{}, nil
}

// was reports whether the page has said something.
func (g *guest) was(state string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.heard {
		if s == state {
			return true
		}
	}
	return false
}

// String implements [fmt.Stringer].
func (g *guest) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Sprintf("%s (%d) is at %s, %q, and was told %s", g.user, g.temper, g.last.At, g.last.State, strings.Join(g.heard, " "))
}

// glances is how often guests look.
const glances = 200 * time.Millisecond

// shop goes on until there is a final answer.
func (g *guest) shop() {
	if err := g.open(); err != nil {
		g.sale.t.Errorf("a tab does not open: %v", err)
		return
	}
	g.visit()
	for g.end == "" && pause(g.sale.ctx, glances) {
		w := g.wish()
		seen := g.look(w)
		if w.Press[seen.State] != "" {
			g.pressed = time.Now()
		}
		g.act(seen)
	}
	g.sale.t.Logf("%.1fs after the beginning %s", time.Since(g.sale.market.start).Seconds(), g)
}

// visit opens the shop, or loads it anew. What comes of it, the next glance tells.
func (g *guest) visit() {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	_ = chromedp.Do(ctx, chromedp.Navigate(g.home))
}

func (g *guest) look(w wish) glance {
	text, _ := json.Marshal(w) // of strings and a number
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[glance](hands+"("+string(text)+")"))
	if err != nil { // between two pages
		return glance{At: "nowhere"}
	}
	return seen
}

// wish is what a guest would do now.
func (g *guest) wish() wish {
	w := wish{Times: 1, Press: map[string]string{}, Bank: "captured"}
	if g.temper == hasty {
		w.Times = 9
	}
	if time.Since(g.pressed) > time.Second { // people are no machines
		w.Press = map[string]string{"open": "main", "all_held": "main", "reserved": "main"}
		if !g.paid {
			w.Press["confirming"] = "main"
		}
	}
	switch {
	case g.temper == giver && w.Press["reserved"] != "":
		w.Press["reserved"] = "back"
	case g.temper == unlucky && !g.failed:
		w.Bank = "failed"
	}
	return w
}

// act does what comes after a glance.
func (g *guest) act(seen glance) {
	g.mu.Lock()
	before := g.last
	g.last = seen
	if seen.User != "" {
		g.user = guestAccount + seen.User
	}
	g.mu.Unlock()
	switch seen.At {
	case "shop":
		g.inShop(seen, before)
	case "bank":
		g.atBank(seen)
	case "elsewhere":
		if seen.State == "complete" { // a page that says that there is no page
			g.visit()
		}
	}
}

func (g *guest) inShop(seen, before glance) {
	switch seen.State {
	case "": // the script has not come, or not yet
		if before.At == "shop" && before.State == "" {
			g.visit()
		}
	case "reserved":
		g.paid = false
	case "confirmed", "cancelled", "gone":
		g.end = seen.State
	case "rejected", "expired", "unknown", "failed", "signin", "missing", "ended", "paused":
		g.sale.t.Errorf("%s is told %q: %s", g, seen.State, seen.Text)
		g.end = seen.State
	}
	if g.temper == restless && g.end == "" && seen.State != before.State && seen.State != "loading" {
		g.visit()
	}
}

// atBank has paid, or failed to, and goes back to the shop.
func (g *guest) atBank(seen glance) {
	switch flashsale.PayStatus(seen.State) {
	case flashsale.PayOpen:
		return
	case flashsale.PayFailed:
		g.failed = true
	case flashsale.PayCaptured:
		g.paid = true
	}
	g.visit()
}

// comeBack looks what the page says when it is loaded anew.
func (g *guest) comeBack() {
	was := g.end
	g.end = ""
	for g.visit(); g.end == "" && pause(g.sale.ctx, glances); {
		g.act(g.look(wish{}))
	}
	g.end, g.again = was, g.end
}

// judge looks whether a guest was told one thing, which is true, and is told it again.
func (g *guest) judge() {
	t, s := g.sale.t, g.sale
	t.Helper()
	want := map[string]struct{ state, again string }{
		"confirmed": {"confirmed", "confirmed"},
		"cancelled": {"cancelled", "gone"}, // what was given back is over, and nothing is left
		"gone":      {"", "gone"},
	}
	is, ok := want[g.end]
	if !ok {
		t.Errorf("%q is no final answer: %s", g.end, g)
	}
	orders, err := s.market.Orders(s.ctx, s.market.key.Sale, g.user)
	s.must(err)
	var states []string
	for i := range orders {
		states = append(states, orders[i].State.String())
	}
	if got := strings.Join(states, ","); got != is.state {
		t.Errorf("%s; SQL has %q", g, got)
	}
	if n := s.front.tokens(g.user); n != 1 {
		t.Errorf("%s; their purchase had %d keys", g, n)
	}
	if g.again != is.again {
		t.Errorf("%s; when they come again they are told %q", g, g.again)
	}
}
