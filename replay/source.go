package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// Bounds of what a log's clock is believed.
const (
	// leap is how far a line may lie ahead of the ones before it without being doubted.
	leap = int64(time.Hour / time.Microsecond)
	// witnesses is how many lines in a row make a leap believed.
	witnesses = 16
	// astray is how far the first lines of a log may lie apart.
	astray = 30 * 24 * leap
	// firstLines is how many lines of a log may be malformed before it is held to be no log.
	firstLines = 100_000
)

// source reads the requests of one log. A line whose time leaps ahead alone, as one with a broken clock does, must not
// carry the time of the whole replay with it: it is held until others follow it, and counts as of the time before it if
// none does.
type source struct {
	name   string
	stdin  io.Reader
	count  *logCount
	reuse  *pool
	fields *fieldTable
	// openFile opens a file, and stopped tells that the replay is to end.
	openFile func(name string) (*os.File, error)
	stopped  func() bool

	reader *lineReader
	text   ncsa
	json   jsonLine
	kind   map[string]int64 // well-formed lines by format
	some   bool             // a line was not empty
	ended  bool
	first  int64 // time of its first request, where that is known

	ready   []*entry
	held    []*entry
	clock   int64
	started bool
}

func (s *source) open() error {
	s.json.table = s.fields
	s.kind = map[string]int64{}
	var err error
	s.reader, err = s.openLog(s.count.progress)
	return err
}

// next returns the next request, io.EOF after the last.
func (s *source) next() (*entry, error) {
	for len(s.ready) == 0 {
		if s.ended {
			return nil, io.EOF
		}
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	e := s.ready[0]
	s.ready = s.ready[1:]
	return e, nil
}

// peek returns the time of the next request.
func (s *source) peek() (int64, error) {
	for len(s.ready) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.advance(); err != nil {
			return 0, err
		}
	}
	return s.ready[0].at, nil
}

// advance reads a line, or ends the log.
func (s *source) advance() error {
	s.ready = s.ready[:0]
	e, err := s.read()
	if e != nil {
		s.admit(e)
		return nil
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	s.ended = true
	s.reader.close()
	if len(s.kind) == 0 && s.some && !s.stopped() {
		return s.noLog()
	}
	for len(s.held) > 0 {
		s.believe()
	}
	return nil
}

// read returns the next line that is a request.
func (s *source) read() (*entry, error) {
	for {
		if s.stopped() {
			return nil, io.EOF
		}
		line, long, err := s.reader.next()
		switch {
		case err != nil && errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			if !s.stopped() { // a reader that was told to stop fails as well
				s.count.broken(s.name, s.reader.line, err)
			}
			return nil, io.EOF
		case len(line) == 0 && !long:
			continue
		}
		s.some = true
		s.count.lines++
		s.count.progress.Lines.Store(s.count.lines)
		e := s.reuse.take()
		e.line = s.reader.line
		what := tooLong
		if !long {
			what = s.parse(line, e)
		}
		switch what {
		case fine:
			return e, nil
		case notHTTP:
			s.count.notHTTP++
		default:
			s.count.malformed(s.name, s.reader.line, line, what)
		}
		s.reuse.give(e)
		if len(s.kind) == 0 && s.reader.line >= firstLines {
			return nil, s.noLog()
		}
	}
}

func (s *source) parse(line []byte, e *entry) problem {
	text := string(line)
	var what problem
	var format string
	if strings.HasPrefix(strings.TrimLeft(text, " \t"), "{") {
		what, format = s.json.parse(text, e), "JSON lines"
	} else {
		what = s.text.parse(text, e)
		format = s.text.format()
	}
	if what == fine || what == notHTTP {
		s.kind[format]++
	}
	return what
}

// noLog says what was tried.
func (s *source) noLog() error {
	return &LogError{s.name, fmt.Errorf("none of its first %d lines is that of an access log; tried common and combined (nginx, Apache; "+
		"also with a host before the client) and JSON lines; %s", s.reader.line, s.count.firstOf(s.name))}
}

// admit takes a line in, and makes ready what is beyond doubt.
func (s *source) admit(e *entry) {
	if s.started && e.at <= s.clock+leap {
		held := s.held
		s.held = s.held[:0]
		near := held[:0]
		for _, h := range held {
			if h.at <= e.at+leap { // the gap was a little shorter than it looked
				near = append(near, h)
			} else { // it has leapt alone
				s.stray(h)
			}
		}
		for _, h := range append(near, e) {
			s.accept(h)
		}
		return
	}
	s.held = append(s.held, e)
	if len(s.held) >= witnesses {
		s.believe()
	}
}

func (s *source) accept(e *entry) {
	s.clock, s.started = max(s.clock, e.at), true
	s.ready = append(s.ready, e)
}

func (s *source) stray(e *entry) {
	s.count.stray++
	e.at, e.late = s.clock, true
	s.ready = append(s.ready, e)
}

// believe goes on from the earliest of the lines that are held.
func (s *source) believe() {
	held := slices.Clone(s.held)
	s.held = s.held[:0]
	start := earliest(held, !s.started)
	s.clock, s.started = start, true
	for _, e := range held {
		if e.at < start { // at the start, long before all others
			s.stray(e)
			continue
		}
		s.admit(e)
	}
}

// earliest returns the earliest time of some lines. At the start of a log a line that lies alone, long before all others,
// does not count.
func earliest(held []*entry, start bool) int64 {
	times := make([]int64, 0, len(held))
	for _, e := range held {
		times = append(times, e.at)
	}
	slices.Sort(times)
	if start {
		for len(times) > 2 && times[1]-times[0] > astray {
			times = times[1:]
		}
	}
	return times[0]
}

// formatName is the format of most lines.
func (s *source) formatName() string {
	best, most := "", int64(math.MinInt64)
	for format, n := range s.kind {
		if n > most || (n == most && format < best) {
			best, most = format, n
		}
	}
	return best
}
