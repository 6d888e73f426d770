package leasestore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
)

func on(slot, limit string) headgate.Charge {
	return headgate.One(slot, "k", headgate.MustParseLimit(limit))
}

// TestSeveralWithoutACall: charges that leases can pay cost no call; if one is known to be denied, nothing does, and nothing is
// charged.
func TestSeveralWithoutACall(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		a, b := on("a", "fixed_window 100000/1h"), on("b", "token_bucket 200/1h burst=200")
		n := 0
		for r.take(a, b).Allowed {
			n++
			pause(time.Millisecond)
		}
		if n != 200 {
			t.Fatalf("%d allowed", n)
		}
		takes, _ := r.calls.count()
		if takes > 40 {
			t.Errorf("%d calls", takes)
		}
		for range 100 {
			d := r.take(a, b)
			if d.Allowed || d.Binding != 1 || !d.Outcomes[0].Allowed || d.Outcomes[0].Receipt.Charged != 0 || d.Outcomes[1].Allowed {
				t.Fatalf("%+v", d)
			}
		}
		if after, _ := r.calls.count(); after-takes > 2 {
			t.Errorf("%d calls for 100 denials", after-takes)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := r.left(a); got != 100_000-200 {
			t.Errorf("%d left of the one that did not deny", got)
		}
	})
}

// TestALookBesideAnAsk: the time of one charge's denial is looked for; the other, of which nothing is in hand just now, is not taken
// for denied because of that.
func TestALookBesideAnAsk(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		site, user := on("site", "fixed_window 1000000/1h"), on("user", "sliding_window 5/1m cells=6")
		r.warm(100, time.Millisecond, site)
		for range 5 {
			r.allow(user)
		}
		all := site
		all.Cost = r.Stats().Held
		r.allow(all)
		for range 3 {
			if d := r.take(site, user); d.Allowed || d.Binding != 1 || !d.Outcomes[0].Allowed {
				t.Fatalf("%+v", d)
			}
		}
		r.allow(site)
	})
}

// TestSeveralWithStrict: a charge that cannot be leased decides with the others; what was in hand goes back if it denies.
func TestSeveralWithStrict(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		a, strict, shadow := on("a", "fixed_window 100000/1h"), on("log", "sliding_log 3/1h"), on("shadow", "fixed_window 2/1h")
		shadow.Mode = headgate.Shadow
		r.warm(300, time.Millisecond, a)
		for i := range 6 {
			d := r.take(a, strict, shadow)
			want := [3]bool{i < 3, true, i < 2}
			if got := [3]bool{d.Allowed, d.Outcomes[0].Allowed, d.Outcomes[2].Allowed}; got != want {
				t.Errorf("take %d: want %v, got %v", i, want, got)
			}
			if charged := d.Outcomes[0].Receipt.Charged; charged == 1 != d.Allowed {
				t.Errorf("take %d: %d charged", i, charged)
			}
			if !d.Allowed && d.Binding != 1 {
				t.Errorf("take %d: %d binds", i, d.Binding)
			}
		}
		r.calls.mu.Lock()
		if got := len(r.calls.last); got != 2 {
			t.Errorf("%d charges went to the upstream; one was in hand", got)
		}
		r.calls.mu.Unlock()
		_ = r.Close()
		if got := r.left(a); got != 100_000-303 {
			t.Errorf("%d left", got)
		}
	})
}

// TestErrorOfAPart names the charge at fault by its place in the take.
func TestErrorOfAPart(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		a, log := on("a", "fixed_window 100000/1h"), on("log", "sliding_log 3/1h")
		r.warm(300, time.Millisecond, a)
		held := r.Stats().Held
		r.calls.set(&headgate.Error{Code: headgate.CodeClockSkew, Charge: 0}, false)
		d := headgate.Decision{Allowed: true, Outcomes: make([]headgate.Outcome, 2)}
		err := r.Take(context.Background(), []headgate.Charge{a, log}, &d)
		var e *headgate.Error
		if !errors.As(err, &e) || e.Charge != 1 || e.Code != headgate.CodeClockSkew || d.Allowed || len(d.Outcomes) != 0 {
			t.Errorf("%+v, %v", d, err)
		}
		if got := r.Stats().Held; got != held {
			t.Errorf("%d held before, %d after", held, got)
		}
		r.calls.set(nil, false)
	})
}

// TestModes: a check is judged by what is in hand and spends nothing, a settling charge takes from it; peeks, shadows and charges with
// a lockout go to the upstream.
func TestModes(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		pay := charge("fixed_window 100000/1h")
		r.warm(300, time.Millisecond, pay)
		calls, _ := r.calls.count()
		held := r.Stats().Held
		check, settle := pay, pay
		check.Mode, check.Cost = headgate.Check, 5
		settle.Mode, settle.Cost = headgate.Settle, 5
		if o := r.allow(check).Outcomes[0]; o.Receipt.Charged != 0 || o.Remaining != 100_000-300 {
			t.Errorf("check: %+v", o)
		}
		if o := r.allow(settle).Outcomes[0]; o.Receipt.Charged != 5 || o.Remaining != 100_000-305 {
			t.Errorf("settle: %+v", o)
		}
		if after, _ := r.calls.count(); after != calls || r.Stats().Held != held-5 {
			t.Errorf("%d calls, %d held of %d", after-calls, r.Stats().Held, held)
		}
		peek, shadow, shut := pay, pay, pay
		peek.Cost, shadow.Mode = 0, headgate.Shadow
		shut.Lockout = &headgate.Lockout{After: 1, For: time.Minute}
		for i, c := range []headgate.Charge{peek, shadow, shut} {
			r.allow(c)
			if after, _ := r.calls.count(); after != calls+i+1 {
				t.Errorf("charge %d did not go to the upstream", i)
			}
		}
	})
}

// TestSettleTakesWhatThereIs: of the upstream and in hand.
func TestSettleTakesWhatThereIs(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		pay := charge("fixed_window 400/1h")
		r.warm(300, time.Millisecond, pay)
		settle := pay
		settle.Mode, settle.Cost = headgate.Settle, 399
		d := r.allow(settle)
		if o := d.Outcomes[0]; o.Receipt.Charged != 100 || o.Remaining != 0 {
			t.Errorf("%+v", o)
		}
		if d := r.take(pay); d.Allowed {
			t.Errorf("beyond the limit: %+v", d)
		}
		refund(r, &d, settle)
		if d.Outcomes[0].Receipt.Charged != 0 {
			t.Errorf("%+v", d)
		}
		_ = r.Close()
		if got := r.left(pay); got != 100 {
			t.Errorf("%d left", got)
		}
	})
}

// TestSettleTakesWhatIsInHand: also if nothing was asked for lately, and if it costs more than the limit ever has.
func TestSettleTakesWhatIsInHand(t *testing.T) {
	for _, cost := range []int64{399, 1000} {
		for _, limit := range []string{"fixed_window 400/1h", "token_bucket 1/1h burst=400", "sliding_window 400/1h"} {
			inBubble(t, leasestore.Config{}, func(r *rig) {
				c := charge(limit)
				r.warm(300, time.Millisecond, c)
				held := r.Stats().Held
				pause(400 * time.Millisecond)
				theirs := c
				theirs.Cost = r.left(c)
				if d, err := headgate.Take(context.Background(), r.mem, theirs); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				c.Mode, c.Cost = headgate.Settle, cost
				d := r.allow(c)
				if o := d.Outcomes[0]; held == 0 || o.Receipt.Charged != held || o.Remaining != 0 {
					t.Errorf("%s: %d in hand: %+v", limit, held, o)
				}
				refund(r, &d, c)
				if got := r.Stats().Held + r.left(c); d.Outcomes[0].Receipt.Charged != 0 || got != held {
					t.Errorf("%s: %d after the refund, %d before", limit, got, held)
				}
			})
		}
	}
}

// TestRefund: soon it goes back into the lease, without a call; later to the upstream; never twice.
func TestRefund(t *testing.T) {
	for _, limit := range []string{"fixed_window 100000/1h", "token_bucket 1/1h burst=100000", "sliding_window 100000/1h cells=6"} {
		inBubble(t, leasestore.Config{}, func(r *rig) {
			c := charge(limit)
			c.Cost = 3
			r.warm(300, time.Millisecond, c)
			d := r.allow(c)
			_, before := r.calls.count()
			held := r.Stats().Held
			part := c
			part.Cost = 2
			refund(r, &d, part)
			if got := d.Outcomes[0].Receipt.Charged; got != 1 || r.Stats().Held != held+2 {
				t.Errorf("%s: %d left to give back, %d held of %d", limit, got, r.Stats().Held, held)
			}
			refund(r, &d, c)
			refund(r, &d, c)
			if _, after := r.calls.count(); r.Stats().Held != held+3 || after > before+1 {
				t.Errorf("%s: %d calls, %d held of %d", limit, after-before, r.Stats().Held, held)
			}
			late := r.allow(c)
			pause(5 * time.Second)
			refund(r, &late, c)
			if got := r.left(c); got != 100_000-900 || r.Stats().Held != 0 {
				t.Errorf("%s: %d left, %+v", limit, got, r.Stats())
			}
		})
	}
}

func TestReset(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		c := charge("fixed_window 500/1h")
		r.warm(400, time.Millisecond, c)
		if r.Stats().Held == 0 {
			t.Fatal("nothing is held")
		}
		if err := r.Reset(context.Background(), c.Slot, c.Key); err != nil {
			t.Fatal(err)
		}
		if got, st := r.left(c), r.Stats(); got != 500 || st.Held != 0 || st.Refunded != 0 {
			t.Errorf("%d left, %+v", got, st)
		}
		n := 0
		for r.take(c).Allowed {
			n++
		}
		if n != 500 {
			t.Errorf("%d allowed after the reset", n)
		}
	})
}

// bare is a limiter without any ability.
type bare struct{ headgate.Limiter }

func TestAbilitiesThatTheUpstreamLacks(t *testing.T) {
	inBubble(t, leasestore.Config{}, func(r *rig) {
		s := leasestore.New(bare{r.mem}, leasestore.Config{})
		ctx, c := context.Background(), charge("fixed_window 1000/1h")
		d, _ := headgate.Take(ctx, s, c)
		_, renewed := s.Renew(ctx, &c)
		_, inspected := s.Inspect(ctx, "s", "k")
		_, at := headgate.Take(ctx, s.At(time.Now()), c)
		for what, err := range map[string]error{
			"refund": s.Refund(ctx, []headgate.Charge{c}, &d), "renew": renewed, "release": s.Release(ctx, &c), "reset": s.Reset(ctx, "s", "k"),
			"inspect": inspected, "at": at,
		} {
			if headgate.CodeOf(err) != headgate.CodeUnsupported {
				t.Errorf("%s: %v", what, err)
			}
		}
		for range 100 {
			if _, err := headgate.Take(ctx, s, c); err != nil {
				t.Fatal(err)
			}
			pause(time.Millisecond)
		}
		pause(3 * time.Second)
		if st := s.Stats(); st.Refunded != 0 || st.Lost == 0 || st.Held != 0 {
			t.Errorf("what cannot be given back is lost: %+v", st)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// seen is what an observer was told.
type seen struct{ asked, granted, refunded, lost, calls, failed int64 }

func (s *seen) Leased(_ string, asked, granted int64, _ time.Duration, code string) {
	s.calls++
	s.asked, s.granted = s.asked+asked, s.granted+granted
	if code != "" {
		s.failed++
	}
}

func (s *seen) Returned(_ string, refunded, lost int64) {
	s.refunded, s.lost = s.refunded+refunded, s.lost+lost
}

// TestFigures: the observer and Stats tell the same, and the units add up.
func TestFigures(t *testing.T) {
	var o seen
	inBubble(t, leasestore.Config{Observer: &o}, func(r *rig) {
		c := charge("fixed_window 600/1h")
		n := int64(0)
		for range 1000 {
			if r.take(c).Allowed {
				n++
			}
			pause(time.Millisecond)
		}
		st := r.Stats()
		if want := (seen{int64(st.Asked), int64(st.Granted), int64(st.Refunded), int64(st.Lost), int64(st.Calls), int64(st.Failed)}); o != want {
			t.Errorf("the observer was told %+v, the figures are %+v", o, want)
		}
		if strict := n + o.refunded + o.lost - o.granted; n != 600 || strict < 1 || strict > 3 {
			t.Errorf("%d allowed, %d of them without a lease; %+v", n, strict, o)
		}
	})
}
