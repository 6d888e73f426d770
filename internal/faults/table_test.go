package faults

import (
	"fmt"
	"strings"
	"time"
)

// row is what was measured of one fault.
type row struct {
	// lasted is how long the fault was there; back how long after it every instance had strict and leased
	// rules admitted by the store again.
	lasted, back time.Duration
	// longest is the longest call, but for the time in which its process was stopped.
	longest time.Duration
	// over is how many were admitted over the limits, bound how many may be.
	over, bound int64
	// decisions were made, local of them by local limits; refused had none; skipped were not even asked for.
	decisions, local, refused, skipped int
	// opened is how often a breaker opened.
	opened int
	// heap is the most that an instance has in use at its end, redis what the store has. In bytes.
	heap, redis int64
}

func tableHead() string {
	return "| fault | lasted | decisions | by local limits | answered 503 | over the limits | may be | longest call | back after | heap | Redis |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
}

func (r *row) line(name string) string {
	redis := "–"
	if r.redis > 0 {
		redis = megabytes(r.redis)
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %s | %s | %s | %s |\n", name, short(r.lasted), r.decisions, r.local, r.refused,
		r.over, r.bound, short(r.longest), short(r.back), megabytes(r.heap), redis)
}

func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

// table is all rows, in the order of the faults.
func table(faults []fault, rows map[string]*row) string {
	var b strings.Builder
	b.WriteString(tableHead())
	for _, f := range faults {
		if r := rows[f.name]; r != nil {
			b.WriteString(r.line(f.name))
		}
	}
	return b.String()
}
