package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// merge reads several logs as one, in the order of their times: those of several servers that run side by side, and the
// parts of one that was rotated, in whatever order they are named. A file is open only from the time of its first line on.
type merge struct {
	waiting []*source // by their first times
	active  []*source
	formats []FileReport
}

// newMerge looks at the beginning of every log. A log in which nothing can be read is an error.
func newMerge(ctx context.Context, names []string, newSource func(name string) *source) (*merge, error) {
	m := &merge{}
	first := map[*source]int64{}
	if err := sameTwice(names); err != nil {
		return nil, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		s := newSource(name)
		if size, regular := statLog(name); regular {
			s.count.progress.Total.Add(size)
		}
		at, err := firstTime(s)
		if ctx.Err() != nil { // it may have been interrupted by that
			err = io.EOF
		}
		switch {
		case errors.Is(err, io.EOF): // no requests; reading it counts what it has
			at = math.MinInt64
		case err != nil:
			m.close()
			return nil, err
		}
		first[s] = at
		m.waiting = append(m.waiting, s)
	}
	slices.SortStableFunc(m.waiting, func(a, b *source) int { return cmp.Compare(first[a], first[b]) })
	for _, s := range m.waiting {
		s.first = first[s]
	}
	return m, nil
}

// firstTime returns the time of a log's first request. A file is closed again, so that a year of logs does not lie open; a
// pipe can be read only once and stays.
func firstTime(s *source) (int64, error) {
	if _, regular := statLog(s.name); !regular {
		if err := s.open(); err != nil {
			return 0, err
		}
		return s.peek()
	}
	probe := &source{name: s.name, fields: s.fields, stopped: s.stopped, openFile: s.openFile, reuse: &pool{}, count: &logCount{progress: &Progress{}}}
	if err := probe.open(); err != nil {
		return 0, err
	}
	defer probe.reader.close()
	return probe.peek()
}

// sameTwice finds a file that is there under two names, and would count twice.
func sameTwice(names []string) error {
	type known struct {
		name string
		info os.FileInfo
	}
	bySize := map[int64][]known{}
	for _, name := range names {
		info, err := os.Stat(name)
		if name == Stdin || err != nil || !info.Mode().IsRegular() {
			continue
		}
		for _, k := range bySize[info.Size()] {
			if os.SameFile(k.info, info) {
				return &LogError{shown(name, 200), fmt.Errorf("it is the same file as %s, and would count twice", shown(k.name, 200))}
			}
		}
		bySize[info.Size()] = append(bySize[info.Size()], known{name, info})
	}
	return nil
}

func statLog(name string) (size int64, regular bool) {
	if name == Stdin {
		return 0, false
	}
	info, err := os.Stat(name)
	if err != nil {
		return 0, true // opening it says why
	}
	return info.Size(), info.Mode().IsRegular() || info.IsDir()
}

// next returns the next request of all logs, io.EOF after the last.
func (m *merge) next() (*entry, error) {
	for {
		i, at, err := m.earliest()
		if err != nil {
			return nil, err
		}
		if len(m.waiting) > 0 && (i < 0 || m.waiting[0].first <= at) {
			s := m.waiting[0]
			m.waiting = m.waiting[1:]
			if s.reader == nil {
				if s.stopped() {
					continue
				}
				if err := s.open(); err != nil {
					return nil, err
				}
			}
			m.active = append(m.active, s)
			continue
		}
		if i < 0 {
			return nil, io.EOF
		}
		return m.active[i].next()
	}
}

// earliest returns the open log whose next request is the earliest, -1 if none is open.
func (m *merge) earliest() (index int, at int64, err error) {
	index = -1
	for i := 0; i < len(m.active); i++ {
		next, err := m.active[i].peek()
		if errors.Is(err, io.EOF) {
			m.done(m.active[i])
			m.active = slices.Delete(m.active, i, i+1)
			i--
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		if index < 0 || next < at {
			index, at = i, next
		}
	}
	return index, at, nil
}

func (m *merge) done(s *source) {
	report := FileReport{File: shown(s.name, 200), Format: s.formatName()}
	if s.reader != nil {
		report.Lines = s.reader.line
	}
	m.formats = append(m.formats, report)
}

// close gives back what is still open, when a replay ends early.
func (m *merge) close() {
	for _, s := range slices.Concat(m.active, m.waiting) {
		if s.reader != nil {
			m.done(s)
			s.reader.close()
		}
	}
	m.active, m.waiting = nil, nil
}
