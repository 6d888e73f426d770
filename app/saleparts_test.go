package app

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

func TestParseSaleKeys(t *testing.T) {
	t.Parallel()
	const raw = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	for text, want := range map[string]string{
		"": "", "k1:" + raw: "k1", "k1:" + raw + "=\n": "k1", " k2:" + raw + ", k1:" + raw + "=": "k2,k1", "k1:" + raw + "\nk2:" + raw: "k1,k2", ",,": "",
		raw: "key 1 is not", "k1:" + raw + ",k2": "key 2 is not", "k1:" + raw + ",k1:" + raw: "the id of key 2", "k!:" + raw: "the id of key 1",
		"k1:c2hvcnQ": "key k1 has 5 bytes", ":" + raw: "the id of key 1", "k1:" + strings.Repeat("!", 44): "key 1 is not",
		strings.Repeat("k:"+raw+",", 9): "9 keys; give 1 to 8",
	} {
		keys, err := parseSaleKeys(text)
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		switch {
		case err != nil && (!strings.Contains(err.Error(), want) || want == "" || strings.Contains(err.Error(), raw)):
			t.Errorf("%q: %v, want %q", text, err, want)
		case err == nil && strings.Join(ids, ",") != want:
			t.Errorf("%q: %v, want %q", text, ids, want)
		}
	}
}

func FuzzParseSaleKeys(f *testing.F) {
	f.Add("k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	f.Add("k1:,k2:x\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseSaleKeys(text)
		if err == nil && len(keys) > 0 {
			if _, err := flashsale.NewTokenKeys(keys...); err != nil {
				t.Errorf("%q: keys that are none: %v", text, err)
			}
		}
	})
}

// TestKeptSaleKeys: keys are made once, for this user alone, and found again.
func TestKeptSaleKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sale.db.keys")
	made, err := keptSaleKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := keptSaleKeys(file)
	if err != nil || len(kept) != 1 || !bytes.Equal(kept[0].Secret, made[0].Secret) || len(kept[0].Secret) != flashsale.MinKeyBytes {
		t.Errorf("kept %+v, %v; made %+v", kept, err, made)
	}
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	link := file + ".link"
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "nonsense": "hunter2", "long": strings.Repeat("x", 5000), "link": ""} {
		at := link
		if name != "link" {
			at = file + "." + name
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if keys, err := keptSaleKeys(at); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
	}
}

// TestSaleAddresses: what can be shown of an address has no password in it.
func TestSaleAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sqlite:sale.db": "sqlite:sale.db", "postgres://u:hunter2@h:1/d?sslmode=disable": "postgres://u@h:1/d", "mysql://h/d": "mysql://h/d",
		"postgres://u:hunter2%@h/d": "postgres://…", "postgres:u:hunter2": "postgres://…",
	} {
		if got := (&SaleConfig{DB: text}).shownDB(); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"https://k:hunter2@pay.example/v1?s=hunter2": "https://pay.example", PaySimulated: PaySimulated} {
		if got := (&SaleConfig{Pay: text}).shownPay(); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "", "nats://h:4222": "", "nats://u:hunter2@h:1,g:2": "", "tls://h:1": "", "kafka://h:1,g:2/topic": "",
		"nats://h": "without host and port", "nats://h:1/x": "has a path", "nats://:1": "without host", "kafka://h:1": "is not kafka://",
		"kafka://u:hunter2@h:1/t": "is not kafka://", "redis://h:1": "does not begin", "h:1": "does not begin", "nats://h:1,": "without host",
	} {
		err := checkRelay(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if got := shownRelay("nats://u:hunter2@h:1,g:2"); got != "nats://…@h:1,g:2" {
		t.Errorf("shown as %s", got)
	}
	if got := natsServers("tls", "u:p@h:1,g:2"); got != "tls://u:p@h:1,tls://u:p@g:2" {
		t.Errorf("servers %s", got)
	}
	if got := shortened(strings.Repeat("x", 256)); len(got) != 64 || shortened("x") != "x" {
		t.Errorf("a long device is %q", got)
	}
}

// TestPayPages: a person pays once, on a page of this origin.
func TestPayPages(t *testing.T) {
	t.Parallel()
	provider := simpay.New(simpay.Config{URL: PayPath})
	pay, err := provider.Create(t.Context(), &flashsale.Intent{Key: "<r>:1", Amount: 1250, Currency: "EUR", OrderID: "o.<b>"})
	if err != nil {
		t.Fatal(err)
	}
	pages := NewPayPages(provider, "/")
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"GET", pay.URL, "", nil, 200, "<p class=\"amount\">12.50 EUR</p>\n<p>Order o.&lt;b&gt;</p>\n<p>Status: <strong id=\"status\" data-status=\"open\">to be paid</strong>"},
		{"GET", pay.URL, "", []string{"Accept-Language", "zh-CN"}, 200, "模拟支付"},
		{"GET", pay.URL, "", []string{"Accept-Language", "zh-CN"}, 200, "<p class=\"amount\">12.50 EUR</p>\n<p>订单 o.&lt;b&gt;</p>\n<p>状态：<strong id=\"status\" data-status=\"open\">待支付</strong>"},
		{"GET", PayPath + "none", "", nil, 404, "no such payment"},
		{"PUT", pay.URL, "", nil, 405, "open"},
		{"POST", pay.URL, "outcome=stolen", nil, 400, "open"},
		{"POST", pay.URL, "outcome=" + strings.Repeat("x", 5000), nil, 400, "open"},
		{"POST", pay.URL, "outcome=captured", []string{"Sec-Fetch-Site", "cross-site"}, 403, `<strong id="status" data-status="open">to be paid<`},
		{"POST", pay.URL, "outcome=captured", []string{"Origin", "null"}, 403, `<strong id="status" data-status="open">to be paid<`},
		{"POST", PayPath + "none", "outcome=captured", nil, 404, "no such payment"},
		{"POST", pay.URL, "outcome=captured", nil, 200, `data-status="captured">paid<`},
		{"POST", pay.URL, "outcome=failed", nil, 409, `data-status="captured">paid<`},
		{"GET", pay.URL, "", []string{"Accept-Language", "zh-CN"}, 200, "已支付"},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i+1 < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s %.30s: %d %s, want %d %s", c.method, c.path, c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	if r := http.StatusText(payStatus(&flashsale.Error{Code: flashsale.CodeInvalidState})); r != "Conflict" {
		t.Error(r)
	}
}
