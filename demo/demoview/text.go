package demoview

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

// bar draws part of total as a bar of a width.
func bar(part, total float64, width int) string {
	filled := solid(part, total, width)
	return filled + strings.Repeat("░", max(width-lipgloss.Width(filled), 0))
}

// solid is bar without its empty part. What is not nothing shows, and what is not all does not fill it.
func solid(part, total float64, width int) string {
	filled := share(part, total, max(width, 0))
	if filled == 0 && part > 0 && width > 0 {
		return "▏"
	}
	return strings.Repeat("█", filled)
}

func share(part, total float64, width int) int {
	if total <= 0 || part <= 0 || width <= 0 {
		return 0
	}
	return min(int(part/total*float64(width)), width)
}

// spark draws values as one line, the largest highest.
func spark(values []float64) string {
	const steps = "▁▂▃▄▅▆▇█"
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range values {
		step := 0
		if most > 0 {
			step = min(int(max(v, 0)/most*7+0.5), 7)
		}
		b.WriteString(string([]rune(steps)[step]))
	}
	return b.String()
}

// grouped writes a number with commas.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// percent never rounds something to nothing, nor nearly all to all.
func percent(part, total int64) string {
	if total == 0 {
		return "–"
	}
	p := float64(part) / float64(total) * 100
	switch {
	case part > 0 && p < 0.1:
		return "<0.1%"
	case part < total && p > 99.9:
		return ">99.9%"
	}
	return fmt.Sprintf("%.1f%%", p)
}

// short writes a measured time with about three digits.
func short(d time.Duration) string {
	switch us := float64(d) / float64(time.Microsecond); {
	case us == 0:
		return "–"
	case us < 999.5:
		return fmt.Sprintf("%.0fµs", us)
	case us < 9995:
		return fmt.Sprintf("%.2fms", us/1e3)
	case us < 99950:
		return fmt.Sprintf("%.1fms", us/1e3)
	case us < 999500:
		return fmt.Sprintf("%.0fms", us/1e3)
	default:
		return fmt.Sprintf("%.2fs", us/1e6)
	}
}

// whole writes a span in whole seconds.
func whole(d time.Duration) string { return d.Round(time.Second).String() }

func perSecond(n int64, in time.Duration) int64 {
	if in <= 0 {
		return 0
	}
	return int64(math.Round(float64(n) / in.Seconds()))
}

// spread puts two texts at the two ends of a line.
func spread(left, right string, width int) string {
	gap := max(width-lipgloss.Width(left)-lipgloss.Width(right), 1)
	return left + strings.Repeat(" ", gap) + right
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-lipgloss.Width(text), 0))
}

// clip cuts a text, with its colours, to a width.
func clip(text string, width int) string { return ansi.Truncate(text, width, "…") }
