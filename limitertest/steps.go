package limitertest

import (
	"context"
	"fmt"
	"strings"

	headgate "github.com/headgate-io/headgate"
)

// op is a step of a trace. apply does it to both limiters and returns how they differ, "" if they agree.
type op interface {
	fmt.Stringer
	apply(w *world) string
}

// chain is several steps that make sense together.
type chain []op

func (o chain) String() string {
	all := make([]string, len(o))
	for i := range o {
		all[i] = o[i].String()
	}
	return strings.Join(all, "; ")
}

func (o chain) apply(w *world) string {
	for _, one := range o {
		if wrong := one.apply(w); wrong != "" {
			return wrong
		}
	}
	return ""
}

// step is the part that all have: when.
type step struct {
	shift int64
}

func (s step) ahead() string {
	if s.shift == 0 {
		return ""
	}
	return fmt.Sprintf("%+dus ", s.shift)
}

type takeOp struct {
	step
	charges []headgate.Charge // with keys that are not prefixed
}

func (o takeOp) String() string { return o.ahead() + "take" + showCharges(o.charges) }

func (o takeOp) apply(w *world) string {
	w.shift(o.shift)
	charges := w.own(o.charges)
	subject, truth := w.at()
	record := &taken{charges: charges}
	want := truth.Take(context.Background(), charges, &record.truth)
	got := subject.Take(context.Background(), charges, &record.subject)
	w.log("take%s -> %s", showCharges(o.charges), showDecision(&record.truth, want))
	if wrong := differ(want, got); wrong != "" {
		return wrong
	}
	w.remember(&record.truth)
	w.takes = append(w.takes, record)
	return compare(&record.truth, &record.subject)
}

// own returns the charges with keys of this trace.
func (w *world) own(charges []headgate.Charge) []headgate.Charge {
	own := append([]headgate.Charge(nil), charges...)
	for i := range own {
		own[i].Key = w.prefix + own[i].Key
	}
	return own
}

type refundOp struct {
	step
	take  int // which of the takes so far
	costs []int64
	// current refunds by the limits as they are now, not as they were.
	current bool
}

func (o refundOp) String() string {
	return fmt.Sprintf("%srefund of take %d: %v current=%t", o.ahead(), o.take, o.costs, o.current)
}

func (o refundOp) apply(w *world) string {
	w.shift(o.shift)
	subject, truth := w.at()
	record := w.takes[o.take]
	charges := append([]headgate.Charge(nil), record.charges...)
	for i := range charges {
		charges[i].Cost = o.costs[i]
		for _, s := range w.slots {
			if o.current && s.name == charges[i].Slot {
				charges[i].Limit = s.limit
			}
		}
	}
	want := truth.(headgate.Refunder).Refund(context.Background(), charges, &record.truth)
	got := subject.(headgate.Refunder).Refund(context.Background(), charges, &record.subject)
	w.log("refund%s # of an earlier take -> %s", showCharges(w.bare(charges)), showReceipts(&record.truth, want))
	if wrong := differ(want, got); wrong != "" {
		return wrong
	}
	for i := range record.truth.Outcomes {
		if a, b := record.truth.Outcomes[i].Receipt.Charged, record.subject.Outcomes[i].Receipt.Charged; a != b {
			return fmt.Sprintf("charge %d: Receipt.Charged after the refund: want %d, got %d", i, a, b)
		}
	}
	return ""
}

// bare returns charges with keys as they are shown.
func (w *world) bare(charges []headgate.Charge) []headgate.Charge {
	bare := append([]headgate.Charge(nil), charges...)
	for i := range bare {
		bare[i].Key = strings.TrimPrefix(bare[i].Key, w.prefix)
	}
	return bare
}

type slotOp struct {
	step
	charge  headgate.Charge
	release bool
}

func (o slotOp) verb() string {
	if o.release {
		return "release"
	}
	return "renew"
}

func (o slotOp) String() string {
	return fmt.Sprintf("%s%s %s on=%s key=%q", o.ahead(), o.verb(), o.charge.Holder, o.charge.Slot, o.charge.Key)
}

func (o slotOp) apply(w *world) string {
	w.shift(o.shift)
	charge := w.own([]headgate.Charge{o.charge})[0]
	subject, truth := w.at()
	want, wantErr := o.do(truth, &charge)
	got, gotErr := o.do(subject, &charge)
	w.log("%s %s on=%s key=%q -> %t %v", o.verb(), o.charge.Holder, o.charge.Slot, o.charge.Key, want, wantErr)
	if wrong := differ(wantErr, gotErr); wrong != "" {
		return wrong
	}
	if want != got {
		return fmt.Sprintf("alive: want %t, got %t", want, got)
	}
	return ""
}

func (o slotOp) do(l headgate.Limiter, c *headgate.Charge) (bool, error) {
	if o.release {
		return true, l.(headgate.Slots).Release(context.Background(), c)
	}
	return l.(headgate.Slots).Renew(context.Background(), c)
}

type reloadOp struct {
	slot  int
	limit headgate.Limit
}

func (o reloadOp) String() string { return fmt.Sprintf("reload s%d: %s", o.slot, o.limit) }

func (o reloadOp) apply(w *world) string {
	w.slots[o.slot].limit, w.reloaded = o.limit, true
	w.log("%s", o)
	return ""
}

type resetOp struct {
	slot int
	key  string
}

func (o resetOp) String() string { return fmt.Sprintf("reset s%d key=%q", o.slot, o.key) }

func (o resetOp) apply(w *world) string {
	subject, truth := w.at()
	name := w.slots[o.slot].name
	want := truth.(headgate.Resetter).Reset(context.Background(), name, w.prefix+o.key)
	got := subject.(headgate.Resetter).Reset(context.Background(), name, w.prefix+o.key)
	w.log("%s", o)
	return differ(want, got)
}

type inspectOp struct {
	step
	slot int
	key  string
}

func (o inspectOp) String() string {
	return fmt.Sprintf("%sinspect s%d key=%q", o.ahead(), o.slot, o.key)
}

func (o inspectOp) apply(w *world) string {
	w.shift(o.shift)
	subject, truth := w.at()
	name := w.slots[o.slot].name
	want, wantErr := truth.(headgate.Inspector).Inspect(context.Background(), name, w.prefix+o.key)
	got, gotErr := subject.(headgate.Inspector).Inspect(context.Background(), name, w.prefix+o.key)
	w.log("%s -> %s", o, showInspection(want))
	if wrong := differ(wantErr, gotErr); wrong != "" {
		return wrong
	}
	return w.compareInspections(&want, &got)
}
