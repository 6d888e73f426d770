package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// run starts the consumers of the shop's engine, and returns what stops them and waits.
func (s *shop) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.engine.runConsumers(ctx) })
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

// decideWithin waits in virtual time until the queue of a sku is empty.
func (s *shop) decideWithin(key flashsale.Key, bound time.Duration) time.Duration {
	s.t.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		if v, err := s.stock.View(s.t.Context(), key); err == nil && v.Queue.Depth == 0 {
			return time.Since(began)
		}
		if time.Since(began) > bound {
			s.t.Fatalf("%s is not decided within %s", key, bound)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestWakeIsAtOnce: who reserves in this process wakes a worker, however quiet the sku has been.
func TestWakeIsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 100})
		stop := s.run()
		defer stop()
		for i := range 50 {
			time.Sleep(time.Duration(i) * 37 * time.Millisecond)
			s.reserve(fmt.Sprint("u", i))
			if took := s.decideWithin(phone, time.Second); took > 0 {
				t.Fatalf("after a pause of %d · 37 ms it took %s", i, took)
			}
		}
		s.agree(phone)
	})
}

// TestJobsOfOthersAreFound: what another process has appended is found by looking.
func TestJobsOfOthersAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 100})
		stop := s.run()
		defer stop()
		other := s.another(nil)
		for i := range 20 {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			if _, err := other.Reserve(t.Context(), s.request(fmt.Sprint("u", i))); err != nil {
				t.Fatal(err)
			}
			s.decideWithin(phone, quietest*s.engine.cfg.Consumers.Idle)
		}
		// A quiet sku costs little, from the look on that sees that nothing waits.
		before := s.faults.count("stock.Pull")
		time.Sleep(time.Minute)
		if n := s.faults.count("stock.Pull") - before; n > 60*2+60 {
			t.Errorf("a sku with nothing to do was pulled %d times in a minute", n)
		}
	})
}

// TestWorkersAreFair: a sku with a long queue takes no turn from another.
func TestWorkersAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10_000, skus: 5, config: func(c *Config) { c.Consumers = Consumers{Max: 1, Batch: 10} }})
		s.book.slow = 100 * time.Millisecond
		for i := range 1000 {
			s.reserve(fmt.Sprint("user-", i))
		}
		stop := s.run()
		defer stop()
		for _, key := range s.keys[1:] {
			user := "u" + key.SKU
			token, _, err := s.engine.Token(t.Context(), TokenRequest{Key: key, User: user})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.engine.Reserve(t.Context(), ReserveRequest{Token: token, Key: key, User: user, Quantity: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range s.keys[1:] {
			s.decideWithin(key, time.Second)
		}
		if v := s.view(); v.Queue.Depth < 900 {
			t.Errorf("meanwhile %d of 1000 wait still: the long queue was served first", v.Queue.Depth)
		}
		s.decideWithin(phone, 20*time.Second)
		s.agree(phone)
	})
}

// TestSQLComesBack: through a minute without SQL everything is kept, an alarm is on, and a moment later all is decided.
func TestSQLComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 600, config: func(c *Config) { c.Consumers = Consumers{Min: 2, Batch: 100} }})
		stop := s.run()
		defer stop()
		s.token("warm")
		s.faults.set(lose(-1, "orders.Decide", "orders.SKU", "orders.SKUs"), nil)
		s.reserveMany(500)
		time.Sleep(40 * time.Second)
		if v := s.view(); v.Queue.Depth != 500 || v.Queue.Dead != 0 || s.told.count("alarm sql  true") != 1 {
			t.Errorf("%+v; %v", v.Queue, s.told.lines)
		}
		if n := s.faults.count("orders.Decide"); n > 40*(1+repeats)*3 {
			t.Errorf("SQL was asked %d times while it was away", n)
		}
		s.faults.set(nil, nil)
		s.decideWithin(phone, 2*time.Second)
		s.agree(phone)
		time.Sleep(20 * time.Second)
		for _, kind := range []string{"sql ", "retries ", "latency eleven/phone-0"} {
			if on, off := s.told.count("alarm "+kind+" true"), s.told.count("alarm "+kind+" false"); on != 1 || off != 1 {
				t.Errorf("the alarm %q went on %d times and off %d times", kind, on, off)
			}
		}
	})
}

// TestAStockThatDoesNotAnswerIsAnAlarm: one look without an answer is none, and one sku that has no answer is enough.
func TestAStockThatDoesNotAnswerIsAnAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{skus: 2, total: 1})
		defer s.run()()
		for i, c := range []struct {
			answers int // that are lost, −1 is all
			on, off int
		}{{1, 0, 0}, {-1, 1, 0}, {0, 1, 1}} {
			s.faults.set(lose(c.answers, "stock.View"), nil)
			time.Sleep(10 * time.Second)
			if on, off := s.told.count("alarm stock  true"), s.told.count("alarm stock  false"); on != c.on || off != c.off {
				t.Errorf("step %d: the alarm went on %d times and off %d times; %v", i, on, off, s.told.lines)
			}
			if alarms := s.engine.Alarms(); c.answers < 0 && (len(alarms) != 1 || !strings.HasPrefix(alarms[0].Why, "the stock does not answer for 2 of 2 skus: ")) {
				t.Errorf("on are %+v", alarms)
			}
		}
	})
}

// TestPoisonAlone: with nothing beside it that succeeds, a job is a dead letter after its third try, and the alarm tells.
func TestPoisonAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		s.book.poison = func(j *flashsale.Job) error {
			if j.User == "poison" {
				return errors.New("no")
			}
			return nil
		}
		stop := s.run()
		defer stop()
		s.reserve("poison")
		time.Sleep(3 * time.Second)
		if v := s.view(); v.Queue.Dead != 1 || v.Queue.Depth != 0 || s.told.count("alarm dead_letters eleven/phone-0 true") != 1 {
			t.Errorf("%+v, %v", v.Queue, s.told.lines)
		}
		if n := s.faults.count("orders.Decide"); n != buryAfter {
			t.Errorf("it was tried %d times", n)
		}
	})
}

// TestEpochChangesUnderWorkers: a rebuild takes the jobs of its queue along, and workers go on in the new epoch.
func TestEpochChangesUnderWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		stop := s.run()
		defer stop()
		s.reserve("u")
		s.decideWithin(phone, time.Second)
		s.book.change(phone, func(s *flashsale.SKUState) { s.Epoch, s.Rebuilding = 2, true })
		s.reserve("v") // the stock has not heard of it
		time.Sleep(5 * time.Second)
		if v := s.view(); v.Queue.Depth != 1 || s.book.count(flashsale.Reserved) != 1 {
			t.Errorf("%+v", v.Queue)
		}
		s.load(phone, 2)
		s.book.change(phone, func(s *flashsale.SKUState) { s.Rebuilding = false })
		s.reserve("w")
		s.decideWithin(phone, 2*time.Second)
		if n := s.book.count(flashsale.Reserved); n != 2 {
			t.Errorf("%d are reserved, want those of u and w", n)
		}
	})
}

// TestWorkersFollowTheLoad: with a database that does more with more of them, workers come and go.
func TestWorkersFollowTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 100_000, config: func(c *Config) { c.Consumers = Consumers{Max: 3, Batch: 10} }})
		s.book.slow = 50 * time.Millisecond // of each batch, without a lock: three workers do three times as much
		for i := range 8000 {
			s.reserve(fmt.Sprint("user-", i))
		}
		stop := s.run()
		s.decideWithin(phone, time.Minute)
		time.Sleep(30 * time.Second)
		stop()
		if got := fmt.Sprint(s.told.workers); got != "[1 2 3 2 1 0]" {
			t.Errorf("the workers were %s", got)
		}
		s.agree(phone)
	})
}

// TestStopFinishesWhatWasPulled: a batch under way is decided and acknowledged.
func TestStopFinishesWhatWasPulled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		s.book.slow = time.Second
		stop := s.run()
		s.reserve("u")
		synctest.Wait()
		if v := s.view(); v.Queue.Pulled != 1 {
			t.Fatalf("%+v", v.Queue)
		}
		stop()
		s.agree(phone)
	})
}

// TestPaceIsTheStocks: a rate holds over all workers, and asking in vain is rare even with a wake for every job.
func TestPaceIsTheStocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10_000, rate: 100, config: func(c *Config) { c.Consumers.Min = 4 }})
		stop := s.run()
		defer stop()
		began := time.Now()
		for i := range 2000 {
			s.reserve(fmt.Sprint("user-", i))
			time.Sleep(time.Millisecond)
		}
		s.decideWithin(phone, 30*time.Second)
		if took := time.Since(began); took < 19*time.Second || took > 21*time.Second {
			t.Errorf("2000 jobs at 100 a second took %s", took)
		}
		if n := s.faults.count("stock.Pull"); n > 20*220 {
			t.Errorf("the stock was asked %d times in 20 s", n)
		}
		s.agree(phone)
	})
}

// TestManyAtOnce runs it for real, for the race detector: shoppers of several skus who wait, and workers that fight for them.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 300, skus: 3, config: func(c *Config) { c.Consumers = Consumers{Min: 4, Max: 4, Batch: 16} }})
	s.faults.set(lose(20, "orders.Decide", "stock.Apply"), lose(20, "orders.Decide", "stock.Apply"))
	ctx, cancel := context.WithCancel(t.Context())
	var running, shoppers sync.WaitGroup
	running.Go(func() { s.engine.runConsumers(ctx) })
	for i := range 1200 {
		shoppers.Go(func() {
			key, user := s.keys[i%3], fmt.Sprint("u", i)
			token, _, err := s.engine.Token(ctx, TokenRequest{Key: key, User: user})
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := s.engine.Reserve(ctx, ReserveRequest{Token: token, Key: key, User: user, Quantity: 1})
			if flashsale.CodeOf(err) == flashsale.CodeSoldOut {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if r, err := s.engine.Await(ctx, key, answer.RID, user); err != nil || r.State != flashsale.Reserved {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	shoppers.Wait()
	for _, key := range s.keys {
		for depth := int64(1); depth > 0; {
			v, err := s.stock.View(ctx, key)
			if err != nil || !pause(ctx, time.Millisecond) {
				t.Fatal(err)
			}
			depth = v.Queue.Depth
		}
	}
	cancel()
	running.Wait()
	for _, key := range s.keys {
		s.agree(key)
	}
	if n := s.book.count(flashsale.Reserved); n != 900 {
		t.Errorf("%d are reserved, want 900", n)
	}
}

// TestRetriesOfTheDatabase: what it repeats by itself raises the alarm too.
func TestRetriesOfTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1000})
		stop := s.run()
		defer stop()
		for i := range 100 {
			s.reserve(fmt.Sprint("u", i))
			(*Engine)(nil).Retried("Decide", 1, errors.New("deadlock")) // before there is one
			s.engine.Retried("Cancel", 1, errors.New("deadlock"))
			if i%10 == 0 {
				s.engine.Retried("Decide", 1, errors.New("deadlock"))
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if on, off := s.told.count("alarm retries  true"), s.told.count("alarm retries  false"); on != 1 || off != 1 {
			t.Errorf("the alarm went on %d times and off %d times: %v", on, off, s.told.lines)
		}
	})
}

// TestPanicIsContained: a fault in the code of a store is a poison job to this sku, and nothing to the others.
func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		s.book.poison = func(j *flashsale.Job) error {
			if j.User == "poison" {
				panic("out of range")
			}
			return nil
		}
		rids := []string{s.reserve("u"), s.reserve("poison"), s.reserve("v")}
		s.consume(2)
		if dead, err := s.engine.DeadLetters(t.Context(), phone, 10); err != nil || len(dead) != 1 || dead[0].RID != rids[1] {
			t.Errorf("%+v, %v", dead, err)
		}
	})
}
