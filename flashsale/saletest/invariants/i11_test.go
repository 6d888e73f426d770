package invariants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// script is a sale in which everything is done that can be done, each thing by a call that can be repeated. Calls of it get the instance
// that makes them.
type script struct {
	*world
	tokens map[string]string
	rids   map[string]string
	// times is how often each call is made, and together whether that is at the same time. Lossy loses the first answer of each call of a
	// port, so that whoever made it has to make it again.
	times    int
	lossy    bool
	once     sync.Mutex // guards rids
	together bool
}

// do makes a call, as often as the script says.
func (s *script) do(what string, call func(i int, e *engine.Engine) error) {
	s.Helper()
	if s.together {
		s.atOnce(s.times, func(i int) error {
			err := call(i, s.engine(i))
			switch flashsale.CodeOf(err) {
			case flashsale.CodeBusy, flashsale.CodeRebuilding, flashsale.CodeFenced, flashsale.CodeInvalidState, flashsale.CodeStaleEpoch:
				return nil // somebody else is at it; the last call finds it done
			}
			return err
		})
	}
	for i := range s.times {
		err := call(i, s.engine(i))
		for s.lossy && flashsale.CodeOf(err) == flashsale.CodeUnavailable {
			err = call(i, s.engine(i))
		}
		if err != nil {
			s.Fatalf("%s, call %d of %d: %v", what, i+1, s.times, err)
		}
		if s.together {
			break
		}
	}
}

func (s *script) reserve(users ...string) {
	for _, user := range users {
		s.do(user+" reserves", func(_ int, e *engine.Engine) error {
			a, err := e.Reserve(s.Context(), request(s.tokens[user], user, 1))
			if err == nil {
				s.once.Lock()
				s.rids[user] = a.RID
				s.once.Unlock()
			}
			return err
		})
	}
	s.job("consumed", func(ctx context.Context, e *engine.Engine) (int, error) {
		return e.ConsumeOnce(ctx, phone, fmt.Sprint("c", s.ids.Add(1)))
	})
}

func (s *script) job(what string, once func(ctx context.Context, e *engine.Engine) (int, error)) {
	s.do(what, func(_ int, e *engine.Engine) error { _, err := once(s.Context(), e); return err })
}

func (s *script) operate(what string, f func(ctx context.Context, e *engine.Engine, c engine.Command) error) {
	s.do(what, func(_ int, e *engine.Engine) error {
		if err := f(s.Context(), e, s.command(what)); err != nil {
			return err
		}
		ops, err := s.sql.OperationsOf(s.Context(), phone, 100)
		for i := range ops {
			if ended := ops[i].State == flashsale.OpDone || ops[i].State == flashsale.OpRefused; ops[i].ID == what && !ended && s.lossy {
				return cut(what) // it is left to the sweeper, or to whoever asks again
			}
		}
		return err
	})
}

// hears delivers a message of the provider's.
func (s *script) hearsOf(user string, status flashsale.PayStatus) {
	intent := flashsale.IntentKey(s.rids[user], 1)
	s.do("the webhook of "+user, func(i int, _ *engine.Engine) error { return s.event(i, "event-"+intent, intent, status) })
}

// play is the script.
func (s *script) play() {
	s.Helper()
	ctx := s.Context()
	for _, user := range []string{"ann", "bob", "cy", "dan", "eve", "fay"} {
		s.tokens[user] = s.token(user)
	}
	s.deaf.Store(true)
	s.reserve("ann", "bob", "cy", "dan", "eve")
	for _, user := range []string{"ann", "bob", "dan"} {
		s.do(user+" pays", func(_ int, e *engine.Engine) error { _, err := e.Pay(ctx, s.rids[user], user); return err })
	}
	s.must(s.bank.Pay(flashsale.IntentKey(s.rids["ann"], 1), flashsale.PayCaptured))
	s.must(s.bank.Pay(flashsale.IntentKey(s.rids["bob"], 1), flashsale.PayFailed))
	s.hearsOf("ann", flashsale.PayCaptured)
	s.hearsOf("bob", flashsale.PayFailed)
	s.do("cy cancels", func(_ int, e *engine.Engine) error { _, err := e.Cancel(ctx, s.rids["cy"], "cy"); return err })
	s.operate("more", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.TopUp(ctx, c, 3)
		return err
	})
	s.operate("less", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.Withdraw(ctx, c, 2)
		return err
	})
	s.operate("too-much", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.Withdraw(ctx, c, 1000)
		return err
	})
	s.operate("rate", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.SetRate(ctx, c, 777)
		return err
	})
	s.operate("pause", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.PauseSale(ctx, c)
		return err
	})
	s.operate("resume", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.ResumeSale(ctx, c)
		return err
	})
	hooks := s.faults.hooks.Load()
	s.faults.set(nil) // a rebuild that is cut is begun anew in another epoch, which is not the same sale to the letter
	s.operate("rebuild", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.Rebuild(ctx, c)
		return err
	})
	s.faults.set(hooks)
	s.reserve("fay")
	s.clock.advance(hold + grace)
	s.job("swept", func(ctx context.Context, e *engine.Engine) (int, error) { return e.SweepOnce(ctx) })
	s.must(s.bank.Capture(flashsale.IntentKey(s.rids["dan"], 1), price, currency)) // void, and captured after all
	s.hearsOf("dan", flashsale.PayCaptured)
	s.job("consumed", func(ctx context.Context, e *engine.Engine) (int, error) {
		return e.ConsumeOnce(ctx, phone, fmt.Sprint("c", s.ids.Add(1)))
	})
	s.job("polled", func(ctx context.Context, e *engine.Engine) (int, error) { return e.PollOnce(ctx) })
	s.clock.advance(2 * time.Second) // by then the job of the outbox does not wait any more for those who wrote it
	s.job("delivered", func(ctx context.Context, e *engine.Engine) (int, error) { return e.DeliverOnce(ctx) })
	s.job("reconciled", func(ctx context.Context, e *engine.Engine) (int, error) { return e.ReconcileOnce(ctx) })
	s.job("watched", func(ctx context.Context, e *engine.Engine) (int, error) { return e.WatchOnce(ctx) })
	s.job("relayed", func(ctx context.Context, e *engine.Engine) (int, error) { return e.RelayOnce(ctx) })
	s.operate("drain", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.DrainSale(ctx, c)
		return err
	})
	s.operate("close", func(ctx context.Context, e *engine.Engine, c engine.Command) error {
		_, err := e.CloseSale(ctx, c)
		return err
	})
}

// firstLost loses the first answer of each call, but for those that hand something out until a clock goes on that stands here.
func firstLost() func(call string) error {
	var seen sync.Map
	return func(call string) error {
		if _, again := seen.LoadOrStore(call, true); again || call == "stock.Pull" || call == "orders.Lease" {
			return nil
		}
		return cut(call)
	}
}

// TestI11_TwiceIsOnce: a sale in which every call is made twice, one in which the first answer of every call is lost as well, and one in which every call
// is made by four at the same time, leave both stores as one in which each is made once: row by row.
func TestI11_TwiceIsOnce(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		var sql, stock []string
		for _, s := range []*script{{times: 1}, {times: 2}, {times: 2, lossy: true}, {times: 4, together: true}} {
			s.world, s.tokens, s.rids = newWorld(t, pair, plan{total: 10}), map[string]string{}, map[string]string{}
			if s.lossy {
				s.faults.set(&hooks{after: firstLost()})
			}
			s.play()
			s.faults.set(nil)
			gotSQL, gotStock := s.dumpSQL(), s.dumpStock()
			if s.times == 1 {
				sql, stock = gotSQL, gotStock
				if b := s.books(); b.sold != 2 || b.reserved != 0 || b.total != 11 || b.taken != 7 {
					t.Fatalf("once: %+v", b)
				}
				continue
			}
			as := func(lines []string) []string { return lines }
			if s.lossy {
				as = unhurried
			}
			if d := differences(as(sql), as(gotSQL)) + differences(as(stock), as(gotStock)); d != "" {
				t.Errorf("I11: %d times, lossy: %v, together: %v: what is there differs:\n%s", s.times, s.lossy, s.together, d)
			}
		}
	})
}

// whenFollowed is what tells when the Stock has followed: of what was delivered a second time, later than of what was not.
var whenFollowed = regexp.MustCompile(` (seq|detail)="[^"]*"| At:.* Deadline:`)

func unhurried(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = whenFollowed.ReplaceAllString(line, "")
	}
	return out
}

// TestI11_MessagesInAnyOrder: the rows of the outbox, each delivered twice and in any order, have the Stock say what SQL says.
func TestI11_MessagesInAnyOrder(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100})
		ctx, epoch := t.Context(), w.sku().Epoch
		for seed := range uint64(6) {
			var rids []string
			for i := range 6 {
				rids = append(rids, w.ask(fmt.Sprint("user-", seed, "-", i), 1))
			}
			jobs, err := w.stock().Pull(ctx, phone, epoch, "c", 100, time.Hour)
			w.must(err)
			_, err = w.sql.Decide(ctx, &flashsale.Batch{Key: phone, Epoch: epoch, Jobs: jobs})
			w.must(err)
			for i, rid := range rids { // all ways from reserved on; one of them stays
				user := fmt.Sprint("user-", seed, "-", i)
				switch i {
				case 0, 1, 2:
					_, _, err := w.sql.BeginPayment(ctx, rid, user)
					w.must(err)
					end := []flashsale.PayStatus{flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayVoid}[i]
					_, err = w.sql.Outcome(ctx, "", &flashsale.ProviderPayment{IntentKey: flashsale.IntentKey(rid, 1), Status: end, Amount: price, Currency: currency})
					w.must(err)
				case 3, 4:
					_, err := w.sql.Cancel(ctx, rid, user, "")
					w.must(err)
				}
			}
			events, err := w.sql.UnsentOf(ctx, phone, 0, 1000)
			w.must(err)
			if len(events) != 14 {
				t.Fatalf("%d events, want 14", len(events))
			}
			var ids []int64
			rng := rand.New(rand.NewPCG(seed, 9))
			for _, at := range rng.Perm(2 * len(events)) {
				v := &events[at%len(events)]
				ids = append(ids, v.ID)
				effect := flashsale.Effect{RID: v.RID, User: v.User, Quantity: v.Quantity, State: v.State, Version: v.Version}
				_, err := w.stock().Apply(ctx, phone, epoch, []flashsale.Effect{effect}, []string{jobs[at%len(jobs)].ID})
				w.must(err)
			}
			w.must(w.sql.Sent(ctx, flashsale.LaneStock, epoch, ids))
			for _, rid := range rids {
				if row, entry := w.row(rid), w.entry(rid); row.State != entry.State || row.Version != entry.Version {
					t.Fatalf("I11: seed %d: SQL has %s as %s %d, the stock as %s %d", seed, rid, row.State, row.Version, entry.State, entry.Version)
				}
			}
			v, n := w.view(), int64(seed)+1
			if v.Sold != n || v.Held != 3*n || v.Available != 100-4*n || v.Queue.Depth != 0 || v.Queue.Pending != 0 {
				t.Fatalf("I11: seed %d: the stock has %+v", seed, v)
			}
		}
	})
}

// TestI11_ToldAtLeastOnce: two instances relay at the same time, and answers of the broker and of SQL are lost: every event arrives, each
// time as the same message, and those of a reservation in their order where each is taken the first time.
func TestI11_ToldAtLeastOnce(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100})
		for i := range 10 {
			user := fmt.Sprint("user-", i)
			if rid := w.reserve(user, 1); i%2 == 0 {
				w.cancel(rid, user)
			} else {
				w.capture(w.pay(rid, user))
			}
		}
		w.bankSteps()
		w.faults.set(&hooks{before: lose(2, "relay.Publish", "orders.Sent"), after: lose(4, "relay.Publish", "orders.Sent")})
		for range 8 {
			w.atOnce(2, func(i int) error {
				if _, err := w.engine(i).RelayOnce(t.Context()); err != nil && flashsale.CodeOf(err) != flashsale.CodeUnavailable {
					return err
				}
				return nil
			})
			w.clock.advance(time.Minute)
		}
		w.faults.set(nil)
		told, version := map[string]flashsale.Event{}, map[string]int64{}
		for _, v := range w.events.list {
			before, again := told[v.MessageID()]
			switch {
			case again && before != v:
				t.Errorf("I11: %s was told as %+v, and then as %+v", v.MessageID(), before, v)
			case !again && v.Version != version[v.RID]+1:
				t.Errorf("I11: %s came after version %d", v.MessageID(), version[v.RID])
			}
			told[v.MessageID()], version[v.RID] = v, max(version[v.RID], v.Version)
		}
		if n := w.count("SELECT COUNT(*) FROM outbox"); n != 25 || len(told) != 25 || len(w.events.list) <= 25 {
			t.Errorf("I11: %d rows of the outbox, %d different messages, %d in all; want 25, 25, and more", n, len(told), len(w.events.list))
		}
	})
}
