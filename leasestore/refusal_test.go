package leasestore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

// TestDenialsAreExact: what a denial says, made here without a call, is what the store would say, but for the time of a call.
func TestDenialsAreExact(t *testing.T) {
	for _, limit := range []string{
		"token_bucket 7/1m burst=50", "token_bucket 1003/7h burst=60", "fixed_window 50/1h", "fixed_window 50/day",
		"sliding_window 50/1h cells=6", "sliding_window 50/10s",
	} {
		t.Run(limit, func(t *testing.T) {
			inBubble(t, leasestore.Config{}, func(r *rig) {
				c := charge(limit)
				for r.take(c).Allowed {
					pause(300 * time.Microsecond)
				}
				before, _ := r.calls.count()
				for i := range int64(200) {
					c.Cost = 1 + i%5
					d := r.take(c)
					if c.Cost > r.strict(c, 0).Remaining && d.Allowed {
						t.Fatalf("%d: allowed: %+v", i, d)
					}
					r.sameDenial(c, d.Outcomes[0])
					pause(time.Millisecond)
				}
				if after, _ := r.calls.count(); after-before > 20 {
					t.Errorf("%d calls for 200 denials", after-before)
				}
			})
		})
	}
}

// sameDenial compares a denial with the store's. It was said a call's time ago at most.
func (r *rig) sameDenial(c headgate.Charge, got headgate.Outcome) {
	r.t.Helper()
	want := r.strict(c, c.Cost)
	apart := func(a, b time.Duration) bool { return a-b > 2*rtt || b-a > 2*rtt }
	if c.Limit.Algorithm() == headgate.AlgSlidingWindow && got.RetryAfter.After < want.RetryAfter.After {
		want.RetryAfter.After = got.RetryAfter.After // that of a smaller cost, which the greater one cannot pass before
	}
	if got.Reason != want.Reason || got.Remaining != want.Remaining || got.HasRemaining != want.HasRemaining || got.RetryAfter.State != want.RetryAfter.State ||
		apart(got.RetryAfter.After, want.RetryAfter.After) || apart(got.ResetAfter, want.ResetAfter) || got.Receipt.Charged != 0 {
		r.t.Fatalf("cost %d:\nwant %+v\n got %+v", c.Cost, want, got)
	}
	if got.RetryAfter.After%time.Microsecond != 0 || got.ResetAfter%time.Microsecond != 0 {
		r.t.Errorf("no whole microseconds: %+v", got)
	}
}

// TestDeniedKeysCostFewCalls: the pauses between calls grow with the denial, and at its end the first request is allowed.
func TestDeniedKeysCostFewCalls(t *testing.T) {
	for _, limit := range []string{"fixed_window 10/1m", "sliding_window 10/1m cells=4", "token_bucket 10/10m burst=10"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge(limit)
			for r.take(c).Allowed {
			}
			before, _ := r.calls.count()
			end := r.strict(c, 1).RetryAfter.After
			began := time.Now()
			var last headgate.Outcome
			for time.Since(began) < end-20*time.Millisecond {
				d := r.take(c)
				if d.Allowed {
					t.Fatalf("%s: allowed after %s of %s", limit, time.Since(began), end)
				}
				last = d.Outcomes[0]
				pause(7 * time.Millisecond)
			}
			if after, _ := r.calls.count(); after-before > 50 {
				t.Errorf("%s: %d calls in a denial of %s", limit, after-before, end)
			}
			pause(last.RetryAfter.After)
			r.allow(c)
		})
	}
}

// TestFindsWhatOthersGaveBack: units that are refunded elsewhere are found after a time in proportion to the denial's.
func TestFindsWhatOthersGaveBack(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 10/1h")
		theirs := c
		theirs.Cost = 4
		d, err := headgate.Take(context.Background(), r.mem, theirs)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		began := time.Now()
		for r.take(c).Allowed {
		}
		for time.Since(began) < time.Second {
			r.take(c)
			pause(time.Millisecond)
		}
		if err := r.mem.Refund(context.Background(), []headgate.Charge{theirs}, &d); err != nil {
			t.Fatal(err)
		}
		for !r.take(c).Allowed {
			pause(time.Millisecond)
		}
		if since := time.Since(began); since > 3*time.Second {
			t.Errorf("found %s after the denial began", since)
		}
	})
}

// TestRetryAfterIsKept: who waits as long as he is told is not denied by what was known before, also where units come back sooner than
// the next call.
func TestRetryAfterIsKept(t *testing.T) {
	for _, limit := range []string{"token_bucket 1000/s burst=10", "token_bucket 10/s burst=10", "fixed_window 10/50ms", "sliding_window 10/100ms cells=2"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge(limit)
			for range 5 {
				d := r.take(c)
				for d.Allowed {
					d = r.take(c)
				}
				pause(d.Outcomes[0].RetryAfter.After)
				if d := r.take(c); !d.Allowed {
					t.Errorf("%s: %+v", limit, d)
				}
			}
		})
	}
}

// TestDenialOfAnotherLimit says nothing of the one that a charge has now.
func TestDenialOfAnotherLimit(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 10/1h")
		for r.take(c).Allowed {
		}
		if d := r.take(c); d.Allowed {
			t.Fatalf("%+v", d)
		}
		r.allow(charge("fixed_window 11/1h"))
	})
}

// TestOneCallInAGap: a call that brings fewer units than it asked for is the last for a while.
func TestOneCallInAGap(t *testing.T) {
	for _, limit := range []string{"fixed_window 1000/1h", "token_bucket 1/1h burst=1000"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c, theirs, all := charge(limit), charge(limit), charge(limit)
			r.warm(100, time.Millisecond, c)
			theirs.Cost, all.Cost = r.left(c)-5, r.Stats().Held
			if d, err := headgate.Take(context.Background(), r.mem, theirs); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			r.allow(all)
			before, _ := r.calls.count()
			r.warm(5, 0, c)
			for range 10 {
				if d := r.take(c); d.Allowed {
					t.Errorf("%s: %+v", limit, d)
				}
			}
			if after, _ := r.calls.count(); after != before+1 {
				t.Errorf("%s: %d calls for 5 units and 10 denials", limit, after-before)
			}
		})
	}
}

// TestFindsWhatItGaveBack: the pauses that a denied key has brought about do not keep units from it that came back through the same
// store, be it that a client gave them back or that they were too few for a large cost, and died in hand.
func TestFindsWhatItGaveBack(t *testing.T) {
	const soon = 20 * time.Millisecond
	for _, limit := range []string{"fixed_window 100/1h", "token_bucket 1/1m burst=100", "sliding_window 100/1m cells=6"} {
		for _, denials := range []int{700, 1200, 4300} {
			for _, theirs := range []int64{90, 100} {
				inBubble(t, leasestore.Config{}, func(r *rig) {
					c, large, most := charge(limit), charge(limit), charge(limit)
					large.Cost, most.Cost = 20, theirs
					d := r.allow(most)
					for range denials {
						if r.take(large).Allowed {
							t.Fatalf("%s: allowed", limit)
						}
						pause(time.Millisecond)
					}
					if theirs == 100 {
						refund(r, &d, most)
					}
					began := time.Now()
					for !r.take(c).Allowed {
						pause(time.Millisecond)
					}
					if since := time.Since(began); since > soon {
						t.Errorf("%s: found after %s", limit, since)
					}
				})
			}
		}
	}
}

// TestManyDenialsAtOnce are one: the pause does not double with each of them.
func TestManyDenialsAtOnce(t *testing.T) {
	for _, mode := range []headgate.Mode{headgate.Check, headgate.Pay} {
		for _, limit := range []string{"fixed_window 10/1h", "sliding_window 10/1h cells=6"} {
			inBubble(t, leasestore.Config{}, func(r *rig) {
				c, theirs := charge(limit), charge(limit)
				theirs.Cost = 10
				d, err := headgate.Take(context.Background(), r.mem, theirs)
				if err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				var wg sync.WaitGroup
				for i := range int64(40) {
					one := c
					one.Mode, one.Cost = mode, 10-i%10
					wg.Go(func() {
						if d, err := headgate.Take(context.Background(), r.Store, one); err != nil || d.Allowed {
							t.Errorf("%+v, %v", d, err)
						}
					})
				}
				wg.Wait()
				if err := r.mem.Refund(context.Background(), []headgate.Charge{theirs}, &d); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				for !r.take(c).Allowed {
					pause(time.Millisecond)
				}
				if since := time.Since(began); since > 100*time.Millisecond {
					t.Errorf("%s, %s: what came back was found after %s", limit, mode, since)
				}
			})
		}
	}
}

func TestNever(t *testing.T) {
	for _, limit := range []string{"token_bucket 10/1h", "fixed_window 10/1h", "sliding_window 10/1h", "token_bucket 0/s burst=5", "fixed_window 0/1m"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge(limit)
			for r.take(c).Allowed { // and then it is known to be denied
			}
			c.Cost = 11
			for range 3 {
				d := r.take(c)
				if o := d.Outcomes[0]; d.Allowed || o.Reason != headgate.ReasonCostExceedsLimit || o.RetryAfter.State != headgate.RetryNever {
					t.Errorf("%s: %+v", limit, d)
				}
			}
			c.Cost = headgate.MaxCount + 1
			if d, err := headgate.Take(context.Background(), r.Store, c); headgate.CodeOf(err) != headgate.CodeInvalidCost {
				t.Errorf("%s: %+v, %v", limit, d, err)
			}
		})
	}
}

// TestRemainingDoesNotRise: what is left only becomes less, by what is taken at least, but for what the store itself gives back, and for
// one take that meets the answer of a call.
func TestRemainingDoesNotRise(t *testing.T) {
	for _, large := range []int64{1, 7, 40} { // every 13th; such may find its units in another lease than the current one, or in several
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge("fixed_window 5000/1h")
			last, rose := int64(5000), int64(0)
			for i := 0; last > 0; i++ {
				if c.Cost = 1; i%13 == 0 {
					c.Cost = min(large, last)
				}
				d := r.allow(c)
				o := d.Outcomes[0]
				rose += max(0, o.Remaining-(last-c.Cost))
				if st := r.Stats(); rose > int64(st.Refunded+st.Calls) || o.Receipt.Charged != c.Cost || !o.HasRemaining || d.Binding != 0 {
					t.Fatalf("take %d: %d left before, %+v", i, last, d)
				}
				last = o.Remaining
				pause(100 * time.Microsecond)
			}
			if d := r.take(c); d.Allowed || d.Binding != 0 || r.Stats().Held != 0 {
				t.Errorf("%+v, %+v", d, r.Stats())
			}
		})
	}
}

// TestMixedCosts: a large cost is served from several leases, and is not kept out by what is in hand.
func TestMixedCosts(t *testing.T) {
	for _, limit := range []string{"fixed_window 1000/1h", "token_bucket 1/1h burst=1000", "sliding_window 1000/1h"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge(limit)
			total := int64(0)
			for i := range int64(400) {
				c.Cost = 1 + i%7*(i%3)
				if d := r.take(c); d.Allowed {
					total += c.Cost
				}
				pause(500 * time.Microsecond)
			}
			for c.Cost = 13; c.Cost > 0; {
				if !r.take(c).Allowed {
					c.Cost--
					pause(5 * time.Millisecond)
					continue
				}
				total += c.Cost
			}
			if total != 1000 {
				t.Errorf("%s: %d of 1000 allowed", limit, total)
			}
		})
	}
}

func ExampleNew() {
	upstream := headgate.Limiter(nil) // a redisstore.Store, say
	leased := leasestore.New(upstream, leasestore.Config{})
	defer leased.Close()
	_, err := headgate.Allow(context.Background(), leased, headgate.MustParseLimit("token_bucket 100/s"), "ada")
	fmt.Println(err)
	// Output: leasestore: the store behind it cannot decide this
}
