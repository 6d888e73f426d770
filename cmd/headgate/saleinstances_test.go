package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
)

// balance is what stands before a fleet: each request goes to any instance, also to one that does not run.
func (f *saleFleet) balance() string {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := url.Parse(f.any().url) // it is one
			r.SetURL(to)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(proxy)
	f.t.Cleanup(server.Close)
	return server.URL
}

// payDesk stands before a payment service, and holds up the call that begins the payment of one reservation.
type payDesk struct {
	url           string
	hold          atomic.Pointer[string]
	entered, left chan struct{}
}

func newPayDesk(t *testing.T) (desk *payDesk, to *atomic.Pointer[url.URL]) {
	t.Helper()
	desk, to = &payDesk{entered: make(chan struct{}), left: make(chan struct{})}, new(atomic.Pointer[url.URL])
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to.Load())
		r.Out.Host = r.In.Host // which is signed
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rid := desk.hold.Load(); rid != nil && r.Method == http.MethodPut && strings.Contains(r.URL.Path, *rid) && desk.hold.CompareAndSwap(rid, nil) {
			close(desk.entered)
			<-desk.left
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	desk.url = server.URL
	return desk, to
}

// TestSaleByAFleet: three processes sell from one Redis and one PostgreSQL. What shoppers and operators do goes to any of them. One is killed while
// it has the jobs, then each is stopped in order and started anew. Everybody gets one final answer, all is sold, nothing is broken.
func TestSaleByAFleet(t *testing.T) {
	t.Parallel()
	stock, limits := testservers.Redis(t, testservers.AppendOnly()), testservers.Redis(t)
	database := testservers.Postgres(t, testservers.DurableData())
	desk, service := newPayDesk(t)
	f := newSaleFleet(t, 3, []string{"HEADGATE_DB=" + database.URL()},
		"--store", "redis://"+limits.Addr(), "--sale-store", "redis://"+stock.Addr(), "--pay", desk.url+"/v1")
	to, err := url.Parse(f.startSimpay(f.balance() + "/_headgate/sales/~/webhook"))
	if err != nil {
		t.Fatal(err)
	}
	service.Store(to)
	f.run()
	const wave, flood = 15, 60
	f.create(5 * wave)
	f.instances[1].operate("POST", "/spring/open", `{"reason": "it is time"}`)

	f.agree()
	var all sync.WaitGroup
	crowd := append(f.crowd("early", wave), f.onlyOnce())
	shopAll(&all, crowd)
	f.killed(f.does("sweep"))
	for n := range f.instances {
		more := f.crowd(fmt.Sprintf("wave%d-", n), wave)
		shopAll(&all, more)
		if n == 0 {
			late := f.stoppedAtWork(n, desk)
			shopAll(&all, late)
			more = append(more, late...)
		} else {
			f.replaced(n)
		}
		crowd = append(crowd, more...)
	}
	last := f.crowd("late", flood)
	shopAll(&all, last)
	all.Wait()
	f.judge(append(crowd, last...), 5*wave)
}

// agree: what one instance was told, the others do.
func (f *saleFleet) agree() {
	f.t.Helper()
	p := &shopper{saleFleet: f, user: "agreed"}
	at := func(i *saleInstance, method, path, body string) *said {
		r, err := f.send(f.ctx, method, i.url+path, p.user, body)
		if err != nil {
			f.t.Fatal(err)
		}
		return r
	}
	a, b, c := f.instances[0], f.instances[1], f.instances[2]
	var token string
	f.until("a token", func() error {
		r := at(a, "POST", mugPath+"/token", "")
		token = r.doc.Token
		return wantStatus(r, http.StatusCreated)
	})
	body := fmt.Sprintf(mugReserveAll, token)
	b.operate("POST", "/spring/pause", `{"reason": "a look"}`)
	for _, one := range f.instances { // at once: it is the stock that refuses
		if r := at(one, "POST", mugReserve, body); r.status != http.StatusConflict || r.doc.Code != "not_open" {
			f.t.Errorf("%s sells what another has paused: %d %s", one.url, r.status, r.text)
		}
		f.until("it is shown as paused", func() error {
			if r := at(one, "GET", "/_headgate/sales/spring", ""); !strings.Contains(r.text, `"status":"paused"`) {
				return fmt.Errorf("%d %s", r.status, r.text)
			}
			return nil
		})
	}
	c.operate("POST", "/spring/resume", `{"reason": "all is well"}`)
	a.operate("POST", "/spring/rate", `{"rate": 500, "reason": "as it can"}`)
	for _, one := range f.instances {
		f.until("the rate is known", func() error {
			if r := one.operate("GET", "/spring", ""); !strings.Contains(r.text, `"rate":500`) {
				return fmt.Errorf("%s", r.text)
			}
			return nil
		})
	}
	var path string
	f.until("it is sold again", func() error { // what was just refused may be refused from memory for a moment
		r := at(b, "POST", mugReserve, body)
		path = mugReserve + "/" + r.doc.RID
		if r.status/100 == 2 {
			return nil
		}
		return fmt.Errorf("%d %s", r.status, r.text)
	})
	f.until("it is reserved", func() error {
		r := at(c, "GET", path, "")
		if r.doc.State != "reserved" {
			return fmt.Errorf("%d %s", r.status, r.text)
		}
		return nil
	})
	if r := at(a, "POST", path+"/cancel", ""); r.status != http.StatusOK {
		f.t.Errorf("a cancel elsewhere: %d %s", r.status, r.text)
	}
}

func wantStatus(r *said, want int) error {
	if r.status != want {
		return fmt.Errorf("%d %s", r.status, r.text)
	}
	return nil
}

// reserved is somebody who has a unit, and has not paid.
func (f *saleFleet) reserved(user string) *shopper {
	f.t.Helper()
	p := &shopper{saleFleet: f, user: user}
	f.until(user+" has a unit", func() error {
		for p.rid == "" && p.final == "" && f.ctx.Err() == nil {
			p.step()
		}
		r := p.ask("GET", mugReserve+"/"+p.rid, "")
		if r == nil || r.doc.State != "reserved" {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	return p
}

// onlyOnce: a ticket from one opens a stream at another, and none at a third any more. It returns whose it was.
func (f *saleFleet) onlyOnce() *shopper {
	f.t.Helper()
	p := f.reserved("ticket")
	path := mugReserve + "/" + p.rid
	r := p.ask("POST", path+"/ticket", "")
	if r == nil || r.status != http.StatusCreated {
		f.t.Fatalf("a ticket: %+v", r)
	}
	events := f.open(f.instances[1], path+"/events?ticket="+r.doc.Ticket)
	if events == nil {
		f.t.Fatal("a good ticket opens nothing")
	}
	defer events.Close()
	if state := events.next(); state != "reserved" {
		f.t.Errorf("the stream begins with %q", state)
	}
	for _, one := range f.instances {
		r, err := f.send(f.ctx, "GET", one.url+path+"/events?ticket="+r.doc.Ticket, "somebody", "")
		if err != nil || r.status != http.StatusForbidden || r.doc.Code != "invalid_ticket" {
			f.t.Errorf("the ticket is used again at %s: %+v, %v", one.url, r, err)
		}
	}
	return p
}

// killed kills one, sees others take its jobs over, and starts it again.
func (f *saleFleet) killed(one *saleInstance) {
	f.t.Helper()
	one.kill()
	for _, job := range []string{"sweep", "deliver", "poll", "watch", "reconcile"} {
		if other := f.does(job); other == one {
			f.t.Errorf("who was killed does %s", job)
		}
	}
	one.run()
}

// stoppedAtWork stops one in order while it has a stream open and a payment under way: the stream ends, so that its client goes on elsewhere, and
// the call is answered. It returns whose they were.
func (f *saleFleet) stoppedAtWork(n int, desk *payDesk) []*shopper {
	f.t.Helper()
	one := f.instances[n]
	p := f.reserved("stream")
	path := mugReserve + "/" + p.rid
	r := p.ask("POST", path+"/ticket", "")
	if r == nil || r.status != http.StatusCreated {
		f.t.Fatalf("a ticket: %+v", r)
	}
	events := f.open(one, path+"/events?ticket="+r.doc.Ticket)
	if events == nil {
		f.t.Fatal("there is no stream")
	}
	defer events.Close()
	_ = events.next()
	payer := f.reserved("payer")
	paid := make(chan *said, 1)
	desk.hold.Store(&payer.rid)
	go func() {
		r, err := f.send(f.ctx, "POST", one.url+mugReserve+"/"+payer.rid+"/pay", payer.user, "")
		if err != nil {
			f.t.Errorf("a payment that was under way: %v", err)
		}
		paid <- r
	}()
	<-desk.entered
	one.terminate()
	if state := events.next(); state != "" || events.lines.Err() != nil {
		f.t.Errorf("the stream goes on with %q, or was cut: %v", state, events.lines.Err())
	}
	close(desk.left)
	if r := <-paid; r == nil || r.status != http.StatusOK || r.doc.URL == "" {
		f.t.Errorf("a payment that was under way: %+v", r)
	}
	one.awaitEnd()
	one.run()
	return []*shopper{p, payer}
}

// replaced is what a rolling restart does to one.
func (f *saleFleet) replaced(n int) {
	f.t.Helper()
	f.instances[n].terminate()
	f.instances[n].awaitEnd()
	f.instances[n].run()
}
