package memstock

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

var _ flashsale.RefusalLog = (*Stock)(nil)

const (
	// refusalsLook is how many bytes of the log, and refusalsEach how many entries, one call looks at.
	refusalsLook = 400 << 10
	refusalsEach = 512
)

// refusalLog is the log of refusals. Its entries are numbered from 1 on.
type refusalLog struct {
	mu      sync.Mutex
	entries []refusalEntry // the oldest first
	first   int64          // the number of entries[0]
	bytes   int
	began   int64 // µs, 0: there is none
	gone    int64 // µs, when the last one that was removed had been appended
}

type refusalEntry struct {
	at   int64 // µs
	text string
}

// size is what an entry counts for: its bytes, rounded up as the allocator may, and what stands around them.
func (e *refusalEntry) size() int { return len(e.text) + len(e.text)/8 + 96 }

// AppendRefusals implements [flashsale.RefusalLog].
func (s *Stock) AppendRefusals(ctx context.Context, entry []byte) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := flashsale.CheckRefusalEntry(entry); err != nil {
		return err
	}
	l := &s.refusals
	l.mu.Lock()
	defer l.mu.Unlock()
	now := s.now()
	if l.began == 0 {
		l.began, l.first = now, 1
	}
	if len(entry) > 0 {
		if n := len(l.entries); n > 0 { // its order is that of its times
			now = max(now, l.entries[n-1].at)
		}
		l.entries = append(l.entries, refusalEntry{now, string(entry)})
		l.bytes += l.entries[len(l.entries)-1].size()
	}
	l.trim(now, s.cfg.MaxRefusalBytes)
	return nil
}

// trim removes what is too old or too much.
func (l *refusalLog) trim(now int64, most int) {
	keep, n := flashsale.RefusalsFor.Microseconds(), 0
	for n < len(l.entries) && (l.bytes > most || l.entries[n].at <= now-keep) {
		l.bytes -= l.entries[n].size()
		l.gone = l.entries[n].at
		l.entries[n] = refusalEntry{}
		n++
	}
	l.entries, l.first = l.entries[n:], l.first+int64(n)
}

func (l *refusalLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, l.bytes = nil, 0
}

// FindRefusals implements [flashsale.RefusalLog]. It looks at some 400 KiB, or at 512 entries, in one call.
func (s *Stock) FindRefusals(ctx context.Context, q flashsale.RefusalQuery) (p flashsale.RefusalPage, err error) {
	if err := s.check(ctx); err != nil {
		return p, err
	}
	if err := q.Check(); err != nil {
		return p, err
	}
	before := int64(-1)
	if q.Cursor != "" {
		if before, err = strconv.ParseInt(q.Cursor, 10, 64); err != nil || before < 1 {
			return p, failf(flashsale.CodeInvalidArgument, "%.64q is not a cursor of the log of refusals; begin with an empty one", q.Cursor)
		}
	}
	l := &s.refusals
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began == 0 {
		p.Since = time.UnixMicro(s.now()).UTC()
		return p, nil
	}
	p.Since = time.UnixMicro(l.began).UTC()
	if l.gone >= l.began {
		p.Since = time.UnixMicro(l.gone + 1).UTC()
	}
	l.look(&p, before, q.Needles)
	return p, nil
}

// look looks at a part of the log.
func (l *refusalLog) look(p *flashsale.RefusalPage, before int64, needles []string) {
	i := len(l.entries)
	if before > 0 {
		i = int(min(max(before-l.first, 0), int64(i)))
	}
	for bytes, n := 0, 0; i > 0 && bytes < refusalsLook && n < refusalsEach; n++ {
		i--
		e := &l.entries[i]
		bytes += len(e.text)
		p.Reached = time.UnixMicro(e.at).UTC()
		for _, needle := range needles {
			if strings.Contains(e.text, needle) {
				p.Entries = append(p.Entries, e.text)
				break
			}
		}
	}
	if i > 0 {
		p.Cursor = strconv.FormatInt(l.first+int64(i), 10)
	}
}
