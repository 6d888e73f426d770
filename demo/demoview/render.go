package demoview

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"github.com/headgate-io/headgate/demo"
)

// styles are the colours of the view; a terminal without colours shows the same text. They are the terminal's own, which
// its theme makes readable, so nobody need ask whether it is light or dark.
type styles struct {
	title, dim, good, bad, note, label lipgloss.Style
}

func newStyles(r *lipgloss.Renderer) styles {
	colour := func(number string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(number)) }
	return styles{
		title: colour("6").Bold(true),
		dim:   r.NewStyle().Faint(true),
		good:  colour("2"),
		bad:   colour("1"),
		note:  colour("3"),
		label: r.NewStyle().Bold(true),
	}
}

// labelWidth is the width of the first column.
const labelWidth = 11

// minWidth and maxWidth bound the width that is drawn on.
const (
	minWidth = 40
	maxWidth = 140
)

// render draws the view for the size of the terminal; what does not fit below is left out.
func (m model) render() string {
	w := min(max(m.width, minWidth), maxWidth) - 2
	if len(m.past) == 0 {
		return "\n " + m.style.title.Render("HEADGATE demo") + m.style.dim.Render("  the doors are opening …")
	}
	now := m.past[len(m.past)-1]
	rows := m.head(now, w)
	rows = append(rows, "")
	rows = append(rows, m.traffic(now, w)...)
	rows = append(rows, "")
	rows = append(rows, m.latency(now)...)
	rows = append(rows, "")
	rows = append(rows, m.people(now, w)...)
	rows = append(rows, m.faults(now)...)
	rows = append(rows, "")
	if room := m.height - len(rows) - roundRules; room < fewRules && len(now.ByRule) > room {
		rows = append(rows, m.busiest(now, w))
	} else {
		rows = append(append(rows, m.style.label.Render("Denied by rule")), m.rules(now, w, room)...)
	}
	for len(rows) < m.height-1 {
		rows = append(rows, "")
	}
	rows = rows[:max(min(len(rows), m.height-1), 1)]
	rows = append(rows, m.foot())
	for i, row := range rows {
		rows[i] = strings.TrimRight(" "+clip(row, max(m.width-1, 1)), " ")
	}
	return strings.Join(rows, "\n")
}

func (m model) head(s demo.Snapshot, w int) []string {
	left := m.style.title.Render("HEADGATE demo") + "  " + m.phase(s.Phase)
	right := fmt.Sprintf("%s of %s", whole(min(s.Elapsed, s.Total)), whole(s.Total))
	return []string{
		spread(left, right, w),
		m.style.dim.Render(where(s, w)),
		m.style.title.Render(bar(s.Elapsed.Seconds(), s.Total.Seconds(), w)),
	}
}

// where says what is shown, as much of it as a line has room for without cutting a word.
func where(s demo.Snapshot, w int) string {
	gate := s.Gateway + " → shop"
	sale := fmt.Sprintf("sale in %s, stock in %s", s.DB, s.StockIn)
	for _, text := range []string{
		fmt.Sprintf("%s · policy %s · store %s · %s", gate, s.Policy, s.Store, sale),
		fmt.Sprintf("%s · policy %s · store %s", gate, s.Policy, s.Store),
		fmt.Sprintf("%s · %s · %s", gate, s.Policy, s.Store),
		fmt.Sprintf("%s · %s", gate, s.Store),
	} {
		if lipgloss.Width(text) <= w {
			return text
		}
	}
	return clip(gate, w)
}

func (m model) phase(p demo.Phase) string {
	switch p {
	case demo.PhaseSale:
		return m.style.good.Render(string(p))
	case demo.PhaseAllHeld, demo.PhaseSoldOut:
		return m.style.bad.Render(string(p))
	}
	return m.style.note.Render(string(p))
}

// traffic shows counts, rates over the last second, and their course.
func (m model) traffic(s demo.Snapshot, w int) []string {
	line := func(name string, style lipgloss.Style, of func(demo.Snapshot) int64) string {
		text := m.label(name) + fmt.Sprintf("%11s  %8s/s  ", grouped(of(s)), grouped(m.rate(of)))
		return text + style.Render(spark(m.course(of, w-lipgloss.Width(text))))
	}
	return []string{
		line("Requests", m.style.title, func(s demo.Snapshot) int64 { return s.Requests }),
		line("  allowed", m.style.good, func(s demo.Snapshot) int64 { return s.Allowed }),
		line("  denied", m.style.bad, func(s demo.Snapshot) int64 { return s.Denied }),
		line("  errors", m.style.note, func(s demo.Snapshot) int64 { return s.Errors }),
	}
}

func (m model) latency(s demo.Snapshot) []string {
	pair := func(p50, p99 time.Duration) string { return fmt.Sprintf("p50 %-8s p99 %-9s", short(p50), short(p99)) }
	return []string{
		m.label("Answers") + pair(millis(s.LatencyMS.P50), millis(s.LatencyMS.P99)) +
			m.style.dim.Render("now      "+pair(millis(s.RecentMS.P50), millis(s.RecentMS.P99))),
		m.label("Gate adds") + pair(micros(s.AddedUS.P50), micros(s.AddedUS.P99)) +
			m.style.dim.Render("deciding "+pair(micros(s.DecisionUS.P50), micros(s.DecisionUS.P99))),
	}
}

// people shows who was served, and the stock.
func (m model) people(s demo.Snapshot, w int) []string {
	width := max(w-labelWidth-48, 8)
	audience := func(name string, a demo.Audience, style lipgloss.Style) string {
		total := a.Served + a.Denied
		return m.label(name) + style.Render(bar(float64(a.Served), float64(total), width)) +
			fmt.Sprintf(" %6s served", percent(a.Served, total)) +
			m.style.dim.Render(fmt.Sprintf("  %9s of %9s requests", grouped(a.Served), grouped(total)))
	}
	sold := fmt.Sprintf(" %d of %d sold, %d to bots", s.Sale.Sold, s.Sale.Stock, s.Sale.ToBots)
	over := m.style.good.Render(", none oversold")
	if s.Sale.Oversold > 0 {
		over = m.style.bad.Render(fmt.Sprintf(", %d OVERSOLD", s.Sale.Oversold))
	}
	rows := []string{
		audience("Shoppers", s.Shoppers, m.style.good),
		audience("Bots", s.Bots, m.style.bad),
		m.label("Stock") + m.style.note.Render(bar(float64(s.Sale.Sold), float64(s.Sale.Stock), width)) + sold + over,
	}
	if m.height >= roomForSale {
		rows = append(rows, m.label("Sale")+m.style.dim.Render(saleRow(&s.Sale, w-labelWidth)))
	}
	return rows
}

// roomForSale is the least height that has room for the sale's own row.
const roomForSale = 20

// saleRow tells as much of the sale as has room in a row.
func saleRow(s *demo.Sale, w int) string {
	text := fmt.Sprintf("held %d · paid %d", s.Held, s.Paid)
	for _, more := range []string{
		fmt.Sprintf(" · returned %d", s.Returned), fmt.Sprintf(" · refunded %d", s.Refunded), fmt.Sprintf(" · duplicates refused %d", s.DuplicatesRefused),
	} {
		if lipgloss.Width(text+more) > w {
			break
		}
		text += more
	}
	return text
}

// Of the events of a store that is made to fail, as many are shown as there is room for beside the rest, at least fewEvents.
const (
	fewEvents   = 3
	roomForRest = 30
)

// faults shows what decides, and the latest of what was done to the store.
func (m model) faults(s demo.Snapshot) []string {
	f := s.Faults
	if f == nil {
		return nil
	}
	in := m.style.good
	if f.L1 {
		in = m.style.bad
	}
	rows := []string{"", m.label("Decides") + in.Render(f.InForce) + m.style.dim.Render(fmt.Sprintf("  %s by local limits so far", grouped(f.Local)))}
	shown := f.Events[max(0, len(f.Events)-max(fewEvents, m.height-roomForRest)):]
	moods := map[demo.Mood]lipgloss.Style{demo.Good: m.style.good, demo.Bad: m.style.bad, demo.Note: m.style.note}
	for _, e := range shown {
		rows = append(rows, m.style.dim.Render(fmt.Sprintf("%9s  ", e.At.Round(100*time.Millisecond)))+moods[e.Mood].Render(e.Text))
	}
	return rows
}

// Around the list of rules are its heading, an empty row, and the foot. Where fewer than fewRules have room they share one row.
const (
	roundRules = 3
	fewRules   = 3
)

// busiest names in one row as many of the busiest rules as have room in it, and counts the others.
func (m model) busiest(s demo.Snapshot, w int) string {
	text := ""
	for i := range s.ByRule {
		longer := ""
		for _, r := range s.ByRule[:i+1] {
			longer += fmt.Sprintf("%s %s · ", r.Rule, grouped(r.Denied))
		}
		longer = strings.TrimSuffix(longer, " · ")
		if rest := len(s.ByRule) - i - 1; rest > 0 {
			longer += fmt.Sprintf(" · %d more", rest)
		}
		if i > 0 && lipgloss.Width(longer) > w-labelWidth {
			break
		}
		text = longer
	}
	return m.label("Denied by") + m.style.bad.Render(text)
}

// rules lists the busiest rules; if not all fit, the last row counts the others.
func (m model) rules(s demo.Snapshot, w, room int) []string {
	if len(s.ByRule) == 0 {
		return []string{m.style.dim.Render("none yet")}
	}
	shown := s.ByRule
	var rest int64
	if len(shown) > room {
		shown = shown[:room-1]
		for _, r := range s.ByRule[room-1:] {
			rest += r.Denied
		}
	}
	name := 16
	for _, r := range shown {
		name = min(max(name, lipgloss.Width(r.Rule)), w/3)
	}
	var rows []string
	for _, r := range shown {
		left := pad(clip(r.Rule, name), name) + fmt.Sprintf(" %10s  ", grouped(r.Denied))
		rows = append(rows, left+m.style.bad.Render(solid(float64(r.Denied), float64(s.ByRule[0].Denied), w-lipgloss.Width(left))))
	}
	if rest > 0 {
		rows = append(rows, m.style.dim.Render(fmt.Sprintf("%d more rules: %s", len(s.ByRule)-len(shown), grouped(rest))))
	}
	return rows
}

func (m model) foot() string {
	if m.leaving {
		return m.style.note.Render("closing: the last answers are on their way …")
	}
	text := "q or ctrl-c ends it early"
	if invite := text + " · buy something yourself at " + m.past[len(m.past)-1].Gateway; lipgloss.Width(invite) < m.width {
		text = invite
	}
	return m.style.dim.Render(text)
}

func (m model) label(text string) string { return m.style.label.Render(pad(text, labelWidth)) }

// rate is the change of a count per second, over about the last second.
func (m model) rate(of func(demo.Snapshot) int64) int64 {
	last := m.past[len(m.past)-1]
	for i := len(m.past) - 2; i >= 0; i-- {
		if gap := last.Elapsed - m.past[i].Elapsed; gap >= 900*time.Millisecond {
			return perSecond(of(last)-of(m.past[i]), gap)
		}
	}
	return perSecond(of(last), last.Elapsed)
}

// course is the rate between one snapshot and the next, for at most the last n of them.
func (m model) course(of func(demo.Snapshot) int64, n int) []float64 {
	var rates []float64
	for i := max(1, len(m.past)-max(n, 0)); i < len(m.past); i++ {
		a, b := m.past[i-1], m.past[i]
		rates = append(rates, float64(perSecond(of(b)-of(a), b.Elapsed-a.Elapsed)))
	}
	return rates
}
