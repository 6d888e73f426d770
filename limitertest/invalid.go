package limitertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// invalid: what cannot be judged is an error with its code, leaves an empty decision and charges nothing.
func (s *suite) invalid(t *testing.T) {
	c := s.clinic(t)
	good := c.on("good", "fixed_window 5/1h")
	slot := c.on("slot", "concurrency 5 ttl=1s")
	many := make([]headgate.Charge, headgate.MaxCharges+1)
	for i := range many {
		many[i] = c.on(fmt.Sprint(i), "fixed_window 5/1h")
	}
	for _, tt := range []struct {
		name string
		bad  []headgate.Charge
		want headgate.Code
	}{
		{"a negative cost", these(good, cost(c.on("n", "fixed_window 5/1h"), -1)), headgate.CodeInvalidCost},
		{"the most negative cost", these(good, cost(c.on("n", "token_bucket 5/1h"), -1<<63)), headgate.CodeInvalidCost},
		{"a cost above the bound", these(good, cost(c.on("n", "fixed_window 5/1h"), headgate.MaxCount+1)), headgate.CodeInvalidCost},
		{"two slots for one holder", these(good, cost(held(slot, "A"), 2)), headgate.CodeInvalidCost},
		{"no limit", these(good, headgate.Charge{Slot: "x", Cost: 1}), headgate.CodeInvalidLimit},
		{"no holder", these(good, slot), headgate.CodeInvalidCharge},
		{"a huge holder", these(good, held(slot, strings.Repeat("x", headgate.MaxHolder+1))), headgate.CodeInvalidCharge},
		{"an unknown mode", these(good, mode(c.on("m", "fixed_window 5/1h"), 99)), headgate.CodeInvalidCharge},
		{"a lockout of no time", these(good, shutFor(c.on("l", "fixed_window 5/1h"), headgate.Lockout{After: 1})), headgate.CodeInvalidCharge},
		{"a lockout after nothing", these(good, shutFor(c.on("l", "fixed_window 5/1h"), headgate.Lockout{For: sec})), headgate.CodeInvalidCharge},
		{"one key twice", these(good, cost(good, 2)), headgate.CodeDuplicateCharge},
		{"too many", many, headgate.CodeTooManyCharges},
	} {
		d := headgate.Decision{Allowed: true, Binding: 3, Outcomes: make([]headgate.Outcome, 3)}
		err := c.at(0).Take(context.Background(), tt.bad, &d)
		var typed *headgate.Error
		if headgate.CodeOf(err) != tt.want || !errors.As(err, &typed) {
			t.Errorf("%s: want the code %s, got %v", tt.name, tt.want, err)
		}
		if d.Allowed || len(d.Outcomes) != 0 {
			t.Errorf("%s: want an empty decision that denies, got %+v", tt.name, d)
		}
		c.peek(0, good, 5)
	}
	for _, at := range []time.Time{time.Date(1849, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2096, 1, 1, 0, 0, 0, 0, time.UTC), {}, time.Unix(1<<60, 0)} {
		_, err := headgate.Take(context.Background(), c.l.At(at), good)
		if headgate.CodeOf(err) != headgate.CodeInvalidTime {
			t.Errorf("at %s: want %s, got %v", at, headgate.CodeInvalidTime, err)
		}
	}
	for _, at := range []time.Time{time.UnixMicro(headgate.MinTime), time.UnixMicro(headgate.MaxTime - 1)} {
		if _, err := headgate.Take(context.Background(), c.l.At(at), cost(good, 0)); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
	c.peek(0, good, 5)
}
