package policy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy/internal/expr"
)

func (d *decoder) decodeRules(n *node) {
	seen := make(map[string]bool)
	for i, item := range (scope{d, ""}).list(n, "rules", maxRules) {
		s := scope{d, ruleLabel(i, item)}
		fields := s.fields(item, ruleMapping)
		if fields == nil {
			continue
		}
		name, ok := s.ruleName(item, fields["name"])
		if ok && seen[name] {
			s.fail(fields["name"].pos, "the name is taken by an earlier rule; rename one")
		}
		seen[name] = true
		s.decodeRule(item, fields, name)
	}
}

// ruleLabel names a rule in messages: by its name, or by its place if it has no proper one.
func ruleLabel(i int, item *node) string {
	for _, f := range item.fields {
		if f.name == "name" && validName(f.value.text) {
			return "rule " + strconv.Quote(f.value.text)
		}
	}
	return "rule " + strconv.Itoa(i+1)
}

func (s scope) ruleName(item, n *node) (string, bool) {
	if n == nil {
		s.fail(item.pos, "name is missing")
		return "", false
	}
	name, ok := s.text(n, "name")
	if ok && !validName(name) {
		s.fail(n.pos, "%q %s", clip(name, 80), nameRule)
		return "", false
	}
	return name, ok
}

func (s scope) decodeRule(item *node, fields map[string]*node, name string) {
	before := len(s.problems)
	r := rule{name: name, spec: -1}
	info := Rule{Name: name, positions: positionsOf(item)}
	info.Mode = Mode(s.oneOf(fields["mode"], "mode", string(Enforce), string(Shadow), string(Off)))
	r.shadow = info.Mode == Shadow
	r.match = s.decodeMatch(fields["match"])
	r.match.describe(&info)
	s.decodeWho(fields, &r, &info)
	s.decodeAllLimits(item, fields, &r, &info)
	s.decodeCost(fields, &r, &info)
	r.lockout = s.decodeLockout(fields["lockout"], fields["key"])
	info.Lockout = r.lockout
	r.action = s.decodeAction(fields["on_deny"])
	info.Action = r.action.kind
	s.decodeClass(fields, &r, &info)
	if len(s.problems) == before {
		s.checkRule(fields, &r)
	}
	s.p.infos = append(s.p.infos, info)
	if info.Mode != Off {
		s.p.rules = append(s.p.rules, r)
	}
}

func positionsOf(item *node) map[string]Position {
	at := map[string]Position{"": {item.line, item.column}}
	for _, f := range item.fields {
		at[f.name] = Position{f.line, f.column}
	}
	return at
}

// decodeWho reads which requests the rule applies to, and what they are told apart by.
func (s scope) decodeWho(fields map[string]*node, r *rule, info *Rule) {
	var needs []int
	r.when, needs = s.expression(fields["when"], "when", expr.Bool)
	if r.when != nil {
		info.When, info.WhenInputs, info.WhenDimensions = r.when.Text(), r.when.Inputs(), r.when.Dimensions()
		info.WhenNever = isNever(r.when)
		if r.when.UsesResponse() {
			s.fail(fields["when"].pos, "when: there is no response yet; use count_when")
		}
	}
	if key := fields["key"]; key != nil {
		r.spec, info.Key = s.decodeKey(key)
	}
	if r.spec >= 0 {
		for _, part := range s.p.specs[r.spec].parts {
			var names []string
			for _, dim := range part {
				names = append(names, s.p.dims[dim].name)
			}
			info.KeyDimensions = append(info.KeyDimensions, names)
			needs = append(needs, part...)
		}
	}
	r.skip = s.listRefs(fields["skip"], "skip", true)
	for _, l := range r.skip {
		info.Skip = append(info.Skip, s.p.lists[l].name)
		if dim := s.p.lists[l].dim; dim >= 0 {
			needs = append(needs, dim)
		}
	}
	r.missing = s.decodeMissing(fields["missing"], fields["key"])
	info.Missing = [...]string{"shared", "skip", "deny"}[r.missing]
	r.body = r.body || s.needsBody(needs)
}

// isNever tells whether a condition that reads nothing of the request or of its answer is false. One that fails is true.
func isNever(condition *expr.Expression) bool {
	if len(condition.Inputs())+len(condition.Dimensions()) > 0 || condition.UsesResponse() {
		return false
	}
	holds, err := condition.Bool(nil)
	return err == nil && !holds
}

func (s scope) needsBody(dims []int) bool {
	return slices.ContainsFunc(dims, func(i int) bool { return s.p.dims[i].body })
}

func (s scope) decodeMissing(n, key *node) missing {
	if n != nil && (key == nil || len(key.items) == 0) {
		s.fail(n.pos, "missing has no meaning without a key; remove it")
	}
	switch s.oneOf(n, "missing", "shared", "skip", "deny") {
	case "skip":
		return missingSkip
	case "deny":
		return missingDeny
	}
	return missingShared
}

// decodeLockout reads a lockout; every limit of the rule carries it, and counts its own denials.
func (s scope) decodeLockout(n, key *node) *headgate.Lockout {
	if n == nil {
		return nil
	}
	s.where += ": lockout"
	before := len(s.problems)
	fields := s.fields(n, lockoutMapping)
	if fields == nil {
		return nil
	}
	if key == nil || len(key.items) == 0 {
		s.fail(n.pos, "needs a key: without one it would shut everybody out")
	}
	l := &headgate.Lockout{
		After:  s.integer(fields["after"], "after", 1, 1, headgate.MaxCount),
		Within: s.duration(fields["within"], "within"),
		For:    s.duration(fields["for"], "for"),
		Max:    s.duration(fields["max"], "max"),
	}
	if len(s.problems) > before {
		return nil
	}
	switch {
	case l.For == 0:
		s.fail(n.pos, "for is missing; write how long the key is shut, such as for: 30m")
	case l.After > 1 && l.Within == 0:
		s.fail(n.pos, "within is missing; write in what time %d denials shut the key, such as within: 10m", l.After)
	case l.Max != 0 && l.Max < l.For:
		s.fail(fields["max"].pos, "max %s is shorter than for %s", fields["max"].text, fields["for"].text)
	}
	return l
}

// decodeClass reads where the rule's states are, and how the rule is counted with others.
func (s scope) decodeClass(fields map[string]*node, r *rule, info *Rule) {
	info.Store = StoreKind(s.oneOf(fields["store"], "store", string(Strict), string(Leased), string(Local)))
	r.store = map[StoreKind]storeOrder{Strict: storeStrict, Leased: storeLeased, Local: storeLocal}[info.Store]
	info.OnError = OnError(s.oneOf(fields["on_error"], "on_error", string(OnErrorLocal), string(OnErrorOpen), string(OnErrorClosed), string(OnErrorStale)))
	r.onError = info.OnError
	info.Layer = defaultLayer(info.KeyDimensions)
	if n := fields["layer"]; n != nil {
		info.Layer = Layer(s.oneOf(n, "layer", string(LayerGlobal), string(LayerUser), string(LayerDevice)))
	}
	info.Priority = Priority(s.oneOf(fields["priority"], "priority", string(Normal), string(Critical), string(Sheddable)))
	info.UnitCost = s.money(fields["unit_cost"], "unit_cost")
	r.layer, r.ranked, r.rank = info.Layer, fields["priority"] != nil, rankOf(info.Priority)
	if info.Store == Leased && r.lockout != nil {
		s.warn(fields["store"].pos, s.where+": store: leased acts as strict beside a lockout, which counts denials in the store itself")
	}
}

// deviceDimension is the name of the dimension that makes a rule one of the device layer.
const deviceDimension = "device"

func defaultLayer(key [][]string) Layer {
	if len(key) == 0 {
		return LayerGlobal
	}
	for _, part := range key {
		if slices.Contains(part, deviceDimension) {
			return LayerDevice
		}
	}
	return LayerUser
}

// money reads 0.05 CNY.
func (s scope) money(n *node, name string) Money {
	text, ok := s.text(n, name)
	if !ok {
		return Money{}
	}
	amount, currency, _ := strings.Cut(text, " ")
	whole, part, _ := strings.Cut(amount, ".")
	micros, err := strconv.ParseInt(whole+(part + "000000")[:6], 10, 64)
	capitals := len(currency) == 3 && strings.Trim(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	if err != nil || !capitals || whole == "" || len(whole) > 9 || len(part) > 6 || strings.Trim(amount, "0123456789.") != "" {
		s.fail(n.pos, "%s must be an amount with up to 6 decimals and a currency, such as 0.05 CNY, not %s", name, n.describe())
		return Money{}
	}
	return Money{Micros: micros, Currency: currency}
}

// checkRule refuses fields that do not go with each other.
func (s scope) checkRule(fields map[string]*node, r *rule) {
	concurrent, queue := r.hasLimit(isConcurrency), r.hasLimit(isQueue)
	gets := r.match.methods == 0 || r.match.methods&methodBit(http.MethodGet) != 0
	for _, c := range []struct {
		wrong          bool
		field, message string
	}{
		{r.settled && (concurrent || queue), "limits", "a charge that is known only from the response goes with no concurrency and no queue"},
		{!r.settled && r.cost.kind != costOne && concurrent, "cost", "a concurrency limit counts requests; remove cost"},
		{r.action.kind == Mark && concurrent, "on_deny", "mark lets requests pass beyond the limit, which a concurrency limit cannot count"},
		{r.action.kind == Wait && r.lockout != nil, "lockout", "a request that waits is denied until its turn comes, and would shut its own key; remove lockout, or let on_deny reject"},
		{r.action.kind == Stale && !gets, "on_deny", "only answers to GET are kept, and the rule matches none; add GET to its methods, or use another action"},
		{r.onError == OnErrorStale && !gets, "on_error", "only answers to GET are kept, and the rule matches none; write closed, which does the same"},
		{r.store == storeLeased && !r.all(isLeasable), "store", "leased goes with token_bucket, fixed_window and sliding_window only"},
	} {
		if n := fields[c.field]; c.wrong && n != nil {
			s.fail(n.pos, "%s", c.message)
		}
	}
}

func (r *rule) all(is func(headgate.Limit) bool) bool {
	return !r.hasLimit(func(l headgate.Limit) bool { return !is(l) })
}

// decodeKey reads a key. It returns -1 for the empty key.
func (s scope) decodeKey(n *node) (spec int, texts []string) {
	var parts []keyPart
	var used = make(map[int]bool)
	for _, item := range s.list(n, "key", maxParts) {
		text, ok := s.text(item, "key")
		if !ok {
			continue
		}
		words := strings.Split(text, "|")
		if len(words) > maxParts {
			s.fail(item.pos, "key %q has %d alternatives; %d are allowed", clip(text, 60), len(words), maxParts)
			continue
		}
		var part keyPart
		for _, word := range words {
			if word = strings.TrimSpace(word); word == "" {
				s.fail(item.pos, "key %q has an empty alternative", clip(text, 60))
				continue
			}
			i := s.findDimension(item.pos, word)
			if i >= 0 && used[i] {
				s.fail(item.pos, "key names dimension %q twice; keep one", s.p.dims[i].name)
			}
			if i >= 0 {
				used[i] = true
				part = append(part, i)
			}
		}
		if len(part) > 0 {
			parts = append(parts, part)
			texts = append(texts, text)
		}
	}
	if len(parts) == 0 {
		return -1, nil
	}
	return s.intern(parts), texts
}

// intern returns the index of a key, one for all rules that have the same.
func (d *decoder) intern(parts []keyPart) int {
	spec := newKeySpec(parts, d.p.dims)
	if i, ok := d.specs[spec.text]; ok {
		return i
	}
	d.specs[spec.text] = len(d.p.specs)
	d.p.specs = append(d.p.specs, spec)
	return len(d.p.specs) - 1
}

// Defaults of on_deny.
const (
	defaultMaxWait = 2 * time.Second
	defaultMaxAge  = time.Minute
)
