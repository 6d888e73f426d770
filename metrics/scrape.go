package metrics

import (
	"log/slog"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// scrape is the collector: it reads the counts, and asks the functions of the Config.
type scrape struct {
	m     *Metrics
	descs map[family]shown
}

// Describe implements prometheus.Collector.
func (s *scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range s.descs {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	out := &sink{descs: s.descs, ch: ch}
	s.m.collectRules(out)
	s.m.policy.collect(out)
	s.m.store.collect(out)
	s.m.leases.collect(out)
	s.m.changes.collect(out)
	s.m.gateway.collect(out)
	s.m.sale.collect(out)
	for name, v := range *s.m.memory.now.Load() {
		v.collect(out, name)
	}
	s.m.cfg.collect(out, s.m.rules)
	out.value(famRulesBundled, float64(s.m.rules.bundled.Load()))
	version, goVersion, revision := s.m.build()
	out.value(famBuild, 1, version, goVersion, revision)
}

// sink makes metrics of values.
type sink struct {
	descs map[family]shown
	ch    chan<- prometheus.Metric
}

func (o *sink) value(f family, v float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "?")
	}
	d := o.descs[f]
	m, err := prometheus.NewConstMetric(d.desc, d.kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d.desc, err)
	}
	o.ch <- m
}

// count shows a counter. One that is still 0 has nothing to tell unless always.
func (o *sink) count(f family, n uint64, always bool, labels ...string) {
	if n > 0 || always {
		o.value(f, float64(n), labels...)
	}
}

// nanoseconds is how many make a second.
const nanoseconds = 1e9

// histogram shows one of whose numbers so many make up the base unit: 1e9 where they are nanoseconds. A quotient is rounded once, so
// that the bound of 1 µs is 1e-06 and that of 30 s is 30: a product with 1e-9, which no double is, would be near them.
func (o *sink) histogram(f family, h *histo, per float64, labels ...string) {
	buckets, sum := h.total()
	upTo := make(map[float64]uint64, len(h.bounds))
	n := uint64(0)
	for i, bound := range h.bounds {
		n += buckets[i]
		upTo[float64(bound)/per] = n
	}
	n += buckets[len(h.bounds)]
	d := o.descs[f]
	m, err := prometheus.NewConstHistogram(d.desc, n, float64(sum)/per, upTo, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d.desc, err)
	}
	o.ch <- m
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func orOK(code string) string {
	if code == "" {
		return "ok"
	}
	return code
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (m *Metrics) collectRules(o *sink) {
	m.rules.each(func(name string, s *ruleSeries, known bool) {
		var sums [len(verdicts)]uint64
		for i := range s.decisions {
			for v := range sums {
				sums[v] += s.decisions[i].n[v].Load()
			}
		}
		for v, n := range sums {
			o.count(famDecisions, n, known && v < shownAlways, name, verdicts[v])
		}
		o.count(famShadow, s.shadow.n.Load(), false, name)
		o.count(famNewKeys, s.newKeys.n.Load(), false, name)
		for i, f := range [...]family{famLeaseAsked, famLeaseGranted, famLeaseRefunded, famLeaseLost} {
			o.count(f, s.leases[i].n.Load(), false, name)
		}
		counts(o, famLeaseCalls, s.leaseCalls, []string{name, other}, func(code string) []string { return []string{name, orOK(code)} })
	})
}

// counts shows a table of counters; rest are the labels of what is beyond its bound.
func counts[K comparable](o *sink, f family, t *table[K, count], rest []string, labels func(K) []string) {
	for k, c := range *t.now.Load() {
		o.value(f, float64(c.n.Load()), labels(k)...)
	}
	o.count(f, t.rest.n.Load(), false, rest...)
}

func (v *PolicyView) collect(o *sink) {
	o.histogram(famDecisionTime, v.took, nanoseconds)
	for i := range v.shed {
		o.count(famShed, v.shed[i].n.Load(), i < len(v.shed)-1, priorityNames[i])
	}
	counts(o, famStoreErrors, v.errors, []string{other, other}, func(k storeError) []string {
		return []string{orNone(k.code), strconv.FormatBool(k.fallback)}
	})
}

func (v *StoreView) collect(o *sink) {
	counts(o, famCalls, v.calls, []string{other, other, other}, func(k storeCall) []string {
		return []string{orNone(k.node), k.script, orOK(k.code)}
	})
	scripts := *v.took.now.Load()
	if len(scripts) == 0 {
		return // there is no such store
	}
	for script, h := range scripts {
		o.histogram(famCallTime, h, nanoseconds, script)
	}
	o.histogram(famCallTakes, v.takes, 1)
	counts(o, famCallers, v.failed, []string{other, other}, func(k callerError) []string {
		if k.own {
			return []string{orNone(k.code), "caller"}
		}
		return []string{orNone(k.code), "store"}
	})
	o.count(famUnknown, v.unknown.n.Load(), true)
}

func (v *MemoryView) collect(o *sink, name string) {
	o.value(famMemoryKeys, float64(v.keys.Load()), name)
	o.value(famMemorySlots, float64(v.slots.Load()), name)
	o.value(famMemoryOverflows, float64(v.overflowed.Load()), name)
	o.value(famMemoryForgotten, float64(v.forgotten.Load()), name)
}

func (v *LeaseView) collect(o *sink) {
	if v.called.Load() {
		o.histogram(famLeaseTime, v.took, nanoseconds)
	}
}

func (v *ResilienceView) collect(o *sink) {
	counts(o, famBreakerChanges, v.breakers, []string{other, other}, func(k breakerChange) []string {
		if k.open {
			return []string{orNone(k.node), "open"}
		}
		return []string{orNone(k.node), "closed"}
	})
	counts(o, famLevelChanges, v.levels, []string{other, other, other}, func(k levelChange) []string {
		return []string{strconv.Itoa(k.level), onOff(k.on), orNone(k.by)}
	})
	counts(o, famLevelAlerts, v.alerts, []string{other}, func(level int) []string { return []string{strconv.Itoa(level)} })
	for i := range v.overload {
		o.count(famOverloadChanges, v.overload[i].n.Load(), true, onOff(i == 1))
	}
}

func (v *GatewayView) collect(o *sink) {
	answers := *v.answers.now.Load()
	if len(answers) == 0 {
		return // there is no gateway, or nobody has come yet
	}
	counts(o, famRequests, v.answers, []string{other, other}, func(k answer) []string {
		return []string{statusText(k.status), verdicts[k.verdict]}
	})
	o.histogram(famRequestTime, v.took, nanoseconds)
	o.histogram(famUpstreamTime, v.upstream, nanoseconds)
}

// scrapeLog passes on what goes wrong at a scrape.
type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	parts := make([]any, 0, len(v))
	parts = append(parts, v...)
	l.log.Error("metrics could not be shown in full", slog.Any("errors", parts))
}
