package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/demo/redisserver"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// DefaultInstances is how many instances share the store by default.
const DefaultInstances = 3

// Config says what to run. Store and Server have no default.
type Config struct {
	// Demo is the demo; its Decider is filled in, and its Duration must be within the bounds of this package.
	Demo demo.Config
	// Store is how to reach Server.
	Store app.StoreConfig
	// Name is what the store is called.
	Name string
	// Server is the Redis that is made to fail. It is not closed.
	Server *redisserver.Server
	// Instances is how many gateways share the store, behind one address; by default DefaultInstances.
	Instances int
}

// Check reports what is out of range.
func (c Config) Check() error {
	d := c.Demo.WithDefaults()
	if d.Duration < MinDuration || d.Duration > MaxDuration {
		return fmt.Errorf("duration: %s is outside %s to %s, which is what the faults take and the referee keeps", d.Duration, MinDuration, MaxDuration)
	}
	return d.Check()
}

// Run lets the crowd come while the store is made to fail, and returns how it went; what the referee found is in its Chaos.
func Run(ctx context.Context, cfg Config) (*demo.Summary, error) {
	if cfg.Instances <= 0 {
		cfg.Instances = DefaultInstances
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	sum, err := r.run(ctx)
	return sum, errors.Join(err, r.close())
}

// running is a demo with its instances.
type running struct {
	cfg     Config
	judge   *judge
	seen    *observer
	guards  []*app.Guard
	closers []func() error
}

func prepare(ctx context.Context, cfg Config) (*running, error) {
	r := &running{cfg: cfg}
	if err := r.build(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *running) build(ctx context.Context) error {
	p, err := demo.Policy()
	if err != nil {
		return err
	}
	rules, err := newRulebook(p)
	if err != nil {
		return err
	}
	r.judge = &judge{rules: rules}
	for range r.cfg.Instances {
		store, err := app.OpenStore(ctx, r.cfg.Store)
		if err != nil {
			return err
		}
		r.closers = append(r.closers, store.Close)
		store.Name = r.cfg.Name
		store.Limiter = tap{store.Limiter}
		guard, err := app.NewGuard(p, app.GuardConfig{Store: store, Log: r.cfg.Store.Log})
		if err != nil {
			return err
		}
		r.closers = append(r.closers, guard.Close)
		r.guards = append(r.guards, guard)
		r.judge.instances = append(r.judge.instances, httpverdict.Decider(guard))
	}
	return r.settle(ctx)
}

// How long the instances may take to know of each other, and how often that is looked at.
const (
	settleWithin = 10 * time.Second
	settleEvery  = 20 * time.Millisecond
)

// settle waits until every instance knows how many share the store: before, it could not divide the limits by them.
func (r *running) settle(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for _, g := range r.guards {
		for {
			live, _ := g.Instances()
			if live == len(r.guards) {
				break
			}
			select {
			case <-within.Done():
				return fmt.Errorf("chaos: an instance counts %d that share the store, and there are %d: %w", live, len(r.guards), within.Err())
			case <-tick.C:
			}
		}
	}
	return nil
}

// close gives the instances back, the last first.
func (r *running) close() error {
	var all error
	for i := len(r.closers) - 1; i >= 0; i-- {
		all = errors.Join(all, r.closers[i]())
	}
	return all
}

// run runs the demo and the script beside each other. A script that fails ends the demo.
func (r *running) run(ctx context.Context) (*demo.Summary, error) {
	show, end := context.WithCancel(ctx)
	defer end()
	r.seen = newObserver(len(r.guards))
	r.judge.seen = r.seen
	d := r.cfg.Demo.WithDefaults()
	d.Decider, d.Policy, d.Store = r.judge, demo.PolicyName, r.cfg.Name
	if watch := d.Watch; watch != nil {
		d.Watch = func(s demo.Snapshot) {
			s.Faults = r.seen.now()
			watch(s)
		}
	}
	played, scriptOver := context.WithCancel(show)
	defer scriptOver()
	var failed error
	var hand sync.WaitGroup
	hand.Go(func() {
		// Those who are still waiting for an answer when the demo's time is over find the store alive.
		if failed = play(played, script(d.Duration), r.cfg.Server, r.seen); failed != nil {
			end()
		}
	})
	sum, err := demo.Run(show, d)
	scriptOver()
	hand.Wait()
	if err := errors.Join(failed, err); err != nil {
		return nil, err
	}
	sum.Chaos, err = r.report()
	return sum, err
}

// report is what was seen and what the referee finds.
func (r *running) report() (*demo.FaultSummary, error) {
	entries, err := r.judge.book.Entries()
	if err != nil {
		return nil, err
	}
	o := r.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	t, err := count(entries, len(r.guards), o.dead)
	if err != nil {
		return nil, err
	}
	return &demo.FaultSummary{
		Kept:      t.withData.Over == 0 && t.without.BoundKept && t.after.BoundKept,
		Instances: len(r.guards), WithData: t.withData, WithoutStore: t.without, AfterEmptyRestart: t.after,
		Faults: o.faultsSeen(), Events: o.events, FellToOnError: o.fell, BreakerOpen: o.unasked,
		LongestDecisionMS: ms(o.longest), Undated: r.judge.undated.Load(),
	}, nil
}

var _ store = (*redisserver.Server)(nil)
