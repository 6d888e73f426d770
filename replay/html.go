package replay

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"
)

//go:embed report.html.tmpl
var page string

// WriteHTML writes the report as one page that needs nothing else: no script, no font and no picture from elsewhere.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"n": grouped, "pct": percentOf, "signed": signed, "bar": barWidth, "add": func(a, b int64) int64 { return a + b },
	}).Parse(page)
	if err != nil {
		return err
	}
	p := &htmlPage{Report: r, Chart: newChart(&r.Series)}
	if r.Series.SliceS > 1 {
		p.CloseUp = newChart(&r.Busiest)
	}
	return t.Execute(w, p)
}

// htmlPage is what the template is filled with.
type htmlPage struct {
	*Report
	Chart   *chart
	CloseUp *chart // nil if the chart shows every second already
}

// Headline are the figures that come first.
func (p *htmlPage) Headline() []headline {
	t := &p.Total
	lines := []headline{
		{"Requests", grouped(t.Requests), p.Log.Clients.String() + " clients", ""},
		{"Let through", percentOf(share(t.Allowed, t.Requests)), grouped(t.Allowed), p.was(func(t *Total) string { return percentOf(share(t.Allowed, t.Requests)) })},
		{"Denied", percentOf(t.DenialRate), grouped(t.Denied) + kindsText(t.Kinds), p.was(func(t *Total) string { return percentOf(t.DenialRate) })},
		{"Clients hit", percentOf(t.ClientsShare), t.ClientsHit.String() + " had a request denied", p.was(func(t *Total) string { return percentOf(t.ClientsShare) })},
		{"Peak", grouped(t.PeakAfter) + "/s", "of " + grouped(t.PeakBefore) + "/s that came", p.was(func(t *Total) string { return grouped(t.PeakAfter) + "/s" })},
	}
	for _, m := range t.Money {
		lines = append(lines, headline{"Saved", m.amount(m.Saved), m.amount(m.Spent) + " spent", p.wasMoney(m.Currency)})
	}
	return lines
}

type headline struct{ Name, Value, Beside, Was string }

func (p *htmlPage) was(f func(*Total) string) string {
	if p.Before == nil {
		return ""
	}
	return "before: " + f(p.Before)
}

func (p *htmlPage) wasMoney(currency string) string {
	if p.Before == nil {
		return ""
	}
	for _, m := range p.Before.Money {
		if m.Currency == currency {
			return "before: " + m.amount(m.Saved)
		}
	}
	return ""
}

// Span is the time of the log.
func (p *htmlPage) Span() string { return p.Log.span() }

// Summary says what was read.
func (p *htmlPage) Summary() string { return p.Log.summary() }

// KeyedRules are the rules with keys that were denied.
func (p *htmlPage) KeyedRules() []RuleReport {
	var rules []RuleReport
	for _, r := range p.Rules {
		if len(r.TopKeys) > 0 && (len(r.TopKeys) > 1 || r.TopKeys[0].Key != "") {
			rules = append(rules, r)
		}
	}
	return rules
}

// Hits is what a rule denied, for a shadow rule what it would have.
func (x *RuleReport) Hits() int64 {
	if x.Mode == "shadow" {
		return x.ShadowDenied
	}
	return x.Denied
}

// Rate is the share of its requests that Hits are.
func (x *RuleReport) Rate() float64 { return share(x.Hits(), x.Requests) }

// Label is the key as it is shown.
func (k KeyReport) Label() string { return k.name() }

// Share is the part of the key's requests that was denied.
func (k KeyReport) Share() float64 { return share(k.Denied, k.Requests) }

// barWidth is a share as a width in percent; what is not nothing shows.
func barWidth(share float64) string {
	p := share * 100
	if p > 0 && p < 1.5 {
		p = 1.5
	}
	return strconv.FormatFloat(min(p, 100), 'f', 1, 64)
}

// Bounds of the chart's drawing, in units of its view box.
const (
	chartWidth  = 1120.0
	chartHeight = 260.0
)

// chart is the traffic over time as shapes of an SVG.
type chart struct {
	Width, Height float64
	// Came and Allowed are areas from the bottom line, AllowedLine and BeforeLine lines.
	Came, Allowed, AllowedLine, BeforeLine string
	Across, Down                           []tick
	Unit                                   string
}

type tick struct {
	At     float64
	Text   string
	Anchor string
}

func newChart(s *Series) *chart {
	c := &chart{Width: chartWidth, Height: chartHeight, Unit: "requests per second"}
	if s.SliceS > 1 {
		c.Unit += ", each point the mean of " + periodText(s.SliceS*1e6)
	}
	if len(s.Requests) == 0 {
		return c
	}
	top := niceTop(float64(maxOf(s.Requests)) / float64(s.SliceS))
	c.Came = c.area(s.Requests, s.SliceS, top)
	c.Allowed = c.area(s.Allowed, s.SliceS, top)
	c.AllowedLine = c.line(s.Allowed, s.SliceS, top)
	if len(s.Before) > 0 {
		c.BeforeLine = c.line(s.Before, s.SliceS, top)
	}
	for i := range 5 {
		share := float64(i) / 4
		c.Down = append(c.Down, tick{At: chartHeight * (1 - share), Text: strconv.FormatFloat(top*share, 'g', 4, 64)})
	}
	c.Across = timeTicks(s)
	return c
}

func maxOf(values []int64) (most int64) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// niceTop is the next of 1, 2, 4, 8 times a power of ten.
func niceTop(x float64) float64 {
	for unit := 1e-6; unit < 1e15; unit *= 10 {
		for _, n := range [...]float64{1, 2, 4, 8} {
			if unit*n >= x && x > 0 {
				return unit * n
			}
		}
	}
	return 1
}

// line is the points of a polyline. A slice of time is as wide as it is long, and its point stands in its middle; the first
// and the last reach the edges.
func (c *chart) line(values []int64, slice int64, top float64) string {
	var b strings.Builder
	at := func(x float64, v int64) {
		y := chartHeight * (1 - float64(v)/float64(slice)/top)
		b.WriteString(strconv.FormatFloat(x, 'f', 1, 64) + "," + strconv.FormatFloat(y, 'f', 1, 64) + " ")
	}
	step := chartWidth / float64(len(values))
	at(0, values[0])
	for i, v := range values {
		at((float64(i)+0.5)*step, v)
	}
	at(chartWidth, values[len(values)-1])
	return strings.TrimSpace(b.String())
}

func (c *chart) area(values []int64, slice int64, top float64) string {
	return fmt.Sprintf("0,%.0f %s %.0f,%.0f", chartHeight, c.line(values, slice, top), chartWidth, chartHeight)
}

// timeTicks marks round times, about eight of them.
func timeTicks(s *Series) []tick {
	length := s.SliceS * int64(len(s.Requests))
	steps := [...]int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000}
	step := steps[len(steps)-1]
	for _, candidate := range steps {
		if length/candidate <= 9 {
			step = candidate
			break
		}
	}
	layout := "15:04:05"
	switch {
	case step >= 86400:
		layout = "2006-01-02"
	case step >= 60 && length > 86400:
		layout = "02 Jan 15:04"
	case step >= 60:
		layout = "15:04"
	}
	var ticks []tick
	from := s.From.Unix()
	for at := from - floorMod(from, step) + step; at < from+length && len(ticks) < 400; at += step {
		x := float64(at-from) / float64(length) * chartWidth
		if x > 20 && x < chartWidth-20 {
			ticks = append(ticks, tick{At: x, Text: time.Unix(at, 0).UTC().Format(layout)})
		}
	}
	return ticks
}

// Change is how many more requests the rule denies than before.
func (d RuleDifference) Change() int64 { return d.NewDenied - d.OldDenied }
