package redisstock_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
)

// twins are a stock in memory and one in Redis that are asked the same, and must answer the same, to the last field: but for the names
// of jobs and of runs.
type twins struct {
	*rapid.T
	stocks   [2]stocktest.Stock
	key      flashsale.Key
	passed   time.Duration
	settings flashsale.Settings
	jobs     [2][]flashsale.Job // pulled, in the same order
	adjusted int
}

var twinsBegin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestSameAsMemory(t *testing.T) {
	var now func() time.Time
	clock := func() time.Time { return now() }
	memory, redis := memstock.New(memstock.Config{Now: clock}), open(t, redisstock.Config{Now: clock})
	defer func() { _ = memory.Close() }()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		w := &twins{T: rt, stocks: [2]stocktest.Stock{memory, redis}, key: flashsale.Key{Sale: fmt.Sprint("twin", run), SKU: "sku"}}
		now = func() time.Time { return twinsBegin.Add(w.passed) }
		w.begin()
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": w.reserve, "apply": w.apply, "pull": w.pull, "ack": w.ack, "bury": w.bury, "revive": w.revive, "adjust": w.adjust,
			"configure": w.configure, "due": w.due, "forget": w.forget, "wait": w.wait, "lull": w.lull, "": w.look,
		})
	})
}

// same asks both, and fails the test unless they answer the same.
func (w *twins) same(t *rapid.T, what string, ask func(s stocktest.Stock, i int) (any, error)) {
	var answers [2]any
	var codes [2]flashsale.Code
	for i, s := range w.stocks {
		answer, err := ask(s, i)
		if answers[i], codes[i] = answer, flashsale.CodeOf(err); err != nil && codes[i] == "" {
			t.Fatalf("%s: an error without a code: %v", what, err)
		}
	}
	if codes[0] != codes[1] || codes[0] == "" && !reflect.DeepEqual(answers[0], answers[1]) {
		t.Fatalf("%s:\nmemory %q %+v\nRedis  %q %+v", what, codes[0], answers[0], codes[1], answers[1])
	}
}

func (w *twins) begin() {
	ctx := context.Background()
	w.settings = flashsale.Settings{
		Version: 1, Status: flashsale.Open, OpensAt: twinsBegin, ClosesAt: twinsBegin.Add(30 * time.Hour),
		PurchaseLimit: rapid.SampledFrom([]int64{1, 3, 20, 60}).Draw(w.T, "limit"), Rate: rapid.SampledFrom([]int64{1, 19, 1000}).Draw(w.T, "rate"),
	}
	total := rapid.SampledFrom([]int64{0, 20, 100}).Draw(w.T, "total")
	w.same(w.T, "begin", func(s stocktest.Stock, _ int) (any, error) {
		if _, err := s.Point(ctx, w.key, 1); err != nil {
			return nil, err
		}
		if err := s.Load(ctx, w.key, 1, &flashsale.LoadPart{Last: true, Total: total, Settings: w.settings}); err != nil {
			return nil, err
		}
		return nil, s.Configure(ctx, w.key, 1, &w.settings)
	})
}

func drawRID(t *rapid.T) string { return fmt.Sprint("r", rapid.IntRange(0, 40).Draw(t, "rid")) }
func drawUser(t *rapid.T) string {
	return rapid.SampledFrom([]string{"u", "u ", "\x00,", "v"}).Draw(t, "user")
}

func (w *twins) reserve(t *rapid.T) {
	ask := flashsale.Ask{
		RID: drawRID(t), User: drawUser(t), Quantity: rapid.Int64Range(0, 3).Draw(t, "quantity"),
		OnlyKnown: rapid.IntRange(0, 9).Draw(t, "only known") == 0, Origin: rapid.SampledFrom([]string{"", "", "r1:1"}).Draw(t, "origin"),
	}
	ask.Body = flashsale.BodyHash(w.key, ask.User, ask.Quantity)
	w.same(t, "reserve", func(s stocktest.Stock, _ int) (any, error) { return s.Reserve(context.Background(), w.key, 1, &ask) })
}

func (w *twins) apply(t *rapid.T) {
	effects := make([]flashsale.Effect, rapid.IntRange(0, 4).Draw(t, "effects"))
	for i := range effects {
		effects[i] = flashsale.Effect{
			RID: drawRID(t), User: drawUser(t), Quantity: rapid.Int64Range(1, 3).Draw(t, "quantity"), Version: rapid.Int64Range(1, 4).Draw(t, "version"),
			State: flashsale.State(rapid.IntRange(int(flashsale.Reserved), int(flashsale.Rejected)).Draw(t, "state")),
		}
	}
	w.same(t, "apply", func(s stocktest.Stock, _ int) (any, error) {
		return s.Apply(context.Background(), w.key, 1, effects, nil)
	})
}

func (w *twins) lull(t *rapid.T) {
	ask := flashsale.LullAsk{After: rapid.Int64Range(0, 20).Draw(t, "after"), Limit: rapid.IntRange(0, 100).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "the last one") {
		marks := w.lulls(t, flashsale.LullAsk{Limit: int(ask.After)})
		if n := len(marks); n > 0 {
			ask.After, ask.Last = int64(n), marks[n-1]
		}
	}
	w.lulls(t, ask)
}

func (w *twins) lulls(t *rapid.T, ask flashsale.LullAsk) (marks []uint64) {
	w.same(t, "lull", func(s stocktest.Stock, _ int) (any, error) {
		l, err := s.Lull(context.Background(), w.key, 1, ask)
		l.Marks = append([]uint64{}, l.Marks...) // none is none
		marks = l.Marks
		return l, err
	})
	return marks
}

func (w *twins) pull(t *rapid.T) {
	limit := rapid.IntRange(0, 10).Draw(t, "limit")
	w.same(t, "pull", func(s stocktest.Stock, i int) (any, error) {
		jobs, err := s.Pull(context.Background(), w.key, 1, "c", limit, 5*time.Second)
		w.jobs[i] = append(w.jobs[i], jobs...)
		nameless := make([]flashsale.Job, len(jobs))
		for k := range jobs {
			nameless[k] = jobs[k]
			nameless[k].ID = ""
		}
		return nameless, err
	})
}

// one draws a job that was pulled at some time; nothing tells whether it is still in the queue.
func (w *twins) one(t *rapid.T) int {
	if len(w.jobs[0]) == 0 {
		t.Skip("none")
	}
	return rapid.IntRange(0, len(w.jobs[0])-1).Draw(t, "job")
}

func (w *twins) ack(t *rapid.T) {
	job := w.one(t)
	w.same(t, "ack", func(s stocktest.Stock, i int) (any, error) {
		return s.Apply(context.Background(), w.key, 1, nil, []string{w.jobs[i][job].ID})
	})
}

func (w *twins) bury(t *rapid.T) {
	job := w.one(t)
	w.same(t, "bury", func(s stocktest.Stock, i int) (any, error) {
		return nil, s.Bury(context.Background(), w.key, 1, &w.jobs[i][job], "poison")
	})
}

func (w *twins) revive(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "letters")
	w.same(t, "revive", func(s stocktest.Stock, _ int) (any, error) {
		dead, err := s.Dead(context.Background(), w.key, 1, n)
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, d := range dead {
			ids = append(ids, d.ID)
		}
		return s.Revive(context.Background(), w.key, 1, ids)
	})
}

func (w *twins) adjust(t *rapid.T) {
	w.adjusted += rapid.IntRange(0, 1).Draw(t, "another")
	id, delta := fmt.Sprint("op-", w.adjusted), rapid.Int64Range(-20, 10).Draw(t, "delta")
	w.same(t, "adjust", func(s stocktest.Stock, _ int) (any, error) {
		return s.Adjust(context.Background(), w.key, 1, id, delta)
	})
}

func (w *twins) configure(t *rapid.T) {
	w.settings.Version += rapid.Int64Range(0, 1).Draw(t, "newer")
	w.settings.Status = rapid.SampledFrom([]flashsale.Status{flashsale.Open, flashsale.Open, flashsale.Open, flashsale.Paused}).Draw(t, "status")
	w.settings.Rate = rapid.SampledFrom([]int64{0, 1, 2, 19, 1000}).Draw(t, "rate")
	w.same(t, "configure", func(s stocktest.Stock, _ int) (any, error) {
		return nil, s.Configure(context.Background(), w.key, 1, &w.settings)
	})
}

func (w *twins) due(t *rapid.T) {
	limit := rapid.IntRange(0, 30).Draw(t, "limit")
	w.same(t, "due", func(s stocktest.Stock, _ int) (any, error) { return s.Due(context.Background(), w.key, 1, limit) })
}

func (w *twins) forget(t *rapid.T) {
	rids := []string{drawRID(t), drawRID(t), drawRID(t)}
	w.same(t, "forget", func(s stocktest.Stock, _ int) (any, error) { return s.Forget(context.Background(), w.key, 1, rids) })
}

func (w *twins) wait(t *rapid.T) {
	w.passed += rapid.SampledFrom([]time.Duration{time.Microsecond, 13 * time.Millisecond, time.Second, 5 * time.Second, 45 * time.Second, 90 * time.Second, 24 * time.Hour}).Draw(t, "wait")
}

// look compares all that can be seen.
func (w *twins) look(t *rapid.T) {
	w.same(t, "view", func(s stocktest.Stock, _ int) (any, error) {
		v, err := s.View(context.Background(), w.key)
		v.Run = ""
		return v, err
	})
	w.same(t, "dead", func(s stocktest.Stock, _ int) (any, error) {
		dead, err := s.Dead(context.Background(), w.key, 1, 100)
		for i := range dead {
			dead[i].ID = ""
		}
		return dead, err
	})
	rids := make([]string, 41)
	for i := range rids {
		rids[i] = fmt.Sprint("r", i)
	}
	w.same(t, "find", func(s stocktest.Stock, _ int) (any, error) { return s.Find(context.Background(), w.key, 1, rids) })
}
