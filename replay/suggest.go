package replay

import (
	"fmt"
	"slices"

	headgate "github.com/headgate-io/headgate"
)

// suggestions says what the keys of each limit needed.
func (t *ruleTally) suggestions() []Suggestion {
	if len(t.keys.items) == 0 {
		return nil
	}
	var all []Suggestion
	for i, g := range t.gauges {
		if g.kind != gaugeNone {
			if s, ok := t.suggestion(i, g); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

func (t *ruleTally) suggestion(index int, g *gauge) (Suggestion, bool) {
	needs, peaks := []int64{}, []int64{}
	over := 0
	for _, k := range t.keys.items {
		need := g.need(&k.usage[index])
		if need == 0 {
			continue // it never counted
		}
		needs, peaks = append(needs, need), append(peaks, k.usage[index].peak)
		if g.over(&k.usage[index]) {
			over++
		}
	}
	if len(needs) == 0 {
		return Suggestion{}, false
	}
	slices.Sort(needs)
	slices.Sort(peaks)
	estimated := !t.keys.whole()
	s := Suggestion{
		Rule: t.info.Name, Limit: g.limit.String(), Measure: g.measure(),
		Keys: Count{t.keys.scale(len(needs)), estimated}, Over: Count{t.keys.scale(over), estimated},
		Share: share(int64(over), int64(len(needs))),
		Need:  Quantiles{quantile(needs, 500), quantile(needs, 990), quantile(needs, 999), needs[len(needs)-1]},
	}
	s.P99, s.Note = g.suggestText(s.Need.P99, quantile(peaks, 990))
	var note string
	if s.P999, note = g.suggestText(s.Need.P999, quantile(peaks, 999)); s.Note == "" {
		s.Note = note
	}
	return s, true
}

func (g *gauge) suggestText(need, most int64) (text, note string) {
	l, note := g.suggest(need, most)
	if l == nil {
		return "", note
	}
	return l.String(), note
}

// quantile returns the value that so many thousandths of the sorted values do not exceed.
func quantile(sorted []int64, thousandths int) int64 {
	rank := (len(sorted)*thousandths + 999) / 1000
	return sorted[max(rank, 1)-1]
}

// measure says what is counted.
func (g *gauge) measure() string {
	switch {
	case g.kind == gaugeAligned:
		if unit, _ := g.limit.(headgate.FixedWindow).Calendar(); unit != headgate.NotCalendar {
			return "in one " + unit.String()
		}
		return "in one window of " + periodText(g.period)
	case g.kind == gaugeCells:
		return "in any " + periodText(g.period) + ", as its cells count"
	case g.kind == gaugeBucket:
		return "at once, refilled at its rate"
	}
	return "in any " + periodText(g.period)
}

func periodText(us int64) string {
	for _, u := range [...]struct {
		us   int64
		name string
	}{{24 * hourMicros, "d"}, {hourMicros, "h"}, {hourMicros / 60, "m"}, {1e6, "s"}, {1e3, "ms"}} {
		if us%u.us == 0 {
			return fmt.Sprintf("%d%s", us/u.us, u.name)
		}
	}
	return fmt.Sprintf("%dus", us)
}
