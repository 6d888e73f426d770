package testlang

import (
	"fmt"
	"regexp"
	"strconv"
)

// counterText is {A..B} within a word. More digits than these would not fit.
var counterText = regexp.MustCompile(`\{([0-9]{1,18})\.\.([0-9]{1,18})\}`)

// counter is a place in a word that counts from one run of the line to the next.
type counter struct {
	// at and end are where it stands in the plain text.
	at, end     int
	first, last int64
	// width is to how many digits a number is filled up with zeros.
	width int
}

// counters finds the counters of a word.
func (w *word) counters() ([]counter, error) {
	var all []counter
	for _, m := range counterText.FindAllStringSubmatchIndex(w.plain, -1) {
		from, to := w.plain[m[2]:m[3]], w.plain[m[4]:m[5]]
		c := counter{at: m[0], end: m[1], width: len(from)}
		c.first, _ = strconv.ParseInt(from, 10, 64) // 18 digits at most
		c.last, _ = strconv.ParseInt(to, 10, 64)
		if c.last < c.first {
			return nil, faultf(w.column, "%s runs backwards: write the smaller number first", w.plain[c.at:c.end])
		}
		all = append(all, c)
	}
	return all, nil
}

// size is how many numbers a counter goes through.
func (c *counter) size() int64 { return c.last - c.first + 1 }

// countedWord is a word and its counters.
type countedWord struct {
	word
	counters []counter
}

// of returns the word of the nth run, from 0. Of several counters the last one runs fastest, and each begins again at its end.
func (w *countedWord) of(n int64) word {
	plain := w.plain
	for i := len(w.counters) - 1; i >= 0; i-- {
		c := &w.counters[i]
		number := fmt.Sprintf("%0*d", c.width, c.first+n%c.size())
		n /= c.size()
		plain = plain[:c.at] + number + plain[c.end:]
	}
	made := w.word
	made.plain = plain
	return made
}

// last returns the word with every counter at its end.
func (w *countedWord) last() word {
	made := *w
	made.counters = nil
	for _, c := range w.counters {
		c.first = c.last
		made.counters = append(made.counters, c)
	}
	return made.of(0)
}

// countedRequest reads a request. If its words have counters, each run has a request of its own.
func countedRequest(words []word) (Action, error) {
	var all []countedWord
	counts := false
	for i := range words {
		found, err := words[i].counters()
		if err != nil {
			return nil, err
		}
		counts = counts || len(found) > 0
		all = append(all, countedWord{words[i], found})
	}
	if !counts {
		return requestOf(words)
	}
	// What both ends allow, all between them allow.
	ends := make([]word, len(all))
	for i := range all {
		ends[i] = all[i].last()
	}
	if _, err := requestOf(ends); err != nil {
		return nil, err
	}
	r, err := requestOf(wordsOf(all, 0))
	if err != nil {
		return nil, err
	}
	r.counted = all
	return r, nil
}

func wordsOf(all []countedWord, n int64) []word {
	words := make([]word, len(all))
	for i := range all {
		words[i] = all[i].of(n)
	}
	return words
}

// Of returns the request of the nth run of its line, counted from 0: the same for all, unless the line has counters such as
// {1..50}.
func (r Request) Of(n int64) Request {
	if r.counted == nil {
		return r
	}
	made, err := requestOf(wordsOf(r.counted, n))
	if err != nil {
		return r // cannot be: both ends were read
	}
	return made
}

// actionOf returns what a line does in its nth run, from 0.
func (s *Step) actionOf(n int64) Action {
	if r, ok := s.Do.(Request); ok {
		return r.Of(n)
	}
	return s.Do
}
