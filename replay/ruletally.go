package replay

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Bounds of what is kept, for all rules together and for one.
const (
	trackedKeys    = 300_000
	mostKeys       = 150_000
	fewestKeys     = 500
	trackedClients = 2_000_000
	mostClients    = 200_000
	heavyKeys      = 400
	topKeys        = 10
	keptKeyBytes   = 160
)

// ruleTally sums up what one rule did.
type ruleTally struct {
	info   RuleInfo
	gauges []*gauge

	requests, denied, over, marked, shadowDenied int64
	saved                                        int64 // requests denied, by whatever rule
	before, after                                perSecond

	clients sample[bool] // true: hit
	keys    sample[*keyTally]
	heavy   *heavy // once there are more keys than the sample takes
}

// keyTally is what is known of one key.
type keyTally struct {
	key              string
	requests, denied int64
	usage            []usage // by limit
}

func newRuleTally(info RuleInfo, rules int) *ruleTally {
	t := &ruleTally{
		info:    info,
		clients: newSample[bool](min(max(trackedClients/max(rules, 1), fewestKeys), mostClients)),
		keys:    newSample[*keyTally](min(max(trackedKeys/max(rules, 1), fewestKeys), mostKeys)),
	}
	for _, l := range info.Limits {
		t.gauges = append(t.gauges, newGauge(l))
	}
	return t
}

// keptKey is a key as long as it is worth keeping, in memory of its own.
func keptKey(key string) string { return strings.Clone(clip(key, keptKeyBytes)) }

// see counts one request that the rule applied to.
func (t *ruleTally) see(r *judged, m *httpverdict.Match) {
	t.requests++
	t.before.add(r.at)
	switch {
	case r.watched(t.info.Name):
		t.shadowDenied++
	case !m.Shadow && (m.Over || overLimit(m)):
		t.over++
	}
	if m.Over && r.allowed {
		t.marked++
	}
	if r.allowed {
		t.after.add(r.at)
		return
	}
	t.saved++
	if r.rule == t.info.Name {
		t.denied++
	}
}

// refuse counts a request that the rule denied without a look at a limit.
func (t *ruleTally) refuse(r *judged) {
	t.requests++
	t.before.add(r.at)
	t.denied++
	t.saved++
	t.clientHit(r, true)
}

// seeWho counts whose request it was.
func (t *ruleTally) seeWho(r *judged, m *httpverdict.Match) {
	hit := !r.allowed && r.rule == t.info.Name || r.watched(t.info.Name)
	t.clientHit(r, hit)
	t.seeKey(r, m, hit)
}

func (t *ruleTally) clientHit(r *judged, hit bool) {
	if was, known := t.clients.items[r.client]; t.clients.wants(r.client) && (!known || hit && !was) {
		t.clients.put(r.client, hit)
	}
}

func (t *ruleTally) seeKey(r *judged, m *httpverdict.Match, hit bool) {
	hash := hashText(m.Key)
	if t.heavy != nil {
		t.heavy.see(hash, m.Key, hit)
	}
	if !t.keys.wants(hash) {
		return
	}
	k := t.keys.items[hash]
	if k == nil {
		k = &keyTally{key: keptKey(m.Key), usage: make([]usage, len(t.gauges))}
		t.addKey(hash, k)
	}
	k.requests++
	if hit {
		k.denied++
	}
	if t.info.Settled && !r.settled {
		t.measure(k, m, r.at, (*gauge).ask)
	} else {
		t.measure(k, m, r.at, (*gauge).add)
	}
}

// settle notes what a request was charged when it was over.
func (t *ruleTally) settle(at int64, m *httpverdict.Match) {
	if k := t.keys.items[hashText(m.Key)]; k != nil {
		t.measure(k, m, at, (*gauge).add)
	}
}

// measure tells the gauges of a key what a request costs.
func (t *ruleTally) measure(k *keyTally, m *httpverdict.Match, at int64, tell func(g *gauge, u *usage, now, cost int64)) {
	for i, g := range t.gauges {
		if i < len(m.Limits) && m.Limits[i].Limit == g.limit { // not while an override or a schedule changes it
			tell(g, &k.usage[i], at, m.Cost)
		}
	}
}

// addKey takes a key into the sample. When that has every key for the last time, those with the most denials are handed on.
func (t *ruleTally) addKey(hash uint64, k *keyTally) {
	if t.heavy == nil && len(t.keys.items) == t.keys.most {
		t.heavy = newHeavy(heavyKeys)
		all := slices.SortedFunc(maps.Keys(t.keys.items), func(a, b uint64) int {
			return t.keys.items[a].compare(t.keys.items[b])
		})
		for _, h := range all[:min(len(all), heavyKeys)] {
			t.heavy.take(h, t.keys.items[h])
		}
	}
	t.keys.put(hash, k)
}

// compare orders keys by denials, then by requests, the most first.
func (k *keyTally) compare(o *keyTally) int {
	return cmp.Or(cmp.Compare(o.denied, k.denied), cmp.Compare(o.requests, k.requests), cmp.Compare(k.key, o.key))
}

// overLimit tells whether a limit had no room. An outcome without a reason was not asked for.
func overLimit(m *httpverdict.Match) bool {
	for i := range m.Limits {
		if o := &m.Limits[i].Outcome; !o.Allowed && o.Reason != headgate.ReasonNone {
			return true
		}
	}
	return false
}

func (t *ruleTally) report() RuleReport {
	r := RuleReport{
		Rule: t.info.Name, Mode: cmp.Or(t.info.Mode, "enforce"), Limits: []string{}, Requests: t.requests, Denied: t.denied,
		DenialRate: share(t.denied, t.requests), Over: t.over, Marked: t.marked, ShadowDenied: t.shadowDenied,
		PeakBefore: t.before.peak, PeakAfter: t.after.peak, TopKeys: t.topKeys(),
	}
	for _, l := range t.info.Limits {
		r.Limits = append(r.Limits, l.String())
	}
	hit := 0
	for _, h := range t.clients.items {
		if h {
			hit++
		}
	}
	estimated := !t.clients.whole()
	r.Clients = Count{t.clients.scale(len(t.clients.items)), estimated}
	r.ClientsHit = Count{t.clients.scale(hit), estimated}
	r.ClientsShare = share(int64(hit), int64(len(t.clients.items)))
	if spent, saved := t.micros(); t.info.UnitCostMicros > 0 {
		r.Money = &Money{t.info.Currency, float64(spent) / 1e6, float64(saved) / 1e6}
	}
	return r
}

// micros is what the rule's requests have cost, and what denials have saved, in millionths.
func (t *ruleTally) micros() (spent, saved int64) {
	return (t.requests - t.saved) * t.info.UnitCostMicros, t.saved * t.info.UnitCostMicros
}

// topKeys returns the keys with the most denials.
func (t *ruleTally) topKeys() []KeyReport {
	top := []KeyReport{}
	if t.heavy == nil {
		for _, k := range t.keys.items {
			if k.denied > 0 {
				top = append(top, KeyReport{Key: k.key, Requests: k.requests, Denied: k.denied})
			}
		}
	} else {
		for _, c := range t.heavy.order {
			if c.denied == 0 {
				continue
			}
			top = append(top, KeyReport{Key: c.key, Requests: c.requests, Denied: c.denied, Estimated: true})
		}
	}
	slices.SortFunc(top, func(a, b KeyReport) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Key, b.Key))
	})
	top = top[:min(len(top), topKeys)]
	for i := range top {
		top[i].Key = shown(top[i].Key, keptKeyBytes)
	}
	return top
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
