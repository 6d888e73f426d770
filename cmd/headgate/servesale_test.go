package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// faultedSale is a sale by the binary on a Redis and a PostgreSQL, all of which are ended while it sells.
type faultedSale struct {
	t          *testing.T
	ctx        context.Context
	env, args  []string
	url, admin string
	log        *os.File
	cmd        *exec.Cmd
	client     http.Client
	sold       atomic.Int64
}

const (
	saleUnits    = 40
	saleShoppers = 120
	saleSecret   = "the-token-of-the-admin-listener"
	salePolicy   = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
rules:
  - {name: sale, match: {paths: ['/_headgate/sales/**']}, limits: [token_bucket 100000/s burst=100000]}
`
)

// freeAddress is one that nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// run starts the binary and waits until it is ready.
func (s *faultedSale) run() {
	s.t.Helper()
	s.cmd = command(context.Background(), s.env, s.args...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if err := testservers.Poll(s.ctx, func() error {
		r, err := s.send(s.ctx, "GET", s.admin+"/readyz", "", "")
		if err == nil && r.status != http.StatusOK {
			err = fmt.Errorf("readyz: %d", r.status)
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends the binary as a machine does that loses its power.
func (s *faultedSale) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// said is an answer.
type said struct {
	status int
	text   string
	doc    struct {
		Token, RID, State, URL, Code, Stock, Reason string
		Orders                                      []struct{ RID, State string }
	}
}

func (s *faultedSale) send(ctx context.Context, method, url, user, body string) (*said, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "outcome=") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if strings.HasPrefix(url, s.admin) {
		req.Header.Set("Authorization", "Bearer "+saleSecret)
	}
	req.Header.Set("X-User-Id", user)
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	r := &said{status: res.StatusCode, text: string(text)}
	_ = json.Unmarshal(text, &r.doc) // a page is none
	return r, nil
}

// shopper is somebody who buys one mug, and does not give up.
type shopper struct {
	*faultedSale
	user, token, rid string
	final            string // "confirmed", or "gone"
}

const mugPath = "/_headgate/sales/spring/skus/mug"

// shop goes on until there is a final answer.
func (p *shopper) shop() {
	for p.final == "" && p.ctx.Err() == nil {
		p.step()
		if p.final == "" {
			select {
			case <-p.ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// step does what comes next. What fails, or is not decided, is tried again.
func (p *shopper) step() {
	switch {
	case p.token == "":
		if r := p.ask("POST", mugPath+"/token", ""); r != nil {
			p.token = r.doc.Token
		}
	case p.rid == "":
		r := p.ask("POST", mugPath+"/reservations", fmt.Sprintf(`{"token": %q, "quantity": 1}`, p.token))
		switch {
		case r == nil:
		case r.status/100 == 2:
			p.rid = r.doc.RID
		case r.doc.Code == "token_expired" || r.doc.Code == "invalid_token":
			p.t.Errorf("%s: the token has not outlived a restart: %s", p.user, r.text)
			p.token = ""
		}
	default:
		p.follow()
	}
}

// ask sends a request; nil is one without an answer. Whoever hears that all is gone need not go on.
func (p *shopper) ask(method, path, body string) *said {
	r, err := p.send(p.ctx, method, p.url+path, p.user, body)
	if err != nil {
		return nil
	}
	if r.doc.Code == "sold_out" && r.doc.Stock == "gone" {
		p.final = "gone"
	}
	return r
}

// follow looks what has become of the reservation, and pays for it.
func (p *shopper) follow() {
	path := mugPath + "/reservations/" + p.rid
	r := p.ask("GET", path, "")
	switch {
	case r == nil:
	case r.status == http.StatusNotFound: // not reserved: try again, with the same token
		p.rid = ""
	case r.doc.State == "reserved", r.doc.State == "confirming":
		if pay := p.ask("POST", path+"/pay", ""); pay != nil && pay.doc.URL != "" {
			p.ask("POST", pay.doc.URL, "outcome=captured")
		}
	case r.doc.State == "confirmed":
		p.final = "confirmed"
		p.sold.Add(1)
	case r.status == http.StatusOK: // nobody is refused who was first, gives back, or is late
		p.t.Errorf("%s: %s", p.user, r.text)
		p.final = r.doc.State
	}
}

// orders are the states of what a shopper has.
func (p *shopper) orders() (states []string) {
	r := p.ask("GET", "/_headgate/sales/spring/orders", "")
	if r == nil || r.status != http.StatusOK {
		p.t.Fatalf("the orders of %s: %+v", p.user, r)
	}
	for _, o := range r.doc.Orders {
		states = append(states, o.State)
	}
	return states
}

// operate makes a call of the admin API, again until it is done.
func (s *faultedSale) operate(method, path, body string) *said {
	s.t.Helper()
	var r *said
	if err := testservers.Poll(s.ctx, func() (err error) {
		if r, err = s.send(s.ctx, method, s.admin+"/sales"+path, "", body); err == nil && r.status/100 != 2 {
			err = fmt.Errorf("%d %s", r.status, r.text)
		}
		return err
	}); err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// TestSaleThroughFaults: the binary is killed and started again during a sale, then Redis, then PostgreSQL. Everybody gets one
// final answer, all is sold, and nothing is broken.
func TestSaleThroughFaults(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t, testservers.AppendOnly(), testservers.Directives("appendfsync always"))
	database := testservers.Postgres(t, testservers.DurableData())
	s := newFaultedSale(t, redis.Addr(), database.URL())
	s.run()
	t.Cleanup(func() { s.kill() })
	s.operate("POST", "", fmt.Sprintf(`{"reason": "spring", "sale": {"id": "spring", "title": "Spring", "currency": "EUR", "opens_at": %q, "closes_at": %q,
		"skus": [{"id": "mug", "title": "Mug", "total": %d, "price": 1250}]}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339), saleUnits))
	s.operate("POST", "/spring/open", `{"reason": "it is time"}`)

	crowd := make([]*shopper, saleShoppers)
	var all sync.WaitGroup
	for i := range crowd {
		crowd[i] = &shopper{faultedSale: s, user: fmt.Sprintf("u%d", i)}
		all.Go(crowd[i].shop)
	}
	for _, fault := range []struct {
		after int64
		do    func() error
	}{
		{saleUnits / 8, func() error { s.kill(); s.run(); return nil }},
		{saleUnits / 3, func() error { redis.Kill(); return redis.Restart(testservers.KeepData) }},
		{saleUnits * 2 / 3, database.Restart},
	} {
		if err := testservers.Poll(s.ctx, func() error {
			if n := s.sold.Load(); n < fault.after {
				return fmt.Errorf("%d are sold", n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := fault.do(); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	s.judge(crowd)
}

func newFaultedSale(t *testing.T, redis, database string) *faultedSale {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(salePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		text, _ := os.ReadFile(log.Name())
		if t.Failed() {
			t.Logf("the log ends:\n%s", bytes.TrimSpace(text[max(0, len(text)-4000):]))
		}
		_ = log.Close()
	})
	listen, admin := freeAddress(t), freeAddress(t)
	return &faultedSale{
		t: t, ctx: ctx, url: "http://" + listen, admin: "http://" + admin, log: log,
		env:  []string{"HEADGATE_ADMIN_TOKEN=" + saleSecret, "HEADGATE_DB=" + database, "HEADGATE_SALE_KEYS=k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
		args: []string{"serve", "--policy", policy, "--listen", listen, "--admin", admin, "--sale", "--sale-store", "redis://" + redis, "--pay", "simulated"},
	}
}

// judge looks at what everybody was told, and at what there is.
func (s *faultedSale) judge(crowd []*shopper) {
	s.t.Helper()
	confirmed := 0
	for _, p := range crowd {
		want := ""
		if p.final == "confirmed" {
			confirmed++
			want = "confirmed"
		} else if p.final != "gone" {
			s.t.Errorf("%s has no final answer: %q", p.user, p.final)
		}
		if got := strings.Join(p.orders(), ","); got != want {
			s.t.Errorf("%s was told %q and has %q", p.user, p.final, got)
		}
	}
	if confirmed != saleUnits {
		s.t.Errorf("%d are sold of %d", confirmed, saleUnits)
	}
	if r := s.operate("GET", "/spring/report", ""); !strings.Contains(r.text, `"ok":true`) || strings.Contains(r.text, `"ok":false`) {
		s.t.Errorf("the report: %s", r.text)
	}
}
