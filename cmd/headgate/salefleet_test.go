package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

const (
	saleSecret   = "the-token-of-the-admin-listener"
	salePayments = "what-the-sale-and-the-payment-service-share"
	saleTokens   = "HEADGATE_SALE_KEYS=k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	salePolicy   = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
rules:
  - {name: sale, match: {paths: ['/_headgate/sales/**']}, limits: [token_bucket 100000/s burst=100000]}
`
)

// saleFleet are processes of the binary that sell from the same stores.
type saleFleet struct {
	t         *testing.T
	ctx       context.Context
	env       []string
	instances []*saleInstance
	client    http.Client
	sold      atomic.Int64
}

// saleInstance is one of them. It has the same addresses after each start.
type saleInstance struct {
	fleet      *saleFleet
	args       []string
	url, admin string
	log        *os.File
	cmd        *exec.Cmd
}

// newSaleFleet prepares n processes, which run when they are told to. Args are beside those that each needs.
func newSaleFleet(t *testing.T, n int, env []string, args ...string) *saleFleet {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(salePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	f := &saleFleet{t: t, ctx: ctx, env: append([]string{"HEADGATE_ADMIN_TOKEN=" + saleSecret, saleTokens, "HEADGATE_PAY_SECRET=" + salePayments}, env...)}
	for i := range n {
		listen, admin := testservers.UnusedAddr(t), testservers.UnusedAddr(t)
		log, err := os.Create(filepath.Join(dir, fmt.Sprintf("log%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		one := &saleInstance{
			fleet: f, url: "http://" + listen, admin: "http://" + admin, log: log,
			args: append([]string{"serve", "--policy", policy, "--listen", listen, "--admin", admin, "--sale"}, args...),
		}
		f.instances = append(f.instances, one)
		t.Cleanup(one.end)
	}
	return f
}

// run starts all that do not run.
func (f *saleFleet) run() {
	f.t.Helper()
	for _, one := range f.instances {
		one.begin()
	}
	for _, one := range f.instances {
		one.awaitReady()
	}
}

func (i *saleInstance) begin() {
	i.fleet.t.Helper()
	i.cmd = command(context.Background(), i.fleet.env, i.args...)
	i.cmd.Stderr = i.log
	if err := i.cmd.Start(); err != nil {
		i.fleet.t.Fatal(err)
	}
}

func (i *saleInstance) awaitReady() {
	i.fleet.t.Helper()
	i.fleet.until("it is ready", func() error {
		r, err := i.fleet.send(i.fleet.ctx, "GET", i.admin+"/readyz", "", "")
		if err == nil && r.status != http.StatusOK {
			err = fmt.Errorf("readyz: %d", r.status)
		}
		return err
	})
}

// run starts it and waits until it is ready.
func (i *saleInstance) run() {
	i.fleet.t.Helper()
	i.begin()
	i.awaitReady()
}

// kill ends it as a machine does that loses its power.
func (i *saleInstance) kill() {
	_ = i.cmd.Process.Kill()
	_ = i.cmd.Wait()
}

// terminate asks it to end.
func (i *saleInstance) terminate() {
	i.fleet.t.Helper()
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		i.fleet.t.Fatal(err)
	}
}

// awaitEnd waits for the end that it was asked for, which must be in order.
func (i *saleInstance) awaitEnd() {
	i.fleet.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- i.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil || !strings.HasSuffix(strings.TrimSpace(i.logged()), "msg=stopped") {
			i.fleet.t.Errorf("it ended with %v; the log: %s", err, tail(i.logged()))
		}
	case <-i.fleet.ctx.Done():
		i.kill()
		i.fleet.t.Fatal("it has not ended")
	}
}

// end gives everything back at the end of a test.
func (i *saleInstance) end() {
	if i.cmd != nil && i.cmd.ProcessState == nil {
		i.kill()
	}
	if i.fleet.t.Failed() {
		i.fleet.t.Logf("the log of %s ends:\n%s", i.url, tail(i.logged()))
	}
	_ = i.log.Close()
}

func (i *saleInstance) logged() string {
	text, _ := os.ReadFile(i.log.Name()) // what cannot be read says nothing
	return string(text)
}

func tail(text string) string {
	return strings.TrimSpace(text[max(0, len(text)-4000):])
}

// metric is the value of a series, "" if there is none.
func (i *saleInstance) metric(series string) string {
	r, err := i.fleet.send(i.fleet.ctx, "GET", i.admin+"/metrics", "", "")
	if err != nil {
		return ""
	}
	if m := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(series) + " (.*)$").FindStringSubmatch(r.text); m != nil {
		return m[1]
	}
	return ""
}

// does waits for the instance that does a job, and returns it.
func (f *saleFleet) does(job string) (leader *saleInstance) {
	f.t.Helper()
	f.until("somebody does "+job, func() error {
		for _, one := range f.instances {
			if one.cmd.ProcessState == nil && one.metric(`headgate_sale_job_leader{job="`+job+`"}`) == "1" {
				leader = one
				return nil
			}
		}
		return errors.New("nobody does")
	})
	return leader
}

// until waits for what must become so.
func (f *saleFleet) until(what string, so func() error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 3*time.Minute)
	defer cancel()
	if err := testservers.Poll(ctx, so); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

// any is an instance, whether it runs or not.
func (f *saleFleet) any() *saleInstance { return f.instances[rand.N(len(f.instances))] }

// said is an answer.
type said struct {
	status int
	text   string
	doc    struct {
		Token, RID, State, URL, Code, Stock, Reason, Ticket, Status string
		Orders                                                      []struct{ RID, State string }
	}
}

func (f *saleFleet) send(ctx context.Context, method, url, user, body string) (*said, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "outcome=") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if user == "" {
		req.Header.Set("Authorization", "Bearer "+saleSecret)
	} else {
		req.Header.Set("X-User-Id", user)
	}
	res, err := f.client.Do(req)
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

// operate makes a call of the admin API at an instance, again until it is done.
func (i *saleInstance) operate(method, path, body string) *said {
	i.fleet.t.Helper()
	var r *said
	i.fleet.until(method+" "+path, func() (err error) {
		if r, err = i.fleet.send(i.fleet.ctx, method, i.admin+"/sales"+path, "", body); err == nil && r.status/100 != 2 {
			err = fmt.Errorf("%d %s", r.status, r.text)
		}
		return err
	})
	return r
}

// create makes the sale of so many mugs, at any instance.
func (f *saleFleet) create(units int) {
	f.t.Helper()
	f.any().operate("POST", "", fmt.Sprintf(`{"reason": "spring", "sale": {"id": "spring", "title": "Spring", "currency": "EUR", "opens_at": %q, "closes_at": %q,
		"skus": [{"id": "mug", "title": "Mug", "total": %d, "price": 1250}]}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339), units))
}

// sale runs a command of headgate sale at an instance; it must be done.
func (i *saleInstance) sale(args ...string) string {
	i.fleet.t.Helper()
	got := runBinary(i.fleet.t, []string{"HEADGATE_ADMIN_TOKEN=" + saleSecret, "HEADGATE_ADMIN_URL=" + i.admin}, append([]string{"sale"}, args...)...)
	if got.code != exitGood {
		i.fleet.t.Fatalf("headgate sale %s: %s", strings.Join(args, " "), got)
	}
	return got.stdout
}

// judge looks at what everybody was told, and at what there is.
func (f *saleFleet) judge(crowd []*shopper, units int) {
	f.t.Helper()
	confirmed := 0
	for _, p := range crowd {
		if p.final == "" {
			f.t.Errorf("%s has no final answer; token %t, rid %q, listens %t", p.user, p.token != "", p.rid, p.listens)
		}
	}
	if f.t.Failed() {
		f.t.FailNow()
	}
	for _, p := range crowd {
		want := ""
		if p.final == "confirmed" {
			confirmed++
			want = "confirmed"
		}
		if got := strings.Join(p.orders(), ","); got != want {
			f.t.Errorf("%s was told %q and has %q", p.user, p.final, got)
		}
	}
	if confirmed != units {
		f.t.Errorf("%d are sold of %d", confirmed, units)
	}
	for _, one := range f.instances {
		if r := one.operate("GET", "/spring/report", ""); !strings.Contains(r.text, `"ok":true`) || strings.Contains(r.text, `"ok":false`) {
			f.t.Errorf("the report: %s", r.text)
		}
	}
}

// startSimpay starts the payment service in a process of its own, and returns the address of its API.
func (f *saleFleet) startSimpay(webhook string, args ...string) string {
	f.t.Helper()
	listen := testservers.UnusedAddr(f.t)
	cmd := command(context.Background(), []string{"HEADGATE_PAY_SECRET=" + salePayments}, append([]string{"simpay", "--listen", listen, "--webhook", webhook}, args...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if f.t.Failed() {
			f.t.Logf("the log of the payment service ends:\n%s", tail(log.String()))
		}
	})
	f.until("the payment service is there", func() error {
		_, err := f.send(f.ctx, "GET", "http://"+listen+"/healthz", "", "")
		return err
	})
	return "http://" + listen
}
