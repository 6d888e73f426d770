package replay

import (
	"fmt"
	"slices"
)

// samples is how many malformed lines are shown.
const samples = 5

// logCount counts what was read. It belongs to the goroutine that reads.
type logCount struct {
	progress *Progress

	lines, notHTTP   int64
	malformedLines   int64
	malformedSamples []BadLine
	byProblem        map[problem]int64
	outOfOrder, late int64
	stray            int64
	unsaid           int64 // clients that are no address
	notes            []string
}

// BadLine is a line that could not be read.
type BadLine struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
	// Text is the beginning of the line, with escapes for what does not print.
	Text string `json:"text"`
}

func (c *logCount) malformed(file string, number int64, line []byte, what problem) {
	c.malformedLines++
	if c.byProblem == nil {
		c.byProblem = map[problem]int64{}
	}
	c.byProblem[what]++
	if len(c.malformedSamples) < samples {
		text := shown(string(line[:min(len(line), 512)]), 120)
		c.malformedSamples = append(c.malformedSamples, BadLine{file, number, string(what), text})
	}
}

// firstOf says what is wrong with the first malformed line of a file that is still known.
func (c *logCount) firstOf(file string) string {
	i := slices.IndexFunc(c.malformedSamples, func(b BadLine) bool { return b.File == file })
	if i < 0 {
		return "and no line fits"
	}
	b := c.malformedSamples[i]
	hint := ""
	switch problem(b.Reason) {
	case jsonTime, jsonMethod, jsonPath, jsonClient, jsonBadTime:
		hint = " (name it with --fields)"
	}
	return fmt.Sprintf("line %d: %s%s: %s", b.Line, b.Reason, hint, b.Text)
}

// broken notes a log that cannot be read to its end.
func (c *logCount) broken(file string, after int64, err error) {
	c.notes = append(c.notes, fmt.Sprintf("%s cannot be read beyond line %d: %v", shown(file, 200), after, err))
}

// pool has entries that are used again. It belongs to the goroutine that reads.
type pool struct{ free []*entry }

func (p *pool) take() *entry {
	n := len(p.free)
	if n == 0 {
		e := &entry{}
		e.reset()
		return e
	}
	e := p.free[n-1]
	p.free = p.free[:n-1]
	return e
}

func (p *pool) give(entries ...*entry) {
	for _, e := range entries {
		e.reset()
	}
	p.free = append(p.free, entries...)
}
