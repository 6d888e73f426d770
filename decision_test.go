package headgate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func TestConclude(t *testing.T) {
	ok := func(remaining int64) headgate.Outcome {
		return headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: remaining}
	}
	queue := headgate.Outcome{Allowed: true}
	no := func(state headgate.RetryState, after time.Duration) headgate.Outcome {
		return headgate.Outcome{RetryAfter: headgate.Retry{State: state, After: after}}
	}
	in := func(d time.Duration) headgate.Outcome { return no(headgate.RetryAfter, d) }
	never, unknown := no(headgate.RetryNever, 0), no(headgate.RetryUnknown, 0)
	pay := func(cost int64) headgate.Charge { return headgate.Charge{Cost: cost} }
	mode := func(m headgate.Mode) headgate.Charge { return headgate.Charge{Cost: 1, Mode: m} }
	for _, c := range []struct {
		name     string
		charges  []headgate.Charge
		outcomes []headgate.Outcome
		allowed  bool
		binding  int
	}{
		{"nothing", nil, nil, true, -1},
		{"the least remaining", []headgate.Charge{pay(1), pay(1), pay(1)}, []headgate.Outcome{ok(5), ok(3), ok(4)}, true, 1},
		{"the first of equals", []headgate.Charge{pay(1), pay(1)}, []headgate.Outcome{ok(3), ok(3)}, true, 0},
		{"in proportion to the cost", []headgate.Charge{pay(1), pay(10)}, []headgate.Outcome{ok(5), ok(40)}, true, 1},
		{"a peek counts as a cost of 1", []headgate.Charge{pay(0), pay(2)}, []headgate.Outcome{ok(2), ok(5)}, true, 0},
		{"products beyond 64 bits", []headgate.Charge{pay(999_999_999_999), pay(1_000_000_000_000)}, []headgate.Outcome{ok(999_999_999_999), ok(1_000_000_000_001)}, true, 0},
		{"no remaining, no binding", []headgate.Charge{pay(1)}, []headgate.Outcome{queue}, true, -1},
		{"one that says what remains", []headgate.Charge{pay(1), pay(1)}, []headgate.Outcome{queue, ok(9)}, true, 1},
		{"the longest wait", []headgate.Charge{pay(1), pay(1), pay(1)}, []headgate.Outcome{in(1), in(3), in(2)}, false, 1},
		{"never before all", []headgate.Charge{pay(1), pay(1)}, []headgate.Outcome{in(time.Hour), never}, false, 1},
		{"unknown after all", []headgate.Charge{pay(1), pay(1)}, []headgate.Outcome{unknown, in(1)}, false, 1},
		{"unknown alone", []headgate.Charge{pay(1), pay(1)}, []headgate.Outcome{ok(1), unknown}, false, 1},
		{"a check denies", []headgate.Charge{pay(1), mode(headgate.Check)}, []headgate.Outcome{ok(1), in(1)}, false, 1},
		{"a check binds", []headgate.Charge{pay(1), mode(headgate.Check)}, []headgate.Outcome{ok(2), ok(1)}, true, 1},
		{"shadows never deny", []headgate.Charge{pay(1), mode(headgate.Shadow)}, []headgate.Outcome{ok(1), never}, true, 0},
		{"settling never binds", []headgate.Charge{mode(headgate.Settle), pay(1)}, []headgate.Outcome{ok(0), ok(7)}, true, 1},
		{"only a shadow", []headgate.Charge{mode(headgate.Shadow)}, []headgate.Outcome{in(1)}, true, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := headgate.Decision{Allowed: !c.allowed, Binding: 99, Outcomes: c.outcomes}
			d.Conclude(c.charges)
			if d.Allowed != c.allowed || d.Binding != c.binding {
				t.Errorf("allowed %t, binding %d; want %t, %d", d.Allowed, d.Binding, c.allowed, c.binding)
			}
		})
	}
}

func TestResetReusesAndClears(t *testing.T) {
	d := headgate.Decision{Allowed: true, Outcomes: make([]headgate.Outcome, 3, 8)}
	d.Outcomes[1].Remaining = 5
	first := &d.Outcomes[0]
	d.Reset(2)
	if d.Allowed || d.Binding != -1 || len(d.Outcomes) != 2 || d.Outcomes[1] != (headgate.Outcome{}) || &d.Outcomes[0] != first {
		t.Errorf("after Reset(2): %+v", d)
	}
	if d.Reset(9); len(d.Outcomes) != 9 {
		t.Errorf("after Reset(9): %d outcomes", len(d.Outcomes))
	}
}

func TestValidate(t *testing.T) {
	l, c := headgate.MustParseLimit("token_bucket 1/s"), headgate.MustParseLimit("concurrency 1 ttl=1s")
	lock := func(l headgate.Lockout) headgate.Charge {
		return headgate.Charge{Limit: headgate.TokenBucket{}, Cost: 1, Lockout: &l}
	}
	minute := time.Minute
	many := make([]headgate.Charge, headgate.MaxCharges+1)
	for i := range many {
		many[i] = headgate.One("s", fmt.Sprint(i), l)
	}
	for _, v := range []struct {
		name    string
		charges []headgate.Charge
		code    headgate.Code
		charge  int
		says    string
	}{
		{"nothing", nil, "", 0, ""},
		{"as many as may be", many[1:], "", 0, ""},
		{"one too many", many, headgate.CodeTooManyCharges, -1, "a take of 129 charges is too large; 128 are allowed"},
		{"the largest cost", []headgate.Charge{{Limit: l, Cost: headgate.MaxCount}}, "", 0, ""},
		{"a larger cost", []headgate.Charge{{Limit: l, Cost: headgate.MaxCount + 1}}, headgate.CodeInvalidCost, 0, "above 1000000000000"},
		{"a negative cost", []headgate.Charge{headgate.One("a", "", l), {Limit: l, Cost: -1}}, headgate.CodeInvalidCost, 1, "charge 1: cost -1 is negative"},
		{"no limit", []headgate.Charge{{Slot: "x", Cost: 1}}, headgate.CodeInvalidLimit, 0, `slot "x" has no limit`},
		{"an unknown mode", []headgate.Charge{{Limit: l, Mode: headgate.Shadow + 1}}, headgate.CodeInvalidCharge, 0, "mode 4 is unknown"},
		{"one state twice", []headgate.Charge{headgate.One("s", "k", l), headgate.One("s", "j", l), {Slot: "s", Key: "k", Limit: c}}, headgate.CodeDuplicateCharge, 2, "stand in charge 0 already"},
		{"one key at two slots", []headgate.Charge{headgate.One("s", "k", l), headgate.One("r", "k", l)}, "", 0, ""},
		{"no holder", []headgate.Charge{headgate.One("s", "k", c)}, headgate.CodeInvalidCharge, 0, "needs the name of the holder"},
		{"a peek without a holder", []headgate.Charge{{Limit: c}}, "", 0, ""},
		{"two slots", []headgate.Charge{{Limit: c, Cost: 2, Holder: "h"}}, headgate.CodeInvalidCost, 0, "a holder takes 0 or 1"},
		{"a long holder", []headgate.Charge{{Limit: c, Cost: 1, Holder: strings.Repeat("h", headgate.MaxHolder+1)}}, headgate.CodeInvalidCharge, 0, "the holder has 129 bytes"},
		{"a lockout", []headgate.Charge{lock(headgate.Lockout{After: 2, Within: minute, For: minute, Max: minute})}, "", 0, ""},
		{"a lockout at once", []headgate.Charge{lock(headgate.Lockout{After: 1, For: minute})}, "", 0, ""},
		{"a lockout without within", []headgate.Charge{lock(headgate.Lockout{After: 2, For: minute})}, headgate.CodeInvalidCharge, 0, "within=0s"},
		{"a lockout without for", []headgate.Charge{lock(headgate.Lockout{After: 1})}, headgate.CodeInvalidCharge, 0, "for=0s"},
		{"a lockout after nothing", []headgate.Charge{lock(headgate.Lockout{Within: minute, For: minute})}, headgate.CodeInvalidCharge, 0, "after=0"},
		{"a short max", []headgate.Charge{lock(headgate.Lockout{After: 1, For: minute, Max: time.Second})}, headgate.CodeInvalidCharge, 0, "max=1s is shorter than for=1m0s"},
		{"a lockout in nanoseconds", []headgate.Charge{lock(headgate.Lockout{After: 1, For: minute + 1})}, headgate.CodeInvalidCharge, 0, "no whole number of microseconds"},
	} {
		t.Run(v.name, func(t *testing.T) {
			err := headgate.Validate(v.charges)
			if v.code == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var e *headgate.Error
			if !errors.As(err, &e) || e.Code != v.code || e.Charge != v.charge || !strings.Contains(e.Error(), v.says) {
				t.Errorf("error %+v, want %s at charge %d that says %q", err, v.code, v.charge, v.says)
			}
		})
	}
}

func TestMicros(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want int64
		ok   bool
	}{
		{time.Unix(0, 1999), 1, true},
		{time.Unix(0, -1), -1, true},
		{time.Date(1850, 1, 1, 0, 0, 0, 0, time.UTC), headgate.MinTime, true},
		{time.Date(1849, 12, 31, 23, 59, 59, 0, time.UTC), 0, false},
		{time.Date(2095, 12, 31, 23, 59, 59, 999_999_999, time.UTC), headgate.MaxTime - 1, true},
		{time.Date(2096, 1, 1, 0, 0, 0, 0, time.UTC), 0, false},
		{time.Time{}, 0, false},
		{time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC), 0, false},
	} {
		got, err := headgate.Micros(c.at)
		if c.ok != (err == nil) || got != c.want || (err != nil && headgate.CodeOf(err) != headgate.CodeInvalidTime) {
			t.Errorf("%s: %d, %v, want %d", c.at, got, err, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("connection refused")
	for want, err := range map[string]*headgate.Error{
		"no store: connection refused":    {Code: headgate.CodeUnavailable, Message: "no store", Err: cause},
		"unavailable: connection refused": {Code: headgate.CodeUnavailable, Err: cause},
		"no store":                        {Code: headgate.CodeUnavailable, Message: "no store"},
		"unavailable":                     {Code: headgate.CodeUnavailable},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		wrapped := fmt.Errorf("deciding: %w", err)
		if headgate.CodeOf(wrapped) != headgate.CodeUnavailable || errors.Is(wrapped, cause) != (err.Err != nil) {
			t.Errorf("wrapped: code %q, cause found: %t", headgate.CodeOf(wrapped), errors.Is(wrapped, cause))
		}
	}
	if headgate.CodeOf(nil) != "" || headgate.CodeOf(cause) != "" {
		t.Error("an error of someone else has a code")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		headgate.Settle.String(): "settle", headgate.Mode(9).String(): "mode(?)",
		headgate.ReasonGone.String(): "gone", headgate.ReasonNone.String(): "", headgate.Reason(9).String(): "reason(?)",
		headgate.AlgLeakyBucket.String(): "leaky_bucket", headgate.Algorithm(0).String(): "algorithm(0)",
		headgate.Week.String(): "week", headgate.CalendarUnit(9).String(): "unit(9)",
		headgate.Retry{State: headgate.RetryNever}.String(): "never", headgate.Retry{State: headgate.RetryUnknown}.String(): "unknown", headgate.Retry{After: time.Second}.String(): "1s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// failing is a limiter whose store is down.
type failing struct{}

func (failing) Take(_ context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	return &headgate.Error{Code: headgate.CodeUnavailable}
}

func TestHelpersPassErrorsOn(t *testing.T) {
	l := headgate.MustParseLimit("token_bucket 1/s")
	if ok, err := headgate.Allow(context.Background(), failing{}, l, "k"); ok || headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("Allow of a store that is down: %t, %v", ok, err)
	}
	if ok, err := headgate.Allow(context.Background(), failing{}, nil, "k"); ok || headgate.CodeOf(err) != headgate.CodeInvalidLimit {
		t.Errorf("Allow without a limit: %t, %v", ok, err)
	}
}
