package testlang

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// limits is a case of limits while it runs.
type limits struct {
	limiter headgate.Limiter // Timed
	names   []string
	current []headgate.Limit // as reloads have left them
	ledger  ledger
}

func newLimits(limiter headgate.Limiter, c *Case) *limits {
	l := &limits{limiter: limiter, ledger: ledger{refunded: map[int]bool{}, takes: map[Target][]*taken{}}}
	for _, n := range c.Limits {
		l.names = append(l.names, n.Name)
		l.current = append(l.current, n.Limit)
	}
	for _, s := range c.Steps {
		if r, ok := s.Do.(Refund); ok {
			for _, t := range r.On {
				l.ledger.refunded[t.Limit] = true
			}
		}
	}
	return l
}

func (l *limits) do(ctx context.Context, now time.Time, a Action) answer {
	limiter := l.limiter.(headgate.Timed).At(now) // Within is Timed
	switch a := a.(type) {
	case Take:
		return l.take(ctx, limiter, a)
	case Renew:
		alive, err := limiter.(headgate.Slots).Renew(ctx, l.charge(a.On, 1, a.Holder))
		return simple{gone: !alive, fault: err}
	case Release:
		return simple{fault: limiter.(headgate.Slots).Release(ctx, l.charge(a.On, 1, a.Holder))}
	case Refund:
		return simple{fault: l.refund(ctx, limiter, a)}
	case Reload:
		l.current[a.Limit] = a.To
		return simple{}
	}
	return simple{fault: fmt.Errorf("a %T cannot be done to limits", a)}
}

func (l *limits) charge(t Target, cost int64, holder string) *headgate.Charge {
	return &headgate.Charge{Slot: l.names[t.Limit], Key: t.Key, Limit: l.current[t.Limit], Cost: cost, Holder: holder}
}

func (l *limits) take(ctx context.Context, limiter headgate.Limiter, a Take) answer {
	charges := make([]headgate.Charge, len(a.On))
	for i, t := range a.On {
		charges[i] = *l.charge(t, a.Cost, a.Holder)
	}
	d := &headgate.Decision{}
	if err := limiter.Take(ctx, charges, d); err != nil {
		return simple{fault: err}
	}
	if len(d.Outcomes) != len(charges) {
		return simple{fault: fmt.Errorf("%d charges got %d outcomes", len(charges), len(d.Outcomes))}
	}
	if d.Allowed {
		l.ledger.add(a.On, charges, d)
	}
	return &decision{d, charges}
}

// refund gives units back from the latest takes on, judged by the limits as they are now.
func (l *limits) refund(ctx context.Context, limiter headgate.Limiter, a Refund) error {
	for _, target := range a.On {
		left := a.Units
		for take := l.ledger.latest(target); take != nil && left > 0; take = l.ledger.latest(target) {
			give := min(left, take.charged(target))
			for i := range take.charges {
				take.charges[i].Cost = 0
				if take.on[i] == target {
					take.charges[i].Cost = give
					take.charges[i].Limit = l.current[target.Limit]
				}
			}
			if err := limiter.(headgate.Refunder).Refund(ctx, take.charges, take.decision); err != nil {
				return err
			}
			left -= give
		}
	}
	return nil
}

// maxRemembered bounds the takes that a case remembers for its refunds.
const maxRemembered = 100_000

// ledger remembers allowed takes of the limits that the case refunds.
type ledger struct {
	refunded map[int]bool
	takes    map[Target][]*taken
	size     int
}

type taken struct {
	on       []Target
	charges  []headgate.Charge
	decision *headgate.Decision
}

func (t *taken) charged(target Target) int64 {
	for i := range t.on {
		if t.on[i] == target {
			return t.decision.Outcomes[i].Receipt.Charged
		}
	}
	return 0
}

// add remembers a take. Over the bound it takes the place of the oldest of its key, and is forgotten if it is the first.
func (l *ledger) add(on []Target, charges []headgate.Charge, d *headgate.Decision) {
	t := &taken{on, charges, d}
	for _, target := range on {
		if !l.refunded[target.Limit] || t.charged(target) == 0 {
			continue
		}
		list := l.takes[target]
		if l.size < maxRemembered {
			l.size++
		} else if len(list) > 0 {
			list = list[1:]
		} else {
			continue
		}
		l.takes[target] = append(list, t)
	}
}

// latest returns the latest take of a key that has something left to give back, nil if there is none.
func (l *ledger) latest(target Target) *taken {
	for {
		list := l.takes[target]
		if len(list) == 0 {
			return nil
		}
		last := list[len(list)-1]
		if last.charged(target) > 0 {
			return last
		}
		l.takes[target] = list[:len(list)-1]
		l.size--
	}
}

// simple is an answer without a decision.
type simple struct {
	gone  bool
	fault error
}

func (s simple) err() error          { return s.fault }
func (s simple) code() headgate.Code { return headgate.CodeOf(s.fault) }

func (s simple) is(word string) bool {
	return s.fault == nil && (word == "gone") == s.gone && (word == "gone" || word == "ok")
}

func (s simple) field(string) (string, bool) { return "", false }

func (s simple) String() string {
	switch {
	case s.fault != nil && s.code() != "":
		return fmt.Sprintf("error=%s (%v)", s.code(), s.fault)
	case s.fault != nil:
		return "an error: " + s.fault.Error()
	case s.gone:
		return "gone"
	}
	return "ok"
}

// decision is the answer of a take.
type decision struct {
	*headgate.Decision
	charges []headgate.Charge
}

func (d *decision) err() error          { return nil }
func (d *decision) code() headgate.Code { return "" }

func (d *decision) is(word string) bool {
	return word == "allow" && d.Allowed || word == "deny" && !d.Allowed
}

// bound is the outcome that the fields are of: the binding charge's, or the first if none binds.
func (d *decision) bound() (int, *headgate.Outcome) {
	i := max(d.Binding, 0)
	if i >= len(d.Outcomes) {
		return 0, &headgate.Outcome{}
	}
	return i, &d.Outcomes[i]
}

func (d *decision) field(name string) (string, bool) {
	i, o := d.bound()
	switch name {
	case "by":
		return d.charges[i].Slot, d.Binding >= 0
	case "wait":
		var wait time.Duration
		for i := range d.Outcomes {
			wait = max(wait, d.Outcomes[i].Wait)
		}
		return wait.String(), true
	}
	return outcomeField(o, name)
}

func outcomeField(o *headgate.Outcome, name string) (string, bool) {
	switch name {
	case "remaining":
		return strconv.FormatInt(o.Remaining, 10), o.HasRemaining
	case "retry_after":
		return o.RetryAfter.String(), true
	case "reset_after":
		return o.ResetAfter.String(), true
	}
	return "", false
}

func (d *decision) String() string {
	if d.Allowed {
		return "allow" + show(d, "remaining", "reset_after", "wait")
	}
	s := "deny" + show(d, "by", "remaining", "retry_after", "reset_after")
	if _, o := d.bound(); o.Reason != headgate.ReasonLimited {
		s += " (" + o.Reason.String() + ")"
	}
	return s
}

// show writes those of the fields that the answer has.
func show(a answer, names ...string) string {
	var s strings.Builder
	for _, name := range names {
		if value, ok := a.field(name); ok && (value != "" || name != "by") {
			s.WriteString(" " + Field{name, value}.String())
		}
	}
	return s.String()
}
