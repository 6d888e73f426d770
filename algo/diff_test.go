package algo_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
	"github.com/headgate-io/headgate/limitertest/oracle"
)

var diffLimits = []string{
	"token_bucket 3/1m burst=3", "token_bucket 7/1s burst=5", "token_bucket 0/s", "token_bucket 0.3/s burst=4", "token_bucket 420/1m burst=5",
	"fixed_window 5/1s", "fixed_window 3/1s", "fixed_window 5/7s", "fixed_window 4/day zone=America/New_York", "fixed_window 4/hour zone=Australia/Lord_Howe", "fixed_window 0/1s",
	"sliding_log 5/1s", "sliding_log 3/1s", "sliding_log 4/3s", "sliding_log 0/3s",
	"sliding_window 10/1s cells=4", "sliding_window 6/1s cells=4", "sliding_window 10/1s", "sliding_window 9/3s cells=3", "sliding_window 0/3s",
	"leaky_bucket 3/1s capacity=5", "leaky_bucket 7/1s max_wait=900ms", "leaky_bucket 7/1s capacity=6 max_wait=500ms", "leaky_bucket 0/s capacity=3", "leaky_bucket 5/1s max_wait=0s",
	"concurrency 2 ttl=3s", "concurrency 3 ttl=1s", "concurrency 0 ttl=1s",
}

type cellStore map[string]*algo.Cell

func TestDiff(t *testing.T) {
	var ls []headgate.Limit
	for _, x := range diffLimits {
		ls = append(ls, headgate.MustParseLimit(x))
	}
	base := time.Date(2026, 3, 8, 6, 30, 0, 0, time.UTC)
	rapid.Check(t, func(rt *rapid.T) {
		o := oracle.New(oracle.Config{})
		cells := cellStore{}
		var z algo.Zones
		now := base
		narrow := rapid.SliceOfN(rapid.IntRange(0, len(ls)-1), 1, 3).Draw(rt, "limits")
		locks := []*headgate.Lockout{nil, {After: 2, Within: time.Second, For: time.Second, Max: 4 * time.Second}}
		type took struct {
			c    []headgate.Charge
			a, b headgate.Decision
		}
		var past []*took
		cell := func(c *headgate.Charge) *algo.Cell {
			id := c.Slot + "/" + c.Key
			if cells[id] == nil {
				cells[id] = &algo.Cell{}
			}
			return cells[id]
		}
		draw := func(slot string) headgate.Charge {
			l := ls[narrow[rapid.IntRange(0, len(narrow)-1).Draw(rt, "l")]]
			c := headgate.Charge{Slot: slot, Key: "k", Limit: l, Cost: int64(rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, 7}).Draw(rt, "cost")),
				Mode: rapid.SampledFrom([]headgate.Mode{0, 0, 0, 1, 2, 3}).Draw(rt, "mode")}
			if l.Algorithm() == headgate.AlgConcurrency {
				c.Cost = min(c.Cost, 1)
				c.Holder = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "holder")
			}
			c.Lockout = rapid.SampledFrom([]*headgate.Lockout{nil, nil, locks[1]}).Draw(rt, "lock")
			return c
		}
		for i := 0; i < 30; i++ {
			now = now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 100_000, 333_333, 250_000, 1_000_000, 3_000_000, 20_000_000, -1, -100_000, -700_000, -3_000_000, -40_000_000, 3600_000_000 * 5, -3600_000_000 * 30}).Draw(rt, "dt")) * time.Microsecond)
			us := now.UnixMicro()
			switch rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3}).Draw(rt, "op") {
			case 0:
				n := rapid.IntRange(1, 2).Draw(rt, "n")
				var cs []headgate.Charge
				var cl []*algo.Cell
				for j := range n {
					cs = append(cs, draw(fmt.Sprint("s", j)))
					cl = append(cl, cell(&cs[j]))
				}
				tk := &took{c: cs}
				if err := o.At(now).Take(context.Background(), cs, &tk.a); err != nil {
					rt.Fatal(err)
				}
				algo.Take(&z, us, cs, cl, &tk.b)
				for j := range tk.a.Outcomes {
					if tk.a.Outcomes[j].Receipt.Charged == 0 || cs[j].Limit.Algorithm() == headgate.AlgConcurrency {
						tk.a.Outcomes[j].Receipt.Mark, tk.b.Outcomes[j].Receipt.Mark = 0, 0
					}
				}
				if !reflect.DeepEqual(tk.a, tk.b) {
					rt.Fatalf("step %d at %d\ncharges %v\noracle %+v\nalgo   %+v", i, us, cs, tk.a, tk.b)
				}
				past = append(past, tk)
			case 1:
				if len(past) == 0 {
					continue
				}
				tk := past[rapid.IntRange(0, len(past)-1).Draw(rt, "past")]
				cs := append([]headgate.Charge(nil), tk.c...)
				var cl []*algo.Cell
				for j := range cs {
					if rapid.Bool().Draw(rt, "other") {
						x := draw("x").Limit
						if (x.Algorithm() == headgate.AlgConcurrency) == (cs[j].Limit.Algorithm() == headgate.AlgConcurrency) {
							cs[j].Limit = x
						}
					}
					cl = append(cl, cell(&cs[j]))
				}
				if err := o.At(now).(headgate.Refunder).Refund(context.Background(), cs, &tk.a); err != nil {
					rt.Fatal(err)
				}
				algo.Refund(&z, us, cs, cl, &tk.b)
				if !reflect.DeepEqual(tk.a, tk.b) {
					rt.Fatalf("step %d refund at %d\ncharges %v\noracle %+v\nalgo   %+v", i, us, cs, tk.a, tk.b)
				}
			default:
				c := draw("s0")
				l, ok := c.Limit.(headgate.Concurrency)
				if !ok {
					continue
				}
				if rapid.Bool().Draw(rt, "renew") {
					a, err := o.At(now).(headgate.Slots).Renew(context.Background(), &c)
					if b := algo.Renew(cell(&c), l, c.Holder, us); err != nil || a != b {
						rt.Fatalf("step %d renew %v %v", i, a, b)
					}
				} else {
					if err := o.At(now).(headgate.Slots).Release(context.Background(), &c); err != nil {
						rt.Fatal(err)
					}
					algo.Release(cell(&c), l, c.Holder, us)
				}
			}
		}
	})
}
