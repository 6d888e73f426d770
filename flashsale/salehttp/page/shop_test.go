package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/flashsale/saletest/salerig"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

const secret = "the secret that signs webhooks"

// shop is a whole sale behind a web server, with a page on which it can be bought, and the page of the payment provider.
type shop struct {
	*salerig.Rig
	http *httptest.Server
	key  flashsale.Key
	// ahead is how far the shop's clock is ahead of the browser's.
	ahead atomic.Int64

	// before is asked before each request of the sale; if it returns true it has answered it.
	before atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]

	mu sync.Mutex
	// asked are the requests of the sale, as "POST /token" and the like.
	asked []string
}

type plan struct {
	total int64
	opens time.Duration // from now
	hold  time.Duration
	// slow has nobody decide.
	slow bool
}

func openShop(t *testing.T, p plan) *shop {
	t.Helper()
	s := &shop{key: flashsale.Key{Sale: "autumn", SKU: "teapot"}}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	at := "http://" + s.http.Listener.Addr().String()
	s.Rig = salerig.New(t, salerig.Config{
		Now: s.now, Bank: simpay.Config{Secrets: [][]byte{[]byte(secret)}, URL: at + "/bank?intent=", Deliver: s.webhook},
		Engine: func(cfg *engine.Config) {
			cfg.Paying = engine.Paying{}           // several at a time, as it comes
			cfg.TokenLife = flashsale.MaxTokenLife // or a busy machine would have a page get another one
		},
	})
	s.open(&p)
	h, err := salehttp.New(salehttp.Config{Sales: s.Engine, Identity: byCookie, Keys: s.Keys, Now: s.now})
	s.Must(err)
	s.http.Config.Handler = s.pages(h)
	s.http.Start()
	t.Cleanup(s.http.Close)
	t.Cleanup(func() { _ = h.Close() })
	if !p.slow {
		s.run(s.Engine.Run)
	}
	s.run(s.Bank.Run)
	return s
}

func (s *shop) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// jump sets the shop's clock ahead to so long before a time.
func (s *shop) jump(at time.Time, before time.Duration) {
	s.ahead.Store(int64(time.Until(at) - before))
}

// run runs something until the test ends.
func (s *shop) run(what func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- what(ctx) }()
	s.Cleanup(func() {
		cancel()
		<-done
	})
}

func (s *shop) open(p *plan) {
	s.Helper()
	now := s.now()
	s.Create(&flashsale.Sale{
		ID: s.key.Sale, Title: "Autumn", Currency: "EUR", OpensAt: now.Add(p.opens), ClosesAt: now.Add(100 * time.Hour), Hold: p.hold,
		SKUs: []flashsale.SKU{{ID: s.key.SKU, Title: "Teapot", Total: p.total, PurchaseLimit: 1, Price: 4200}},
	})
	s.Open(s.key.Sale)
}

func (s *shop) webhook(ctx context.Context, header http.Header, body []byte) error {
	return s.Engine.Webhook(ctx, header, body)
}

// byCookie takes a cookie for who somebody is, which only a test may do.
func byCookie(r *http.Request) (salehttp.Shopper, error) {
	c, err := r.Cookie("user")
	if err != nil {
		return salehttp.Shopper{}, err
	}
	return salehttp.Shopper{User: c.Value}, nil
}

func (s *shop) serve(http.ResponseWriter, *http.Request) {} // until the handler is known

func (s *shop) pages(sale http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /shop", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "user", Value: "anna", Path: "/"})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang=%q><title>Shop</title><link rel=icon href=data:,>
<div id=box data-headgate-sale=autumn data-sku=teapot></div>
<script>log = []; addEventListener("headgate", (e) => log.push(e.detail.state))</script>
<script src="/_headgate/sales/~/page.js" defer></script>`, r.URL.Query().Get("lang"))
	})
	mux.HandleFunc("GET /bank", func(w http.ResponseWriter, r *http.Request) {
		_ = s.Bank.Pay(r.URL.Query().Get("intent"), flashsale.PayCaptured) // it is paid already when the page is loaded again
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>Bank</title><a id=back href="/shop?lang=en">Back to the shop</a>`)
	})
	mux.HandleFunc(salehttp.Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if before := s.before.Load(); before != nil && (*before)(w, r) {
			return
		}
		sale.ServeHTTP(w, r)
	})
	return mux
}

func (s *shop) note(r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, salehttp.Prefix+"/autumn")
	path = strings.TrimPrefix(path, "/skus/teapot")
	if parts := strings.Split(path, "/"); len(parts) > 2 { // the name of a reservation differs
		parts[2] = "…"
		path = strings.Join(parts, "/")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+path)
}

// times counts the requests of a kind.
func (s *shop) times(request string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.asked {
		if one == request {
			n++
		}
	}
	return n
}

// intercept answers requests in place of the sale for as long as f returns true for them.
func (s *shop) intercept(f func(w http.ResponseWriter, r *http.Request) bool) { s.before.Store(&f) }
