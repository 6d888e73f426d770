package limitertest

import (
	"fmt"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// differ compares errors by their codes.
func differ(want, got error) string {
	if (want == nil) != (got == nil) || headgate.CodeOf(want) != headgate.CodeOf(got) {
		return fmt.Sprintf("error: want %v, got %v", want, got)
	}
	return ""
}

// compare compares decisions in every field but the receipts' marks, which belong to the store.
func compare(want, got *headgate.Decision) string {
	if len(got.Outcomes) != len(want.Outcomes) {
		return fmt.Sprintf("want %d outcomes, got %d", len(want.Outcomes), len(got.Outcomes))
	}
	var wrong []string
	note := func(what string, want, got any) {
		if want != got {
			wrong = append(wrong, fmt.Sprintf("%s: want %v, got %v", what, want, got))
		}
	}
	note("Allowed", want.Allowed, got.Allowed)
	for i := range want.Outcomes {
		w, g := &want.Outcomes[i], &got.Outcomes[i]
		of := fmt.Sprintf("charge %d: ", i)
		note(of+"Allowed", w.Allowed, g.Allowed)
		note(of+"Reason", w.Reason, g.Reason)
		note(of+"HasRemaining", w.HasRemaining, g.HasRemaining)
		note(of+"Remaining", w.Remaining, g.Remaining)
		note(of+"RetryAfter", w.RetryAfter, g.RetryAfter)
		note(of+"ResetAfter", w.ResetAfter, g.ResetAfter)
		note(of+"Wait", w.Wait, g.Wait)
		note(of+"Receipt.Charged", w.Receipt.Charged, g.Receipt.Charged)
	}
	note("Binding", want.Binding, got.Binding)
	return strings.Join(wrong, "; ")
}

// showCharges writes charges as the .test language would, with one group for each.
func showCharges(charges []headgate.Charge) string {
	var b strings.Builder
	for i := range charges {
		c := &charges[i]
		if i > 0 {
			b.WriteString(" +")
		}
		fmt.Fprintf(&b, " %d on=%s key=%q", c.Cost, c.Slot, c.Key)
		if c.Holder != "" {
			fmt.Fprintf(&b, " holder=%s", c.Holder)
		}
		if c.Mode != headgate.Pay {
			fmt.Fprintf(&b, " mode=%s", c.Mode)
		}
		b.WriteString(showLockout(c.Lockout))
	}
	return b.String()
}

func showLockout(l *headgate.Lockout) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf(" lockout={after:%d within:%s for:%s max:%s}", l.After, l.Within, l.For, l.Max)
}

func showDecision(d *headgate.Decision, err error) string {
	if err != nil {
		return "error=" + string(headgate.CodeOf(err))
	}
	var b strings.Builder
	b.WriteString(map[bool]string{true: "allow", false: "deny"}[d.Allowed])
	for i := range d.Outcomes {
		o := &d.Outcomes[i]
		b.WriteString(" (" + map[bool]string{true: "allow", false: "deny " + o.Reason.String()}[o.Allowed])
		if o.HasRemaining {
			fmt.Fprintf(&b, " remaining=%d", o.Remaining)
		}
		if !o.Allowed {
			fmt.Fprintf(&b, " retry_after=%s", o.RetryAfter)
		}
		fmt.Fprintf(&b, " reset_after=%s", o.ResetAfter)
		if o.Wait > 0 {
			fmt.Fprintf(&b, " wait=%s", o.Wait)
		}
		if o.Receipt.Charged > 0 {
			fmt.Fprintf(&b, " charged=%d", o.Receipt.Charged)
		}
		b.WriteString(")")
	}
	return b.String()
}

func showReceipts(d *headgate.Decision, err error) string {
	if err != nil {
		return "error=" + string(headgate.CodeOf(err))
	}
	left := make([]int64, len(d.Outcomes))
	for i := range d.Outcomes {
		left[i] = d.Outcomes[i].Receipt.Charged
	}
	return fmt.Sprintf("left to give back %v", left)
}

// compareInspections compares what is there now. A state that is as if never used may be found or forgotten, and how long a
// lockout stays to be remembered is the store's own.
func (w *world) compareInspections(want, got *headgate.Inspection) string {
	a, b := *want, *got
	if !a.IdleAt.After(time.UnixMicro(w.now)) && b.Used == 0 {
		b.Found, b.Algorithm, b.IdleAt = a.Found, a.Algorithm, a.IdleAt
	}
	if w.family.lockouts {
		b.IdleAt = a.IdleAt
	}
	if showInspection(a) == showInspection(b) { // times of one instant need not be ==
		return ""
	}
	return fmt.Sprintf("want %s, got %s", showInspection(*want), showInspection(*got))
}

func showInspection(in headgate.Inspection) string {
	return fmt.Sprintf("found=%t algorithm=%s used=%d idle_at=%s locked_until=%s", in.Found, in.Algorithm, in.Used,
		in.IdleAt.UTC().Format(time.RFC3339Nano), in.LockedUntil.UTC().Format(time.RFC3339Nano))
}
