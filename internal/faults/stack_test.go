package faults

import (
	"context"
	"errors"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
)

// document is the policy of every fault, its rules in the order of ruleNames. The first are asked for twice as much as they
// grant, which is divisible by the three instances; the last are for a flood of keys, among which one is denied.
const document = `
version: 1
rules:
  - {name: strict, match: {paths: [/strict]}, limits: [token_bucket 90/s burst=45]}
  - {name: leased, match: {paths: [/leased]}, limits: [token_bucket 90/s burst=45], store: leased}
  - {name: window, match: {paths: [/window]}, limits: [fixed_window 90/1s], store: leased}
  - {name: queue, match: {paths: [/queue]}, limits: [leaky_bucket 45/s capacity=45 max_wait=1s]}
  - {name: turn, match: {paths: [/turn]}, limits: [token_bucket 45/s burst=9], on_deny: {action: wait, max_wait: 1s}}
  - {name: flood-strict, match: {paths: [/flood-strict]}, key: [ip], limits: [fixed_window 5/10s]}
  - {name: flood-leased, match: {paths: [/flood-leased]}, key: [ip], limits: [fixed_window 5/10s], store: leased}
  - {name: flood-local, match: {paths: [/flood-local]}, key: [ip], limits: [fixed_window 5/1h], store: local}
`

// The rules of document.
const (
	strict uint8 = iota
	leased
	window
	queue
	turn
	rules // how many every instance has requests for
)

const (
	floodStrict = rules + iota
	floodLeased
	floodLocal
	allRules
)

func ruleNames() [allRules]string {
	return [allRules]string{"strict", "leased", "window", "queue", "turn", "flood-strict", "flood-leased", "flood-local"}
}

// stack is an instance's parts, put together as headgate serve does: strict rules past the cache of denials, leased ones from
// leases, a breaker for each node of the store, and behind on_error the limits divided by the instances that live.
type stack struct {
	store    *redisstore.Store
	breakers *resilience.Breakers
	fleet    *resilience.Fleet
	memory   *memstore.Store
	leases   *leasestore.Store
	engine   *policy.Engine
}

// stackConfig says where the store is, and who hears of the breaker.
type stackConfig struct {
	Addrs     []string
	Master    string
	Namespace string
	Breaker   resilience.BreakerObserver
}

func newStack(ctx context.Context, cfg stackConfig) (*stack, error) {
	s := &stack{}
	s.breakers = resilience.NewBreakers(resilience.BreakersConfig{
		Probe:    func(ctx context.Context, node string) error { return s.store.Probe(ctx, node) },
		Observer: cfg.Breaker,
	})
	var err error
	s.store, err = redisstore.New(ctx, redisstore.Config{
		Addrs: cfg.Addrs, Master: cfg.Master, Namespace: cfg.Namespace, Observer: ear{s.breakers}, Breaker: s.breakers,
	})
	if err != nil {
		return nil, errors.Join(err, s.breakers.Close())
	}
	s.fleet = resilience.NewFleet(s.store, resilience.FleetConfig{})
	s.memory = memstore.New(memstore.Config{})
	s.leases = leasestore.New(s.store, leasestore.Config{})
	p, err := policy.Parse("policy", []byte(document), policy.ParseConfig{})
	if err == nil {
		denials := leasestore.NewDenyCache(s.store, leasestore.DenyConfig{})
		s.engine, err = policy.NewEngine(p, marked{denials, byStore}, policy.EngineConfig{
			Local: marked{s.memory, byStore}, Leased: marked{s.leases, byStore}, Fallback: marked{resilience.NewShare(s.memory, s.fleet.Live), byFallback},
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stack) close() error {
	return errors.Join(s.leases.Close(), s.fleet.Close(), s.breakers.Close(), s.store.Close(), s.memory.Close())
}

// ear tells the breakers of the store's calls.
type ear struct{ breakers *resilience.Breakers }

func (e ear) Call(node, _ string, _ int, took time.Duration, code headgate.Code) {
	e.breakers.Called(node, took, string(code))
}
func (ear) Failed(headgate.Code, bool) {}
func (ear) UnknownStates(int)          {}
func (ear) NewKey(string)              {}

// abilities is all that a limiter can do.
type abilities interface {
	headgate.Limiter
	headgate.Refunder
	headgate.Slots
	headgate.Resetter
	headgate.Inspector
	headgate.Timed
}

// marked notes, for a request whose context has room for it, who has decided it in the end.
type marked struct {
	abilities
	by uint8
}

type markKey struct{}

func (m marked) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	err := m.abilities.Take(ctx, charges, d)
	if by, ok := ctx.Value(markKey{}).(*uint8); ok && err == nil {
		*by = m.by
	}
	return err
}
