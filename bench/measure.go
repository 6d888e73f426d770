package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// section is one comparison.
type section struct {
	Name, Title string
	// notes say under the table what was measured.
	notes   string
	columns []column
	// goals, if there are any, are one figure for each column, or noGoal, that the contenders are compared with in place of the first of them.
	goals []float64
	// open starts what all contenders share, and makes the contenders.
	open func(tb testservers.TB) ([]contender, error)
	// once: one round is enough: the numbers do not vary, or there are enough of them in one.
	once bool
}

// column is one figure of a section.
type column struct {
	Name string `json:"name"`
	// Better tells which way is better; "" for figures that are shown without a ratio.
	Better better `json:"better,omitempty"`
	// digits after the point.
	digits int
}

type better string

const (
	lower  better = "lower"
	higher better = "higher"
)

// contender is one side of a comparison. The first of a section is what the others are compared with.
type contender struct {
	name string
	// try measures for about d and returns one figure for each column.
	try func(d time.Duration) ([]float64, error)
	// close ends what the contender has opened; nil if there is nothing.
	close func() error
}

// result is a measured section.
type result struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Notes   string   `json:"notes,omitempty"`
	Skipped string   `json:"skipped,omitempty"`
	Columns []column `json:"columns,omitempty"`
	Rows    []line   `json:"rows,omitempty"`
}

// line is a contender's part of a result: medians over the rounds, and how often it is worse than the first line.
type line struct {
	Contender string    `json:"contender"`
	Median    []float64 `json:"median"`
	// Times is how many times worse the contender is than the first; 0 where the column has no better.
	Times  []float64   `json:"times"`
	Rounds [][]float64 `json:"rounds"`
}

// measure runs a section: in each round every contender once, in an order that is turned by one from round to round.
func measure(s section, o options, progress io.Writer) (res result, err error) {
	var scope testservers.Scope
	defer scope.Close()
	var contenders []contender
	var opened error
	if err := scope.Start(func(tb testservers.TB) { contenders, opened = s.open(tb) }); err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, closeAll(contenders)) }()
	if opened != nil {
		return res, opened
	}
	rounds := o.rounds
	if s.once {
		rounds = 1
	}
	figures := make([][][]float64, len(contenders))
	for r := range rounds {
		for i := range contenders {
			at := (i + r) % len(contenders)
			c := contenders[at]
			runtime.GC() // what the one before has left is not this one's bill
			f, err := c.try(o.duration)
			if err != nil {
				return res, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(progress, "  round %d/%d  %-42s %.4g\n", r+1, rounds, c.name, f)
			figures[at] = append(figures[at], f)
		}
	}
	return summarise(s, contenders, figures), nil
}

func closeAll(contenders []contender) (err error) {
	for _, c := range contenders {
		if c.close != nil {
			err = errors.Join(err, c.close())
		}
	}
	return err
}

func summarise(s section, contenders []contender, figures [][][]float64) result {
	res := result{Name: s.Name, Title: s.Title, Notes: s.notes, Columns: s.columns}
	if s.goals != nil {
		res.Rows = append(res.Rows, s.goalLine())
	}
	for i, c := range contenders {
		row := line{Contender: c.name, Rounds: figures[i]}
		for k, col := range s.columns {
			m := median(figures[i], k)
			row.Median = append(row.Median, m)
			row.Times = append(row.Times, times(col.Better, res.base(k, m), m))
		}
		res.Rows = append(res.Rows, row)
	}
	return res
}

// median returns the median of a column over the rounds.
func median(rounds [][]float64, column int) float64 {
	v := make([]float64, len(rounds))
	for i, r := range rounds {
		v[i] = r[column]
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// times returns how many times worse v is than base.
func times(b better, base, v float64) float64 {
	switch {
	case b == lower && base > 0:
		return v / base
	case b == higher && v > 0:
		return base / v
	}
	return 0
}
