package httpverdict

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type needs []Need

func (needs) Decide(context.Context, *Request) *Verdict { return &Verdict{} }
func (n needs) Needs() []Need                           { return n }

func TestCheckNeeds(t *testing.T) {
	if err := CheckNeeds(nil, "front"); err == nil || err.Error() != "front: the decider is nil" {
		t.Errorf("nil decider: %v", err)
	}
	wait := Need{Kind: NeedWait, Rule: "pay", Field: "limits[0]"}
	if err := CheckNeeds(needs{wait}, "front", NeedRelease, NeedWait); err != nil {
		t.Errorf("met: %v", err)
	}
	err := CheckNeeds(needs{wait}, "front", NeedRelease)
	want := `front cannot do what rule "pay" asks for in limits[0]: wait; change the rule or use another front`
	if err == nil || err.Error() != want {
		t.Errorf("unmet: %v, want %s", err, want)
	}
}

func TestHoldsAreBoundedAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHolds(1)
		start := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { first <- h.Wait(ctx, time.Hour) }()
		synctest.Wait()
		if err := h.Wait(t.Context(), time.Second); !errors.Is(err, ErrTooManyHeld) {
			t.Errorf("second hold: %v, want ErrTooManyHeld", err)
		}
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("left: %v, want context.Canceled", err)
		}
		if err := h.Wait(t.Context(), 3*time.Second); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("held %s: %v, want 3s and nil", time.Since(start), err)
		}
		if h.Held() != 0 {
			t.Errorf("held = %d after all left", h.Held())
		}
	})
}

func TestFinishOutlivesTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	v := &Verdict{Done: func(ctx context.Context, res Result) {
		calls++
		if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded || res.Status != 201 || res.Bytes != 7 {
			t.Errorf("Done got err %v, bounded %t, %+v", ctx.Err(), bounded, res)
		}
	}}
	v.Finish(ctx, Result{Status: 201, Bytes: 7})
	(&Verdict{}).Finish(ctx, Result{})
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}
