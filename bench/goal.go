package main

// noGoal stands in a section's goals where a column has none; no figure is below 0.
const noGoal = -1

// goalLine is the line that the others are compared with where a section has goals in place of peers.
func (s section) goalLine() line {
	return line{Contender: "(the goal)", Median: s.goals, Times: make([]float64, len(s.goals)), Rounds: [][]float64{s.goals}}
}

// base returns what a figure of a column is compared with.
func (s result) base(k int, own float64) float64 {
	if len(s.Rows) == 0 {
		return own
	}
	return s.Rows[0].Median[k]
}
