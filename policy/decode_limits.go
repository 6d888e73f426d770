package policy

import (
	"errors"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy/internal/credential"
	"github.com/headgate-io/headgate/policy/internal/expr"
	"github.com/headgate-io/headgate/policy/internal/schedule"
)

// decodeAllLimits reads the limits of a rule and everything that changes them.
func (s scope) decodeAllLimits(item *node, fields map[string]*node, r *rule, info *Rule) {
	if n := fields["limits"]; n == nil {
		s.fail(item.pos, "limits are missing; write limits: [token_bucket 10/s]")
	} else {
		info.Limits = s.decodeLimits(n)
	}
	r.base = newVariant(r.name, "", info.Limits)
	if n := fields["overrides"]; n != nil {
		s.decodeOverrides(n, r, info)
	}
	entries := s.decodeSchedule(fields["schedule"], info)
	warmup := s.decodeWarmup(fields["warmup"], info)
	if entries == nil && warmup == nil || len(info.Limits) == 0 {
		return
	}
	plan, err := schedule.New(info.Limits, entries, warmup)
	if err == nil {
		r.plan = plan
		if warmup != nil {
			r.warm = warmIdentity(r.name, info.Limits, warmup)
		}
		return
	}
	at := fields["warmup"]
	if n := fields["schedule"]; n != nil {
		at = n
	}
	var e *schedule.EntryError
	if errors.As(err, &e) && e.Entry < len(info.Schedule) {
		p := info.Schedule[e.Entry].Position
		s.fail(pos{p.Line, p.Column}, "schedule: %s", e.Message)
		return
	}
	s.fail(at.pos, "schedule: %v", err)
}

func (s scope) decodeLimits(n *node) []headgate.Limit {
	items := s.list(n, "limits", maxLimits)
	if n.kind == kindSequence && len(n.items) == 0 {
		s.fail(n.pos, "limits is empty; write one such as token_bucket 10/s, or mode: off")
	}
	var limits []headgate.Limit
	for _, item := range items {
		text, ok := s.text(item, "limits")
		if !ok {
			continue
		}
		l, err := headgate.ParseLimit(text)
		if err != nil {
			s.fail(item.pos, "%v", err)
			continue
		}
		limits = append(limits, l)
	}
	return limits
}

// decodeOverrides reads limits by the value of a dimension, and by list.
func (s scope) decodeOverrides(n *node, r *rule, info *Rule) {
	s.where += ": overrides"
	switch {
	case n.kind != kindMapping:
		s.fail(n.pos, "must be a mapping from dimensions, or list, to limits, not %s", n.describe())
		return
	case len(n.fields) == 0:
		s.fail(n.pos, "is empty; remove it, or write for whom there are other limits")
	}
	seen := make(map[string]bool)
	for _, f := range n.fields {
		if seen[f.name] {
			s.fail(f.pos, "%s is given twice; keep one", clip(f.name, 60))
			continue
		}
		seen[f.name] = true
		if f.value.kind != kindMapping || len(f.value.fields) > maxEntries {
			s.fail(f.value.pos, "%s must be a mapping of up to %d values to limits, not %s", clip(f.name, 60), maxEntries, f.value.describe())
			continue
		}
		if f.name == "list" {
			s.decodeListOverrides(f.value, r, info)
		} else if dim := s.findDimension(f.pos, f.name); dim >= 0 {
			s.decodeValueOverrides(f, dim, r, info)
		}
	}
}

func (s scope) decodeListOverrides(n *node, r *rule, info *Rule) {
	var names []*node
	for _, f := range n.fields {
		names = append(names, &node{pos: f.pos, kind: kindScalar, text: f.name})
	}
	lists := s.listRefs(&node{pos: n.pos, kind: kindSequence, items: names}, "overrides", false)
	for _, f := range n.fields {
		limits := s.decodeLimits(f.value)
		i := slices.IndexFunc(lists, func(l int) bool { return s.p.lists[l].name == f.name })
		if i < 0 || len(limits) == 0 {
			continue
		}
		l := &s.p.lists[lists[i]]
		if l.forgeable(s.p.dims) {
			s.checkForged(f.pos, "list "+f.name, limits)
		}
		if l.dim >= 0 {
			r.body = r.body || s.p.dims[l.dim].body
		}
		r.overrides = append(r.overrides, override{list: lists[i], listed: newVariant(r.name, slotSuffix("list", f.name), limits)})
		info.Overrides = append(info.Overrides, Override{List: f.name, Limits: limits, Position: Position{f.pos.line, f.pos.column}})
	}
}

func (s scope) decodeValueOverrides(f field, index int, r *rule, info *Rule) {
	dim := &s.p.dims[index]
	o := override{list: -1, dim: index, values: make(map[string]*variant)}
	if dim.kind == dimIP || dim.kind == dimRoute {
		s.fail(f.pos, "%s cannot be overridden by value; use a list", dim.name)
		return
	}
	for _, v := range f.value.fields {
		limits := s.decodeLimits(v.value)
		if len(limits) == 0 {
			continue
		}
		value, problem := s.listValue(index, v.name)
		if problem != "" {
			s.fail(v.pos, "value %q %s", clip(v.name, 60), problem)
			continue
		}
		if dim.forgeable {
			s.checkForged(v.pos, "dimension "+dim.name, limits)
		}
		if o.values[value] != nil {
			s.fail(v.pos, "value %q is given twice; keep one", clip(v.name, 60))
			continue
		}
		set := newVariant(r.name, slotSuffix(dim.name, value), limits)
		o.values[value] = &set
		info.Overrides = append(info.Overrides, Override{Dimension: dim.name, Value: v.name, Limits: limits, Position: Position{v.pos.line, v.pos.column}})
	}
	r.body = r.body || dim.body
	r.overrides = append(r.overrides, o)
}

// checkForged refuses limits that a client could give itself.
func (s scope) checkForged(at pos, what string, limits []headgate.Limit) {
	if slices.ContainsFunc(limits, func(l headgate.Limit) bool { return !letsNothingPass(l) }) {
		s.fail(at, "a client can forge %s, and so choose its own limits; only limits of count 0 may stand here", what)
	}
}

func (s scope) decodeSchedule(n *node, info *Rule) []schedule.Entry {
	var entries []schedule.Entry
	for _, item := range s.some(n, "schedule", 100, "remove it, or write when there are other limits") {
		s := s
		s.where += ": schedule"
		before := len(s.problems)
		fields := s.fields(item, scheduleMapping)
		if fields == nil {
			continue
		}
		e := schedule.Entry{Ramp: s.duration(fields["ramp"], "ramp")}
		said := ScheduleEntry{Ramp: e.Ramp, Position: Position{item.line, item.column}}
		said.Text = s.decodeTimes(item, fields, &e)
		said.Until = e.To
		if limits := s.required(item, fields, "limits"); limits != nil {
			e.Limits = s.decodeLimits(limits)
			said.Limits = e.Limits
		}
		if len(s.problems) == before {
			entries = append(entries, e)
			info.Schedule = append(info.Schedule, said)
		}
	}
	return entries
}

// decodeTimes reads when an entry is in force, and returns it as a text.
func (s scope) decodeTimes(item *node, fields map[string]*node, e *schedule.Entry) string {
	daily, from, to := fields["daily"], fields["from"], fields["to"]
	if (daily == nil) == (from == nil && to == nil) || daily == nil && (from == nil || to == nil) {
		s.fail(item.pos, "needs either daily, or from and to")
		return ""
	}
	zone, _ := s.text(fields["zone"], "zone")
	if daily == nil {
		if n := fields["zone"]; n != nil {
			s.fail(n.pos, "zone goes with daily; from and to have their offset themselves")
		}
		for _, end := range []struct {
			n    *node
			name string
		}{{from, "from"}, {to, "to"}} {
			text, ok := s.text(end.n, end.name)
			t, err := schedule.ParseTime(text)
			if ok && err != nil {
				s.fail(end.n.pos, "%s: %v", end.name, err)
			}
			if end.name == "from" {
				e.From = t
			} else {
				e.To = t
			}
		}
		return from.text + " to " + to.text
	}
	text, ok := s.text(daily, "daily")
	if !ok {
		return ""
	}
	if _, err := schedule.ParseDaily("00:00-24:00", zone); err != nil {
		s.fail(fields["zone"].pos, "%v", err)
		return ""
	}
	d, err := schedule.ParseDaily(text, zone)
	if err != nil {
		s.fail(daily.pos, "daily: %v", err)
	}
	e.Daily = d
	if zone != "" {
		text += " " + zone
	}
	return "daily " + text
}

func (s scope) decodeWarmup(n *node, info *Rule) *schedule.Warmup {
	if n == nil {
		return nil
	}
	s.where += ": warmup"
	before := len(s.problems)
	fields := s.fields(n, warmupMapping)
	from, over := s.required(n, fields, "from"), s.required(n, fields, "over")
	w := &schedule.Warmup{From: s.percent(from, "from"), Over: s.durationIn(over, "over", 0, time.Second, 24*time.Hour)}
	if len(s.problems) > before || fields == nil {
		return nil
	}
	if w.From < 0.01 {
		s.fail(from.pos, "from %s is below 1%%", from.text)
		return nil
	}
	info.WarmupFrom, info.WarmupOver = w.From, w.Over
	return w
}

func (s scope) decodeCost(fields map[string]*node, r *rule, info *Rule) {
	r.cost.least = s.integer(fields["min_cost"], "min_cost", 1, 1, headgate.MaxCount)
	info.MinCost = r.cost.least
	var needs []int
	if n := fields["cost"]; n != nil {
		needs = s.decodeCostText(n, &r.cost)
		info.Cost = r.cost.text
		if n := fields["min_cost"]; n != nil && r.cost.kind == costOne && r.cost.text != "" {
			s.fail(n.pos, "min_cost has no meaning where each request costs 1; remove it")
		}
		if e := r.cost.expression; e != nil {
			info.CostInputs, info.CostDimensions = e.Inputs(), e.Dimensions()
		}
	} else if n := fields["min_cost"]; n != nil {
		s.fail(n.pos, "min_cost has no meaning without cost; remove it")
	}
	var more []int
	r.countWhen, more = s.expression(fields["count_when"], "count_when", expr.Bool)
	if r.countWhen != nil {
		info.CountWhen, info.CountNever = r.countWhen.Text(), isNever(r.countWhen)
	}
	r.settled = r.countWhen != nil || r.cost.afterwards()
	info.Settled = r.settled
	r.body = r.body || s.needsBody(needs) || s.needsBody(more)
}

func (s scope) decodeCostText(n *node, c *cost) (needs []int) {
	text, ok := s.text(n, "cost")
	if !ok {
		return nil
	}
	c.text = text
	switch text {
	case "1":
	case "request.bytes":
		c.kind = costRequestBytes
	case "response.bytes":
		c.kind = costResponseBytes
	default:
		c.kind = costExpression
		c.expression, needs = s.expression(n, "cost", expr.Int)
	}
	return needs
}

// afterwards tells whether the cost is known only from the response.
func (c *cost) afterwards() bool {
	return c.kind == costResponseBytes || c.kind == costExpression && c.expression != nil && c.expression.UsesResponse()
}

// foldValue is listValue's part for dimensions with one spelling.
func foldValue(dim *dimension, text string) string {
	if dim.fold {
		return credential.Fold(text)
	}
	return text
}
