package limitertest_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest/oracle"
)

// mutant is a limiter with one fault, and the parts of the suite that must see it.
type mutant struct {
	name  string
	parts []string
	bend  bend
}

// bend is what a mutant does differently; what is nil it does right.
type bend struct {
	charge func(*headgate.Charge)
	now    func(time.Time) time.Time
	take   func(l everything, charges []headgate.Charge, d *headgate.Decision) error
	answer func(charges []headgate.Charge, d *headgate.Decision)
	refund func(l everything, charges []headgate.Charge, d *headgate.Decision) error
	renew  func(l everything, c *headgate.Charge) (bool, error)
	free   func(l everything, c *headgate.Charge) error
	// inspect changes what is found.
	inspect func(in *headgate.Inspection)
}

// everything is a limiter with all abilities.
type everything interface {
	headgate.Limiter
	headgate.Timed
	headgate.Refunder
	headgate.Slots
	headgate.Resetter
	headgate.Inspector
}

// bent is a right limiter seen through a bend.
type bent struct {
	everything
	bend bend
}

func newBent(b bend) headgate.Limiter { return &bent{oracle.New(oracle.Config{}), b} }

func (b *bent) At(now time.Time) headgate.Limiter {
	if b.bend.now != nil {
		now = b.bend.now(now)
	}
	return &bent{b.everything.At(now).(everything), b.bend}
}

func (b *bent) charges(charges []headgate.Charge) []headgate.Charge {
	if b.bend.charge == nil {
		return charges
	}
	own := append([]headgate.Charge(nil), charges...)
	for i := range own {
		b.bend.charge(&own[i])
	}
	return own
}

func (b *bent) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	take := func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
		return l.Take(ctx, charges, d)
	}
	if b.bend.take != nil {
		take = b.bend.take
	}
	if err := take(b.everything, b.charges(charges), d); err != nil {
		return err
	}
	if b.bend.answer != nil {
		b.bend.answer(charges, d)
	}
	return nil
}

func (b *bent) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if b.bend.refund != nil {
		return b.bend.refund(b.everything, b.charges(charges), d)
	}
	return b.everything.Refund(ctx, b.charges(charges), d)
}

func (b *bent) Renew(ctx context.Context, c *headgate.Charge) (bool, error) {
	c = &b.charges([]headgate.Charge{*c})[0]
	if b.bend.renew != nil {
		return b.bend.renew(b.everything, c)
	}
	return b.everything.Renew(ctx, c)
}

func (b *bent) Release(ctx context.Context, c *headgate.Charge) error {
	c = &b.charges([]headgate.Charge{*c})[0]
	if b.bend.free != nil {
		return b.bend.free(b.everything, c)
	}
	return b.everything.Release(ctx, c)
}

func (b *bent) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	in, err := b.everything.Inspect(ctx, slot, key)
	if b.bend.inspect != nil {
		b.bend.inspect(&in)
	}
	return in, err
}

// each bends every outcome.
func each(do func(*headgate.Charge, *headgate.Outcome)) bend {
	return bend{answer: func(charges []headgate.Charge, d *headgate.Decision) {
		for i := range charges {
			do(&charges[i], &d.Outcomes[i])
		}
	}}
}

// turn replaces one mode by another.
func turn(from, to headgate.Mode) bend {
	return bend{charge: func(c *headgate.Charge) {
		if c.Mode == from {
			c.Mode = to
		}
	}}
}

func mutants() []mutant {
	ctx := context.Background()
	var latest atomic.Int64
	latest.Store(math.MinInt64)
	return []mutant{
		{"a denied take charges what passes alone", []string{"take", "files", "traces"}, bend{take: func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
			err := l.Take(ctx, charges, d)
			for i := range d.Outcomes {
				if !d.Allowed && d.Outcomes[i].Allowed {
					_ = l.Take(ctx, charges[i:i+1], &headgate.Decision{})
				}
			}
			return err
		}}},
		{"a burst of one too many", []string{"take", "files", "concurrent", "traces"}, bend{charge: func(c *headgate.Charge) {
			if l, ok := c.Limit.(headgate.TokenBucket); ok {
				if more, err := headgate.NewTokenBucket(l.Rate(), l.Burst()+1); err == nil {
					c.Limit = more
				}
			}
		}}},
		{"a retry one microsecond late", []string{"take", "files", "traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) {
			if o.RetryAfter.After > 0 {
				o.RetryAfter.After += time.Microsecond
			}
		})},
		{"a retry in whole milliseconds", []string{"files", "traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) {
			o.RetryAfter.After = o.RetryAfter.After.Round(time.Millisecond)
		})},
		{"never is a day", []string{"take", "files", "traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) {
			if o.RetryAfter.State == headgate.RetryNever {
				o.RetryAfter = headgate.Retry{After: 24 * time.Hour}
			}
		})},
		{"no reset", []string{"take", "files", "traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) { o.ResetAfter = 0 })},
		{"no wait", []string{"take", "files", "traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) { o.Wait = 0 })},
		{"what is left in single precision", []string{"traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) { o.Remaining = int64(float32(o.Remaining)) })},
		{"the first that denies binds", []string{"binding", "traces"}, bend{answer: func(charges []headgate.Charge, d *headgate.Decision) {
			for i := range charges {
				if !d.Allowed && !d.Outcomes[i].Allowed && charges[i].Mode == headgate.Pay {
					d.Binding = i
					return
				}
			}
			d.Binding = min(d.Binding, 0)
		}}},
		{"settling denies", []string{"modes", "traces"}, turn(headgate.Settle, headgate.Pay)},
		{"a check charges", []string{"modes", "traces"}, turn(headgate.Check, headgate.Pay)},
		{"a shadow denies", []string{"modes", "traces"}, turn(headgate.Shadow, headgate.Pay)},
		{"a shadow is always paid", []string{"modes", "traces"}, turn(headgate.Shadow, headgate.Settle)},
		{"no lockout", []string{"lockout", "traces"}, bend{charge: func(c *headgate.Charge) { c.Lockout = nil }}},
		{"a ladder without rungs", []string{"lockout", "traces"}, bend{charge: func(c *headgate.Charge) {
			if c.Lockout != nil {
				flat := *c.Lockout
				flat.Max = 0
				c.Lockout = &flat
			}
		}}},
		{"keys end at a NUL", []string{"take"}, bend{charge: func(c *headgate.Charge) { c.Key, _, _ = strings.Cut(c.Key, "\x00") }}},
		{"slot and key run together", []string{"take"}, bend{charge: func(c *headgate.Charge) { c.Slot, c.Key = "", c.Slot+c.Key }}},
		{"a changed limit starts fresh", []string{"files", "traces"}, bend{charge: func(c *headgate.Charge) {
			if c.Limit != nil {
				c.Slot += c.Limit.String()
			}
		}}},
		{"a clock that never steps back", []string{"files", "traces"}, bend{now: func(now time.Time) time.Time {
			if now.UnixMicro() > latest.Load() {
				latest.Store(now.UnixMicro())
			}
			return time.UnixMicro(latest.Load())
		}}},
		{"a clock of milliseconds", []string{"files", "traces"}, bend{now: func(now time.Time) time.Time { return now.Truncate(time.Millisecond) }}},
		{"calendars in UTC", []string{"files", "traces"}, bend{charge: func(c *headgate.Charge) {
			if l, ok := c.Limit.(headgate.FixedWindow); ok && l.Period() == 0 && l.Count() > 0 {
				unit, _ := l.Calendar()
				c.Limit, _ = headgate.NewCalendarWindow(l.Count(), unit, "UTC")
			}
		}}},
		{"windows of one cell", []string{"take", "traces"}, bend{charge: func(c *headgate.Charge) {
			if l, ok := c.Limit.(headgate.SlidingWindow); ok && l.Count() > 0 {
				c.Limit, _ = headgate.NewSlidingWindow(l.Count(), l.Period(), 1)
			}
		}}},
		{"a peek takes part", []string{"take", "modes", "traces"}, each(func(c *headgate.Charge, o *headgate.Outcome) {
			o.Allowed = o.Allowed && (c.Cost > 0 || !o.HasRemaining || o.Remaining > 0)
		})},
		{"a negative cost is a peek", []string{"invalid", "files"}, bend{charge: func(c *headgate.Charge) { c.Cost = max(c.Cost, 0) }}},
		{"a decision that keeps what it had", []string{"take", "invalid"}, bend{take: func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
			before := d.Outcomes
			var fresh headgate.Decision
			err := l.Take(ctx, charges, &fresh)
			*d = fresh
			if len(before) > len(fresh.Outcomes) {
				d.Outcomes = slices.Concat(fresh.Outcomes, before[len(fresh.Outcomes):])
			}
			return err
		}}},
		{"looks first and charges then", []string{"concurrent"}, bend{take: func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
			look := append([]headgate.Charge(nil), charges...)
			for i := range look {
				if look[i].Mode == headgate.Pay {
					look[i].Mode = headgate.Check
				}
			}
			if err := l.Take(ctx, look, d); err != nil || !d.Allowed {
				return err
			}
			runtime.Gosched()
			for i := range look {
				if charges[i].Mode == headgate.Pay {
					look[i].Mode = headgate.Settle
				}
			}
			return l.Take(ctx, look, d)
		}}},
		{"a refund forgets to give", []string{"refund", "files", "concurrent", "traces"}, bend{refund: func(_ everything, _ []headgate.Charge, d *headgate.Decision) error {
			for i := range d.Outcomes {
				d.Outcomes[i].Receipt.Charged = 0
			}
			return nil
		}}},
		{"a receipt is good twice", []string{"refund", "traces"}, bend{refund: func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
			before := append([]headgate.Outcome(nil), d.Outcomes...)
			err := l.Refund(ctx, charges, d)
			copy(d.Outcomes, before)
			return err
		}}},
		{"a refund that is never late", []string{"refund", "traces"}, bend{refund: func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
			for i := range d.Outcomes {
				r := &d.Outcomes[i].Receipt
				if _, ok := charges[i].Limit.(headgate.TokenBucket); ok && r.Charged > 0 {
					r.Mark = headgate.MaxTime
				}
			}
			return l.Refund(ctx, charges, d)
		}}},
		{"a refund is at most 36500 days long", []string{"bounds", "traces"}, bend{refund: func(l everything, charges []headgate.Charge, d *headgate.Decision) error {
			before := append([]headgate.Outcome(nil), d.Outcomes...)
			cut := append([]headgate.Charge(nil), charges...)
			for i := range cut {
				if q, ok := cut[i].Limit.(headgate.LeakyBucket); ok {
					if whole, _, _ := q.Pace(); whole > 0 {
						cut[i].Cost = min(cut[i].Cost, headgate.MaxPeriod.Microseconds()/whole)
					}
				}
			}
			err := l.Refund(ctx, cut, d)
			for i := range d.Outcomes {
				r := &d.Outcomes[i].Receipt
				r.Charged = min(r.Charged, max(0, before[i].Receipt.Charged-charges[i].Cost))
			}
			return err
		}}},
		{"a time that runs over", []string{"files", "traces"}, each(func(_ *headgate.Charge, o *headgate.Outcome) {
			if o.ResetAfter == headgate.MaxTold {
				o.ResetAfter = math.MinInt64 + o.ResetAfter
			}
		})},
		{"a count that ends at 10^12", []string{"bounds"}, bend{inspect: func(in *headgate.Inspection) { in.Used = min(in.Used, headgate.MaxCount) }}},
		{"a release frees every slot", []string{"slots", "traces"}, bend{free: func(l everything, c *headgate.Charge) error {
			if err := l.Release(ctx, c); err != nil {
				return err
			}
			return l.Reset(ctx, c.Slot, c.Key)
		}}},
		{"a release without a slot leaves nothing", []string{"slots", "traces"}, bend{free: func(l everything, c *headgate.Charge) error {
			if alive, err := l.Renew(ctx, c); err != nil || !alive {
				return err
			}
			return l.Release(ctx, c)
		}}},
		{"a renewal revives", []string{"slots", "files", "traces"}, bend{renew: func(l everything, c *headgate.Charge) (bool, error) {
			if alive, err := l.Renew(ctx, c); err != nil || alive {
				return alive, err
			}
			acquire := *c
			acquire.Cost = 1
			d, err := headgate.Take(ctx, l, acquire)
			return d.Allowed, err
		}}},
	}
}
