package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/internal/testservers"
)

// patience bounds every wait for something that comes by itself, on machines under load. A pending reservation whose job is lost is
// refused after flashsale.PendingFor, which is longer: no fault here may leave one.
const patience = 60 * time.Second

// What is sold.
const (
	firstUnits = 150
	lowStock   = 60 // below which the stock is topped up, so that the sale lasts as long as its faults
	moreUnits  = 80
	perUser    = 2
	unitPrice  = 1999
	saleRate   = 250
)

// stores are where a sale lies.
type stores struct {
	redis    []string
	master   string
	database string
}

// sale is one sale, the processes that run it, and its shoppers.
type sale struct {
	t        *testing.T
	key      flashsale.Key
	stores   stores
	provider *simpay.Provider
	payURL   string
	client   *http.Client
	crowd    *crowd
	slots    []*slot
	total    int64

	mu  sync.Mutex
	rng *rand.Rand
}

// slot is the place of a process that is started again when it has ended.
type slot struct {
	number  int
	process *testservers.Process
	addr    atomic.Pointer[string] // nil while nobody is there
	file    string
}

// openSale starts so many instances and opens a sale on them.
func openSale(t *testing.T, at stores, instances int) *sale {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	s := &sale{t: t, key: flashsale.Key{Sale: "eleven", SKU: "phone"}, stores: at, total: firstUnits, rng: rand.New(rand.NewPCG(seed, 1))}
	s.client = newClient(2 * time.Second)
	s.provider = simpay.New(simpay.Config{
		Secrets: [][]byte{[]byte(webhookSecret)}, Deliver: s.webhook, RetryAfter: 100 * time.Millisecond,
		Rand: rand.New(rand.NewPCG(seed, 2)), Behaviour: badDay(),
	})
	s.payURL = serveProvider(t, s.provider)
	t.Cleanup(s.client.CloseIdleConnections)
	for i := range instances {
		s.slots = append(s.slots, &slot{number: i})
	}
	s.start(s.slots...)
	s.must("create", &call{Sale: s.plan()})
	s.must("open", s.command("open"))
	s.crowd = newCrowd(s, seed)
	return s
}

// badDay is a provider whose network and whose shoppers misbehave.
func badDay() simpay.Behaviour {
	ms := time.Millisecond
	return simpay.Behaviour{
		VoidLater: 0.3, VoidTime: simpay.Range{Min: 20 * ms, Max: 400 * ms}, VoidTooLate: 0.3, Undone: 0.3,
		FailBefore: 0.02, FailAfter: 0.04,
		Webhook: simpay.Range{Max: 30 * ms}, LateBy: 300 * ms, Lost: 0.15, Twice: 0.15, Late: 0.1, Reordered: 0.1,
	}
}

func (s *sale) plan() *flashsale.Sale {
	now := time.Now()
	return &flashsale.Sale{
		ID: s.key.Sale, Title: "A sale in bad times", Currency: "CNY", OpensAt: now.Add(-time.Minute), ClosesAt: now.Add(time.Hour),
		Hold: 2 * time.Second, PayTime: 2 * time.Second, Grace: 200 * time.Millisecond, Rate: saleRate,
		SKUs: []flashsale.SKU{{ID: s.key.SKU, Title: "A phone", Total: firstUnits, PurchaseLimit: perUser, Price: unitPrice}},
	}
}

func (s *sale) command(id string) *call {
	return &call{Command: engine.Command{ID: id, Sale: s.key.Sale, SKU: s.key.SKU, Reason: "a test", By: "the test"}}
}

// draw returns a number from 0 to n−1.
func (s *sale) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

// start starts processes in slots where there is none, and waits until they serve.
func (s *sale) start(slots ...*slot) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, x := range slots {
		dir := s.t.TempDir()
		x.file = filepath.Join(dir, "address")
		config, err := json.Marshal(instanceConfig{
			Redis: s.stores.redis, Master: s.stores.master, Database: s.stores.database, Provider: s.payURL, AddrFile: x.file,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		x.process = testservers.Start(s.t, testservers.Command{Path: self, Dir: dir, Env: []string{instanceEnv + "=" + string(config)}})
	}
	for _, x := range slots {
		s.await("the process serves", func() error {
			if status, ended := x.process.Exited(); ended {
				s.t.Fatalf("instance %d has ended: %s\n%s", x.number, status, x.process.LogTail())
			}
			addr, err := os.ReadFile(x.file)
			if err == nil {
				text := string(addr)
				x.addr.Store(&text)
			}
			return err
		})
	}
}

// kill ends processes by SIGKILL, and leaves their slots empty.
func (s *sale) kill(slots ...*slot) {
	for _, x := range slots {
		x.process.Kill()
		x.addr.Store(nil)
	}
}

// await waits until a condition holds.
func (s *sale) await(what string, condition func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := testservers.Poll(ctx, condition); err != nil {
		s.t.Fatalf("never came true: %s: %v", what, err)
	}
}

// errNobody tells that no instance is there.
var errNobody = errors.New("no instance is there")

// anyone draws one of the instances that are there.
func (s *sale) anyone() (*slot, error) {
	first := s.draw(len(s.slots))
	for i := range s.slots {
		if x := s.slots[(first+i)%len(s.slots)]; x.addr.Load() != nil {
			return x, nil
		}
	}
	return nil, errNobody
}

// ask asks one instance.
func (s *sale) ask(ctx context.Context, x *slot, what string, c *call) (*reply, error) {
	addr := x.addr.Load()
	if addr == nil {
		return nil, errNobody
	}
	var r reply
	if err := post(ctx, s.client, "http://"+*addr+"/"+what, c, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// askAnyone asks one of the instances.
func (s *sale) askAnyone(ctx context.Context, what string, c *call) (*reply, error) {
	x, err := s.anyone()
	if err != nil {
		return nil, err
	}
	return s.ask(ctx, x, what, c)
}

// must asks until there is an answer that is no error.
func (s *sale) must(what string, c *call) *reply {
	s.t.Helper()
	var r *reply
	s.await(what, func() (err error) {
		if r, err = s.askAnyone(context.Background(), what, c); err != nil {
			return err
		}
		if err := r.err(); err != nil && !r.again() && r.Code != flashsale.CodeInvalidState {
			s.t.Fatalf("%s: %v", what, err)
		}
		return r.err()
	})
	return r
}

// webhook is how the provider reaches the shop.
func (s *sale) webhook(ctx context.Context, header http.Header, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	r, err := s.askAnyone(ctx, "webhook", &call{Header: header, Body: body})
	if err != nil {
		return err
	}
	return r.err()
}

// stockUp tops the stock up if it runs low, so that there is a sale to disturb.
func (s *sale) stockUp() {
	s.t.Helper()
	if s.must("audit", &call{Key: s.key}).Report.Books.State.Available() >= lowStock {
		return
	}
	c := s.command(fmt.Sprintf("top-up-%d", s.total))
	c.Units = moreUnits
	s.must("topup", c)
	s.total += moreUnits
}

// underWay waits until shoppers have had so many more answers.
func (s *sale) underWay(answers int) {
	s.t.Helper()
	from := s.crowd.answers.Load()
	s.await(fmt.Sprintf("%d more answers", answers), func() error {
		if n := s.crowd.answers.Load() - from; n < int64(answers) {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
}

// goesOn waits until units are reserved and paid that were not before.
func (s *sale) goesOn() {
	s.t.Helper()
	reserved, paid := s.crowd.reserved.Load(), s.crowd.paid.Load()
	s.await("the sale goes on", func() error {
		if r, p := s.crowd.reserved.Load()-reserved, s.crowd.paid.Load()-paid; r < 5 || p < 3 {
			return fmt.Errorf("%d reserved and %d paid since", r, p)
		}
		return nil
	})
}

// passes returns how often an instance has done each job.
func (s *sale) passes(x *slot) map[string]int64 {
	s.t.Helper()
	var r *reply
	s.await("the instance answers", func() (err error) {
		r, err = s.ask(context.Background(), x, "stats", &call{})
		return err
	})
	return r.Passes
}

// jobs are those that one of all instances does.
func jobs() []string {
	return []string{"deliver", "relay", "sweep", "watch", "reconcile", "poll", "match"}
}

// holder finds the instance that does a job.
func (s *sale) holder(job string) (x *slot) {
	s.t.Helper()
	before := make([]map[string]int64, len(s.slots))
	for i := range s.slots {
		before[i] = s.passes(s.slots[i])
	}
	s.await("somebody does the job "+job, func() error {
		for i := range s.slots {
			if s.passes(s.slots[i])[job] > before[i][job] {
				x = s.slots[i]
				return nil
			}
		}
		return errors.New("nobody does")
	})
	return x
}

// takesOver waits until an instance does every job there is, which it can only once the leases of another one are over.
func (s *sale) takesOver(x *slot) {
	s.t.Helper()
	before, began := s.passes(x), time.Now()
	s.await("the survivor takes over", func() error {
		now := s.passes(x)
		for _, job := range jobs() {
			if now[job] == before[job] {
				return fmt.Errorf("nobody does the job %s", job)
			}
		}
		return nil
	})
	// Some seconds are the promise: a lease, or what the database gives a transaction that stands still. The rest of the bound is for
	// machines under load.
	if took := time.Since(began); took > 20*leaseTime {
		s.t.Errorf("a death was noticed after %s; a lease lasts %s", took, leaseTime)
	}
}

// settle lets shoppers hold still until nothing is under way, and audits the sale.
func (s *sale) settle() *engine.AuditReport {
	s.t.Helper()
	s.crowd.hush.Lock()
	defer s.crowd.hush.Unlock()
	return s.audit(func(*engine.AuditReport) error { return nil })
}

// audit waits until nothing is under way and a condition holds, and all invariants must.
func (s *sale) audit(condition func(r *engine.AuditReport) error) *engine.AuditReport {
	s.t.Helper()
	var r *engine.AuditReport
	s.await("nothing is under way", func() error {
		a, err := s.askAnyone(context.Background(), "audit", &call{Key: s.key})
		if err == nil {
			err = a.err()
		}
		if err != nil {
			return err
		}
		if r = a.Report; !r.OK() {
			s.t.Fatalf("%s", r)
		}
		if r.UnderWay != "" {
			return errors.New(r.UnderWay)
		}
		return condition(r)
	})
	return r
}

// epoch is that of the sale's stock.
func (s *sale) epoch() int64 {
	s.t.Helper()
	return s.must("audit", &call{Key: s.key}).Report.Books.State.Epoch
}

// reloaded waits until the stock was loaded anew since an epoch.
func (s *sale) reloaded(since int64) {
	s.t.Helper()
	s.await("the loss was noticed, and the stock loaded anew", func() error {
		r, err := s.askAnyone(context.Background(), "audit", &call{Key: s.key})
		if err == nil {
			err = r.err()
		}
		if err != nil {
			return err
		}
		if b := &r.Report.Books.State; b.Epoch <= since || b.Rebuilding {
			return fmt.Errorf("epoch %d, rebuilding: %t", b.Epoch, b.Rebuilding)
		}
		return nil
	})
}
