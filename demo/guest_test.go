package demo

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestGuest: a person buys among the crowd, in a real browser: signs in, waits for the hour, presses the button, pays, and has it.
func TestGuest(t *testing.T) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testservers.Need(t, "chromium")), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute), chromedp.UserDataDir(t.TempDir()))
	browser, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	browser, cancel = chromedp.NewContext(browser)
	defer cancel()
	defer func() { _ = chromedp.Cancel(browser) }() // waits for its end
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	show, end := context.WithCancel(t.Context())
	defer end()
	url := make(chan string, 1)
	type outcome struct {
		sum *Summary
		err error
	}
	over := make(chan outcome, 1)
	go func() {
		sum, err := Run(show, Config{
			Decider: guard(t), Duration: time.Hour, Shoppers: 10, Bots: 2, Stock: 50, Every: 50 * time.Millisecond,
			replan: func(p *plan) { p.opens = time.Now().Add(3 * time.Second) },
			Watch: func(s Snapshot) {
				select {
				case url <- s.Gateway:
				default:
				}
			},
		})
		over <- outcome{sum, err}
	}()
	buyAsGuest(t, browser, <-url)
	end()
	got := <-over
	if got.err != nil {
		t.Fatal(got.err)
	}
	if !got.sum.Invariants.OK || got.sum.Sale.Sold == 0 {
		t.Errorf("%+v, %+v", got.sum.Sale, got.sum.Invariants)
	}
}

func buyAsGuest(t *testing.T, ctx context.Context, url string) {
	t.Helper()
	browser := ctx
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	const box = `[data-headgate-sale]`
	state := func(name string) chromedp.Action[chromedp.Void] {
		return chromedp.WaitReady(box + `[data-state="` + name + `"]`)
	}
	for _, step := range []struct {
		what string
		do   []chromedp.Action[chromedp.Void]
	}{
		{"front", []chromedp.Action[chromedp.Void]{chromedp.Navigate(url + "/?lang=zh"), chromedp.WaitReady(`html[lang="zh"] form[action="/guest?lang=zh"]`)}},
		{"signed in", []chromedp.Action[chromedp.Void]{chromedp.Click(`form[action="/guest?lang=zh"] button`), chromedp.WaitReady(`html[lang="zh"] form[action="/leave?lang=zh"]`)}},
		{"open", []chromedp.Action[chromedp.Void]{chromedp.Navigate(url + "/?lang=en"), state("open")}},
		{"held", []chromedp.Action[chromedp.Void]{chromedp.Click(box + ` p + button`), state("reserved")}},
		{"bank", []chromedp.Action[chromedp.Void]{chromedp.Click(box + ` p + button`), chromedp.WaitReady(`button[value="captured"]`)}},
		{"paid there", []chromedp.Action[chromedp.Void]{chromedp.Click(`button[value="captured"]`), chromedp.WaitNotPresent(`button[value="captured"]`)}},
		{"paid here", []chromedp.Action[chromedp.Void]{chromedp.Click(`a[href="/"]`), state("confirmed")}},
	} {
		if err := chromedp.Do(ctx, step.do...); err != nil {
			text, _ := chromedp.Run(browser, chromedp.Evaluate[string]("document.body.innerText"))
			t.Fatalf("%s: %v; the page says %q", step.what, err, text)
		}
		shoot(t, ctx, step.what)
	}
}

// shoot keeps a picture of the page where DEMO_PICTURES names a folder.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("DEMO_PICTURES")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+strings.ReplaceAll(name, " ", "-")+".png", picture, 0o600); err != nil {
		t.Fatal(err)
	}
}
