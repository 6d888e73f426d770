package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// reserveMany takes a unit for each of n users, and returns the rids.
func (s *shop) reserveMany(n int) []string {
	s.t.Helper()
	rids := make([]string, n)
	for i := range n {
		rids[i] = s.reserve(fmt.Sprint("user-", i))
	}
	return rids
}

func TestConsumeOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 100})
	s.consume(0)
	s.reserveMany(100)
	_, err := s.engine.Reserve(t.Context(), s.request("late"))
	wantCode(t, "one too many", err, flashsale.CodeSoldOut)
	s.consume(100)
	s.consume(0)
	s.agree(phone)
	if n := s.book.count(flashsale.Reserved); n != 100 || len(s.book.sent) != 100 {
		t.Errorf("%d are reserved, and of %d the stock is known to know", n, len(s.book.sent))
	}
	if n := s.told.count("moved eleven/phone-0 T1  1"); n != 100 || fmt.Sprint(s.told.batches) != "[100]" {
		t.Errorf("the observer was told of %d, in batches of %v", n, s.told.batches)
	}
}

func TestConsumeRejects(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 3})
	s.reserveMany(3)
	s.book.change(phone, func(s *flashsale.SKUState) { s.Total = 2 })
	s.consume(3)
	if r, v := s.book.count(flashsale.Rejected), s.view(); r != 1 || v.Held != 2 || v.Available != 1 || v.Queue.Depth != 0 {
		t.Errorf("%d are rejected, %+v", r, v)
	}
	if s.told.count("moved eleven/phone-0 T1' sold_out 1") != 1 {
		t.Errorf("the observer was told %v", s.told.lines)
	}
}

// TestOnlyThePoisonIsBuried: one job that SQL cannot decide, in the middle of a batch of 256, is found; the others are decided.
func TestOnlyThePoisonIsBuried(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 127, 128, 255} {
		s := openShop(t, shopPlan{total: 256})
		rids := s.reserveMany(256)
		s.book.poison = func(j *flashsale.Job) error {
			if j.RID == rids[at] {
				return errors.New("value out of range " + strings.Repeat("é", 400))
			}
			return nil
		}
		s.consume(255)
		dead, err := s.engine.DeadLetters(t.Context(), phone, 10)
		if err != nil || len(dead) != 1 || dead[0].RID != rids[at] || !strings.HasPrefix(dead[0].Reason, "value out of range é") || len(dead[0].Reason) > flashsale.MaxReason {
			t.Fatalf("dead letters %+v, %v", dead, err)
		}
		if n, v := s.book.count(flashsale.Reserved), s.view(); n != 255 || v.Queue.Depth != 0 || v.Queue.Pending != 1 || v.Held != 256 {
			t.Errorf("%d are reserved, %+v", n, v)
		}
		if n := s.faults.count("orders.Decide"); n > 1+2*8 {
			t.Errorf("it took %d transactions to find it", n)
		}
		// Mended and revived, it is decided as well.
		s.book.poison = nil
		if n, err := s.engine.ReviveDead(t.Context(), phone, []string{dead[0].ID}); n != 1 || err != nil {
			t.Fatalf("%d were revived: %v", n, err)
		}
		s.consume(1)
		s.agree(phone)
	}
}

func TestTwoPoisonsAmongMany(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 50})
	rids := s.reserveMany(50)
	s.book.poison = func(j *flashsale.Job) error {
		if j.RID == rids[7] || j.RID == rids[8] {
			return errorf(flashsale.CodeInternal, "no")
		}
		return nil
	}
	s.consume(48)
	if v := s.view(); v.Queue.Dead != 2 || v.Queue.Depth != 0 {
		t.Errorf("%+v", v.Queue)
	}
}

// TestAFaultOfTheWholeBuriesNothingAtOnce: what every job meets is not the fault of one, until it has lasted for three deliveries.
func TestAFaultOfTheWholeBuriesNothingAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 4})
		s.reserveMany(4)
		s.book.poison = func(*flashsale.Job) error { return errorf(flashsale.CodeInternal, "the schema is missing") }
		for pass := 1; pass <= buryAfter; pass++ {
			n, err := s.engine.ConsumeOnce(t.Context(), phone, "c")
			dead := s.view().Queue.Dead
			if last := pass == buryAfter; n != 0 || (err == nil) != last || (dead == 4) != last || !last && dead != 0 {
				t.Errorf("pass %d: %d, %v, %d dead letters", pass, n, err, dead)
			}
			time.Sleep(s.engine.cfg.Consumers.Reclaim)
		}
		// Past their deadline they cannot be revived.
		time.Sleep(flashsale.PendingFor)
		dead, _ := s.engine.DeadLetters(t.Context(), phone, 10)
		if n, err := s.engine.ReviveDead(t.Context(), phone, []string{dead[0].ID, dead[3].ID}); n != 0 || err != nil {
			t.Errorf("%d were revived: %v", n, err)
		}
	})
}

// TestOnlySQLKeepsOthersWaiting: whoever comes is refused as busy while SQL has not decided for 45 s what was pulled, and not for a job
// that is buried and pending for as long.
func TestOnlySQLKeepsOthersWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 100})
		rids := s.reserveMany(2)
		s.book.poison = func(j *flashsale.Job) error {
			if j.RID == rids[0] {
				return errorf(flashsale.CodeInternal, "value out of range")
			}
			return nil
		}
		s.consume(1)
		time.Sleep(flashsale.PendingFor/2 + time.Second)
		if q := s.view().Queue; q.Pending != 1 || q.Dead != 1 || q.Oldest != 0 {
			t.Fatalf("one is buried: %+v", q)
		}
		s.reserve("another")

		s.faults.set(lose(-1, "orders.Decide"), nil)
		_, err := s.engine.ConsumeOnce(t.Context(), phone, "c")
		wantCode(t, "SQL is away", err, flashsale.CodeUnavailable)
		time.Sleep(flashsale.PendingFor/2 + time.Second)
		if q := s.view().Queue; q.Pulled != 1 || q.Depth != 1 {
			t.Fatalf("one is pulled: %+v", q)
		}
		_, err = s.engine.Reserve(t.Context(), s.request("waiting"))
		wantCode(t, "SQL does not keep up", err, flashsale.CodeBusy)

		s.faults.set(nil, nil)
		s.consume(1)
		s.reserve("waiting")
	})
}

// TestConsumerDies: whatever step it is that a consumer does not live to see, another one finds the jobs, and nothing is done twice.
func TestConsumerDies(t *testing.T) {
	t.Parallel()
	dies := func(call string) func(string) error {
		return func(c string) error {
			if c == call {
				return errorf(flashsale.CodeClosed, "killed")
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		before, after func(string) error
		replayed      int
		taken         bool // acknowledged already
	}{
		"after the pull":            {nil, dies("stock.Pull"), 0, false},
		"before the commit":         {dies("orders.Decide"), nil, 0, false},
		"after the commit":          {nil, dies("orders.Decide"), 10, false},
		"before it is acknowledged": {dies("stock.Apply"), nil, 10, false},
		"after it is acknowledged":  {nil, dies("stock.Apply"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := openShop(t, shopPlan{total: 10})
				s.reserveMany(10)
				s.faults.set(c.before, c.after)
				_, err := s.engine.ConsumeOnce(t.Context(), phone, "first")
				wantCode(t, "the pass", err, flashsale.CodeClosed)
				s.faults.set(nil, nil)
				other := s.another(nil)
				if n, err := other.ConsumeOnce(t.Context(), phone, "second"); n != 0 || err != nil {
					t.Errorf("the other one gets %d of the dead one's at once: %v", n, err)
				}
				time.Sleep(other.cfg.Consumers.Reclaim)
				want := 10
				if c.taken {
					want = 0
				}
				if n, err := other.ConsumeOnce(t.Context(), phone, "second"); n != want || err != nil {
					t.Errorf("the other one decides %d: %v, want %d", n, err, want)
				}
				s.agree(phone)
				if n, moved := s.book.count(flashsale.Reserved), s.told.count("moved eleven/phone-0 T1  1"); n != 10 || int(s.book.outbox) != 10 {
					t.Errorf("%d are reserved in %d rows of the outbox; the observer was told of %d", n, s.book.outbox, moved)
				}
			})
		})
	}
}

// TestLostCommitIsRepeatedAtOnce: an answer of SQL that is lost is asked for again, and what is decided comes back as it was.
func TestLostCommitIsRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		s.reserveMany(10)
		s.faults.set(nil, lose(2, "orders.Decide"))
		s.consume(10)
		s.agree(phone)
		if s.told.count("repeated 2") != 1 || s.book.outbox != 10 {
			t.Errorf("the observer was told %v; %d rows", s.told.lines, s.book.outbox)
		}
	})
}

func TestSQLAwayKeepsJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		s.reserveMany(10)
		s.faults.set(lose(-1, "orders.Decide"), nil)
		n, err := s.engine.ConsumeOnce(t.Context(), phone, "c")
		wantCode(t, "SQL is away", err, flashsale.CodeUnavailable)
		if v := s.view(); n != 0 || v.Queue.Depth != 10 || v.Queue.Pulled != 10 || v.Queue.Dead != 0 || s.faults.count("orders.Decide") != 1+repeats {
			t.Errorf("%d, %+v after %d tries", n, v.Queue, s.faults.count("orders.Decide"))
		}
	})
}

// TestRebuildHasTheJobs: a batch of an epoch that SQL has left decides and acknowledges nothing.
func TestRebuildHasTheJobs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*flashsale.SKUState){
		"another epoch": func(s *flashsale.SKUState) { s.Epoch = 2 },
		"rebuilding":    func(s *flashsale.SKUState) { s.Rebuilding = true },
	} {
		s := openShop(t, shopPlan{total: 10})
		s.reserveMany(10)
		s.book.change(phone, change)
		n, err := s.engine.ConsumeOnce(t.Context(), phone, "c")
		wantCode(t, name, err, flashsale.CodeRebuilding)
		if v := s.view(); n != 0 || v.Queue.Depth != 10 || len(s.book.rows) != 0 || s.faults.count("stock.Apply") != 0 {
			t.Errorf("%s: %d were decided, %+v", name, n, v.Queue)
		}
	}
}

func TestDeadLettersBadInput(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 1})
	for _, limit := range []int{-1, 0, 1001} {
		_, err := s.engine.DeadLetters(t.Context(), phone, limit)
		wantCode(t, fmt.Sprint("a limit of ", limit), err, flashsale.CodeInvalidArgument)
	}
	_, err := s.engine.ReviveDead(t.Context(), phone, make([]string, 1001))
	wantCode(t, "too many", err, flashsale.CodeInvalidArgument)
	if n, err := s.engine.ReviveDead(t.Context(), phone, []string{"no such", ""}); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
