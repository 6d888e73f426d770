package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/referee"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// instanceEnv makes this test program play an instance: it holds an instanceConfig.
const instanceEnv = "HEADGATE_FAULTS_INSTANCE"

// instanceConfig is what an instance is told.
type instanceConfig struct {
	Addrs     []string
	Master    string
	Namespace string
	// File is where it writes its records.
	File string
	// Flood is how many new keys it has in a second, beside its requests.
	Flood int
}

// rate is how many requests of each rule an instance has in a second.
const rate = 60

// underWay is the most requests of an instance that are decided or held at a time.
const underWay = 512

// instance is one process of the fleet, with its requests.
type instance struct {
	stack *stack
	file  *os.File
	turns chan struct{} // a place for each request under way
	calls sync.WaitGroup

	mu   sync.Mutex
	line []byte
	err  error // of writing
}

// runInstance runs until SIGTERM.
func runInstance(config string) error {
	var cfg instanceConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	file, err := os.OpenFile(cfg.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	i := &instance{file: file, turns: make(chan struct{}, underWay)}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	i.stack, err = newStack(ctx, stackConfig{Addrs: cfg.Addrs, Master: cfg.Master, Namespace: cfg.Namespace, Breaker: i})
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if cfg.Flood > 0 {
		i.calls.Go(func() { i.flood(ctx, cfg.Flood) })
	}
	i.calls.Go(func() { i.watchTime(ctx) })
	i.run(ctx)
	leases := i.stack.leases.Stats()
	now := time.Now().UnixMicro()
	i.write(&record{Kind: bye, Began: now, Ended: now, A: heap(), B: int64(leases.Lost)})
	_ = i.stack.close() // with the store away, leases cannot be given back
	return errors.Join(i.err, file.Close())
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first has freed of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// run makes a request of each rule at each tick, whether or not those before are through, as clients do.
func (i *instance) run(ctx context.Context) {
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if n%3 == 0 {
			i.tellState()
		}
		for rule := range rules {
			i.request(rule)
		}
	}
	i.calls.Wait()
}

// heldUp is the least time of being kept from running that is noted.
const heldUp = 30 * time.Millisecond

// watchTime notes when the process was kept from running: what that adds to calls is not the limiter's.
func (i *instance) watchTime(ctx context.Context) {
	const every = 5 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ctx.Err() == nil; last = time.Now() {
		<-tick.C
		if now := time.Now(); now.Sub(last) > heldUp {
			i.write(&record{Kind: held, Began: last.Add(every).UnixMicro(), Ended: now.UnixMicro()})
		}
	}
}

func (i *instance) tellState() {
	r := &record{Kind: state, Began: time.Now().UnixMicro(), A: int64(i.stack.fleet.Live())}
	r.Ended = r.Began
	if i.stack.breakers.Lost() {
		r.By = 1
	}
	i.write(r)
}

// BreakerChanged writes it down.
func (i *instance) BreakerChanged(node string, open bool, why string) {
	r := &record{Kind: breaker, Began: time.Now().UnixMicro()}
	if r.Ended = r.Began; open {
		r.By = 1
	}
	i.write(r)
	fmt.Println(time.Now().Format(time.StampMicro), node, "open:", open, why)
}

func (i *instance) request(rule uint8) {
	select {
	case i.turns <- struct{}{}:
	default:
		now := time.Now().UnixMicro()
		i.write(&record{Kind: skipped, Rule: rule, Began: now, Ended: now})
		return
	}
	i.calls.Go(func() {
		defer func() { <-i.turns }()
		i.decide(rule)
	})
}

// decide judges one request, holds it if it is to be held, and ends it.
func (i *instance) decide(rule uint8) {
	r := &record{Rule: rule}
	ctx := context.WithValue(context.Background(), markKey{}, &r.By)
	began := time.Now()
	v := i.stack.engine.Decide(ctx, request(rule, victim))
	ended := time.Now()
	r.Began, r.Ended = began.UnixMicro(), ended.UnixMicro()
	switch {
	case v.Kind == httpverdict.Allow:
		r.Kind = admitted
		note(r, v, began, ended)
	case v.Kind == httpverdict.Limited || v.Code == "wait_timeout":
		r.Kind = denied
	default:
		r.Kind = refused
		fmt.Println(ended.Format(time.StampMicro), ruleNames()[rule], v.Kind, v.Code)
	}
	i.write(r)
	if v.Wait > 0 {
		held := time.NewTimer(v.Wait)
		<-held.C
	}
	if v.Done != nil {
		v.Done(context.Background(), httpverdict.Result{Status: 200})
	}
}

// victim is the client of all requests but those of a flood.
const victim = 0

// request is one of a client, who is a number, for a rule.
func request(rule uint8, client uint32) *httpverdict.Request {
	ip := netip.AddrFrom4([4]byte{10 | byte(client>>24), byte(client >> 16), byte(client >> 8), byte(client)})
	return &httpverdict.Request{Method: "GET", Host: "shop.example.com", Path: "/" + ruleNames()[rule], Peer: ip}
}

// clockGrain is by how much a clock in memory may differ from the machine's.
const clockGrain = 2 * time.Millisecond

// note writes down what the limiter says of the time of an admission.
func note(r *record, v *httpverdict.Verdict, began, ended time.Time) {
	if len(v.Limits) != 1 {
		return
	}
	o, limit := &v.Limits[0].Outcome, v.Limits[0].Limit
	for _, off := range [...]time.Duration{0, time.Hour, -time.Hour} { // of the store's clock, where a test sets it
		if at, own := referee.Moment(limit, o, began.Add(off-clockGrain), ended.Add(off)); own {
			r.A = max(at-off.Microseconds(), r.Began)
			break
		}
	}
	if limit.Algorithm() == headgate.AlgFixedWindow {
		r.B = o.Receipt.Mark
	}
}

// write appends a record. It is one write of the system, so that a reader and SIGKILL find whole ones.
func (i *instance) write(r *record) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.line = r.append(i.line[:0])
	_, err := i.file.Write(i.line)
	i.err = errors.Join(i.err, err)
}
