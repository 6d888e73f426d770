package redisstock

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/redisconn"
	"github.com/redis/rueidis"
)

// Stock implements [flashsale.Stock], [flashsale.Queue] and [flashsale.Loader] in Redis. It is safe for concurrent use.
type Stock struct {
	cfg     Config
	client  rueidis.Client
	owned   bool
	scripts scripts

	base  context.Context // ends when the stock closes
	stop  context.CancelFunc
	slots chan struct{} // one for each call that is not a reserve call
	asks  sync.Pool

	mu     sync.Mutex
	closed bool              // guarded by mu
	lanes  map[laneKey]*lane // guarded by mu, as what is in them; only those with something waiting or on the wire
	queued int               // guarded by mu: asks that wait to be sent
	work   sync.WaitGroup    // goroutines that make calls; Add under mu
}

var (
	_ flashsale.Stock  = (*Stock)(nil)
	_ flashsale.Queue  = (*Stock)(nil)
	_ flashsale.Loader = (*Stock)(nil)
)

// New connects to Redis and returns a stock. The context bounds connecting only.
func New(ctx context.Context, cfg Config) (*Stock, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Stock{cfg: cfg, client: cfg.Client, scripts: newScripts(), slots: make(chan struct{}, cfg.MaxCalls), lanes: map[laneKey]*lane{}}
	if s.client == nil {
		client, err := redisconn.Connect(ctx, cfg.redis())
		if err != nil {
			return nil, connectError(err)
		}
		s.client, s.owned = client, true
	}
	s.cfg.Password, s.cfg.SentinelPassword = "", "" // not needed any more
	s.asks.New = func() any { return newAsk() }
	s.base, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close fails what waits with CodeClosed, ends the calls on the wire and, unless it is the user's, the client. A second Close does
// nothing.
func (s *Stock) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, l := range s.lanes {
		l.fail(closedError())
	}
	s.mu.Unlock()
	s.stop()
	if s.owned {
		s.client.Close()
	}
	s.work.Wait()
	return nil
}

// begin counts a goroutine that makes calls. With an error there must be none.
func (s *Stock) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return closedError()
	}
	s.work.Add(1)
	return nil
}

// nowArg is the time as scripts take it.
func (s *Stock) nowArg() string {
	if s.cfg.Now == nil {
		return ""
	}
	return itoa(s.cfg.Now().UnixMicro())
}

// op is a call of a script other than that of reserve.
type op struct {
	script *rueidis.Lua
	key    flashsale.Key
	epoch  int64
	keys   []string
	args   []string // after the epoch and the time
	what   string   // for errors
}

// run makes a call and returns its answer less the 'ok'.
func (s *Stock) run(ctx context.Context, o *op) ([]rueidis.RedisMessage, error) {
	args := append([]string{"", ""}, o.args...)
	if o.epoch != 0 {
		args[0] = itoa(o.epoch)
	}
	r, err := s.take(ctx, func(ctx context.Context) rueidis.RedisResult {
		args[1] = s.nowArg()
		return o.script.Exec(ctx, s.client, o.keys, args)
	})
	if err != nil {
		return nil, err
	}
	return s.answer(o, r)
}

// take makes a call in a goroutine of its own, so that it comes back when the caller's context or Config.Timeout ends, whatever the
// client does.
func (s *Stock) take(ctx context.Context, do func(ctx context.Context) rueidis.RedisResult) (r rueidis.RedisResult, err error) {
	if err := ctx.Err(); err != nil {
		return r, notBegun(err)
	}
	call, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
	case <-call.Done():
		return r, notBegun(ctx.Err())
	case <-s.base.Done():
		return r, closedError()
	}
	if err := s.begin(); err != nil {
		<-s.slots
		return r, err
	}
	done := make(chan rueidis.RedisResult, 1)
	go func() {
		defer s.work.Done()
		defer func() { <-s.slots }()
		done <- do(call)
	}()
	select {
	case r = <-done:
		return r, nil
	case <-call.Done():
		return r, noAnswer(ctx.Err())
	case <-s.base.Done():
		return r, closedMeanwhile()
	}
}

// answer reads the first element of a script's answer.
func (s *Stock) answer(o *op, r rueidis.RedisResult) ([]rueidis.RedisMessage, error) {
	all, err := r.ToArray()
	if err != nil {
		if s.base.Err() != nil {
			return nil, closedMeanwhile()
		}
		return nil, callError(err)
	}
	if len(all) == 0 {
		return nil, badReply(o.what)
	}
	switch word, _ := all[0].ToString(); word {
	case "ok":
		return all[1:], nil
	case "stale":
		pointer := ""
		if len(all) > 1 {
			pointer, _ = all[1].ToString()
		}
		return nil, staleError(o.key, o.epoch, pointer)
	case "rebuilding", "unset":
		return nil, rebuildingError(o.key, o.epoch)
	}
	return nil, badReply(o.what)
}

// op returns a call on an epoch of a sku with so many of its keys. A key whose ids are not allowed is refused: it could be the name of
// another's.
func (s *Stock) op(script *rueidis.Lua, key flashsale.Key, epoch int64, keys int, what string) (*op, error) {
	if err := checkKey(key, epoch); err != nil {
		return nil, err
	}
	return &op{script: script, key: key, epoch: epoch, keys: s.keysOf(key, epoch, keys), what: what}, nil
}

func checkKey(key flashsale.Key, epoch int64) error {
	if err := flashsale.CheckID("redisstock: the id of the sale", key.Sale); err != nil {
		return err
	}
	if err := flashsale.CheckID("redisstock: the id of the sku", key.SKU); err != nil {
		return err
	}
	if epoch < 1 || epoch >= maxNumber {
		return staleError(key, epoch, "another epoch")
	}
	return nil
}

// micros is a time as scripts keep it. The zero time, and what lies further away than the numbers of Lua are exact, is at their end.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return -maxNumber
	}
	return min(max(t.UnixMicro(), -maxNumber), maxNumber)
}

func fromMicros(us int64) time.Time {
	if us <= -maxNumber {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
