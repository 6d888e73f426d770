package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// instanceEnv makes this test program an instance: it holds an instanceConfig.
const instanceEnv = "HEADGATE_SALETEST_INSTANCE"

// The times of the instances: far shorter than a shop would have them.
const (
	leaseTime  = time.Second
	awaitTime  = 300 * time.Millisecond
	openTime   = time.Minute
	tokenBytes = "the secret of order tokens in all instances"
)

// instanceConfig is what an instance is told.
type instanceConfig struct {
	// Redis is where the stock is, nowhere for memory; Master is its name where those are sentinels.
	Redis    []string
	Master   string
	Database string
	Provider string
	// AddrFile is where it writes its address.
	AddrFile string
}

// instance is one process of the shop: the whole engine, and who talks to it.
type instance struct {
	engine *engine.Engine
	crash  crasher
	told   observer
}

// runInstance runs until SIGTERM.
func runInstance(text string) (err error) {
	var cfg instanceConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	orders, err := openOrders(ctx, &cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, orders.Close()) }()
	stock, err := openStock(ctx, &cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stock.Close()) }()
	in := &instance{}
	if in.engine, err = engine.New(in.config(&cfg, stock, orders, log)); err != nil {
		return err
	}
	return in.run(ctx, cfg.AddrFile)
}

func (in *instance) config(cfg *instanceConfig, stock engine.Stock, orders flashsale.Orders, log *slog.Logger) engine.Config {
	keys, _ := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: []byte(tokenBytes)}) // it is long enough
	gate := in.crash.gate()
	return engine.Config{
		Stock: porttest.NewStock(stock, gate), Orders: porttest.NewOrders(orders, gate),
		Payments: porttest.NewPayments(newRemoteProvider(cfg.Provider), gate),
		Keys:     keys, Logger: log, Observer: &in.told,
		Consumers: engine.Consumers{Max: 4, Reclaim: time.Second},
		Jobs: engine.Jobs{
			Lease: leaseTime, Deliver: 100 * time.Millisecond, Relay: 200 * time.Millisecond, Sweep: 200 * time.Millisecond,
			Watch: 100 * time.Millisecond, Poll: 200 * time.Millisecond, Reconcile: 500 * time.Millisecond, Match: 500 * time.Millisecond,
		},
		Paying: engine.Paying{Timeout: time.Second, Age: 500 * time.Millisecond},
	}
}

// openOrders waits for a database that is not there yet.
func openOrders(ctx context.Context, cfg *instanceConfig, log *slog.Logger) (*sqlorders.Orders, error) {
	var orders *sqlorders.Orders
	err := patiently(ctx, func() (err error) {
		orders, err = sqlorders.Open(ctx, sqlorders.Config{URL: cfg.Database, MaxConns: 8, Timeout: 2 * time.Second, Logger: log})
		return err
	})
	return orders, err
}

func openStock(ctx context.Context, cfg *instanceConfig) (stock engine.Stock, err error) {
	if len(cfg.Redis) == 0 {
		return memstock.New(memstock.Config{}), nil
	}
	err = patiently(ctx, func() (err error) {
		stock, err = redisstock.New(ctx, redisstock.Config{Addrs: cfg.Redis, Master: cfg.Master, Timeout: 500 * time.Millisecond})
		return err
	})
	return stock, err
}

// patiently tries again while what is tried cannot be reached.
func patiently(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if flashsale.CodeOf(err) != flashsale.CodeUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// run serves and sells.
func (in *instance) run(ctx context.Context, addrFile string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, in.answer) })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if err := os.WriteFile(addrFile+".new", []byte(l.Addr().String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(addrFile+".new", addrFile); err != nil {
		return err
	}
	err = in.engine.Run(ctx)
	server.Close()
	<-served
	return err
}

// answer is what the instance says.
func (in *instance) answer(ctx context.Context, what string, c *call) (*reply, error) {
	ask := in.desk(what)
	if ask == nil {
		return nil, fmt.Errorf("an instance cannot %q", what)
	}
	r := &reply{}
	err := ask(ctx, c, r)
	r.Code, r.Text = codeOf(err), textOf(err)
	return r, nil
}

// asked is one thing that an instance can be asked.
type asked func(ctx context.Context, c *call, r *reply) error

// desk is where the calls of shoppers, of the provider and of operators come to.
func (in *instance) desk(what string) asked {
	return map[string]asked{
		"token": func(ctx context.Context, c *call, r *reply) (err error) {
			r.Token, _, err = in.engine.Token(ctx, engine.TokenRequest{Key: c.Key, User: c.User})
			return err
		},
		"reserve": func(ctx context.Context, c *call, r *reply) error {
			a, err := in.engine.Reserve(ctx, engine.ReserveRequest{Token: c.Token, Key: c.Key, User: c.User, Quantity: c.Quantity})
			r.Result, r.RetryAfter = a.Result, a.RetryAfter
			return err
		},
		"await": in.await,
		"result": func(ctx context.Context, c *call, r *reply) (err error) {
			r.Result, err = in.engine.Result(ctx, c.Key, c.RID, c.User)
			return err
		},
		"pay": func(ctx context.Context, c *call, r *reply) error {
			a, err := in.engine.Pay(ctx, c.RID, c.User)
			r.Result, r.Intent = a.Result, a.IntentKey
			return err
		},
		"cancel": func(ctx context.Context, c *call, r *reply) (err error) {
			r.Result, err = in.engine.Cancel(ctx, c.RID, c.User)
			return err
		},
		"webhook": func(ctx context.Context, c *call, _ *reply) error { return in.engine.Webhook(ctx, c.Header, c.Body) },
		"create":  func(ctx context.Context, c *call, _ *reply) error { return in.engine.CreateSale(ctx, c.Sale) },
		"open":    in.operate((*engine.Engine).OpenSale),
		"drain":   in.operate((*engine.Engine).DrainSale),
		"close":   in.operate((*engine.Engine).CloseSale),
		"topup": func(ctx context.Context, c *call, _ *reply) error {
			_, err := in.engine.TopUp(ctx, c.Command, c.Units)
			return err
		},
		"quiet": func(ctx context.Context, c *call, r *reply) (err error) {
			_, r.Underway, err = in.engine.Quiescent(ctx, c.Key)
			return err
		},
		"audit": func(ctx context.Context, c *call, r *reply) (err error) {
			r.Report, err = in.engine.Audit(ctx, c.Key)
			return err
		},
		"stats": func(_ context.Context, _ *call, r *reply) error { in.told.count(r); return nil },
		"crash": func(_ context.Context, c *call, _ *reply) error { in.crash.plan(c.Crash); return nil },
	}[what]
}

// await is a long poll: what is pending when it ends is an answer too.
func (in *instance) await(ctx context.Context, c *call, r *reply) (err error) {
	limited, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	r.Result, err = in.engine.Await(limited, c.Key, c.RID, c.User)
	if limited.Err() != nil && r.Result.State == flashsale.Pending {
		return nil
	}
	return err
}

func (in *instance) operate(do func(*engine.Engine, context.Context, engine.Command) ([]flashsale.Operation, error)) asked {
	return func(ctx context.Context, c *call, _ *reply) error {
		_, err := do(in.engine, ctx, c.Command)
		return err
	}
}

// crashPlan says where a process is to end as by a power cut, or to stand still as one that the machine has no time for: before or after
// the call of a port that is the so-manieth from now.
type crashPlan struct {
	// Calls are those that count, such as "orders.Decide"; none: all do.
	Calls  []string
	Skip   int
	Before bool
	Stop   bool // stand still until SIGCONT
}

// crasher ends its own process, or stops it.
type crasher struct {
	mu   sync.Mutex
	next *crashPlan
}

func (k *crasher) plan(p *crashPlan) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = p
}

func (k *crasher) gate() *porttest.Gate {
	return &porttest.Gate{
		Before: func(_ context.Context, name string) error { k.pass(name, true); return nil },
		After:  func(_ context.Context, name string, _ error) error { k.pass(name, false); return nil },
	}
}

func (k *crasher) pass(name string, before bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.next
	if p == nil || p.Before != before || !p.counts(name) {
		return
	}
	if p.Skip--; p.Skip >= 0 {
		return
	}
	k.next = nil
	_, _ = fmt.Fprintf(os.Stderr, "the end at %s, before: %t, for a while: %t\n", name, before, p.Stop)
	if p.Stop {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // with the lock held, so that nothing else goes on either
}

func (p *crashPlan) counts(name string) bool {
	for _, c := range p.Calls {
		if c == name {
			return true
		}
	}
	return len(p.Calls) == 0
}

// observer counts what the test asks about.
type observer struct {
	mu             sync.Mutex
	passes, alarms map[string]int64
}

func (o *observer) Reserved(string, string, time.Duration)                    {}
func (o *observer) Moved(string, string, string, int64)                       {}
func (o *observer) Batch(string, int, int, time.Duration, time.Duration)      {}
func (o *observer) Backlog(string, int64, int64, int64, int64, time.Duration) {}
func (o *observer) Workers(int, string)                                       {}
func (o *observer) Leased(string, bool)                                       {}
func (o *observer) Rebuilt(string, int64, time.Duration, string)              {}
func (o *observer) Job(name string, _ int, _ time.Duration, _ string)         { o.add(&o.passes, name) }
func (o *observer) Alarm(kind, sku string, on bool, value float64, why string) {
	if on {
		o.add(&o.alarms, kind)
		_, _ = fmt.Fprintf(os.Stderr, "alarm %s %s %g: %s\n", kind, sku, value, why)
	}
}

func (o *observer) add(to *map[string]int64, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if *to == nil {
		*to = map[string]int64{}
	}
	(*to)[name]++
}

// count copies the counts into a reply.
func (o *observer) count(r *reply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.Passes, r.Alarms = map[string]int64{}, map[string]int64{}
	for k, v := range o.passes {
		r.Passes[k] = v
	}
	for k, v := range o.alarms {
		r.Alarms[k] = v
	}
}
