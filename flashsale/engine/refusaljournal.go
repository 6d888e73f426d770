package engine

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// refusalShards keeps calls of different users from waiting for each other.
	refusalShards = 16
	// maxUserRefusals bounds the kinds of refusals that are kept of one user.
	maxUserRefusals = 32
	// maxKinds bounds the kinds that a shard looks for among those it has, before it begins anew.
	maxKinds = 4096
	// drainAtOnce is how many lines are written out while callers wait.
	drainAtOnce = 64
)

// journal keeps the latest refusals, in shards by user. Of a user it keeps hashes alone. Each shard is a list by age of a bounded
// number of lines, and a line is one kind of refusal of one user: who clicks a thousand times has one line, which counts. Where there is a log of
// refusals a line also knows what of it was not written yet; it is the buffer of the log, and there is no other.
type journal struct {
	seed   maphash.Seed
	began  time.Time
	logged bool // there is a log to write to
	// full gets something when much waits to be written.
	full   chan struct{}
	shards [refusalShards]refusalShard
	next   int // the shard that is drained next; of who drains
}

// refusalKind is what two refusals of one user have in common that stand in one line.
type refusalKind struct {
	key    flashsale.Key
	code   flashsale.Code
	detail string
	rule   string
}

// refusalTold is what differs between two refusals of a kind.
type refusalTold struct {
	quantity int64
	retry    time.Duration
	at       time.Time
}

type refusalLine struct {
	kind            *refusalKind // shared by the lines of a shard
	user            uint64       // within this process
	name            uint64       // in the log
	quantity, count int64
	first, last     int64 // microseconds
	retry           int64 // milliseconds
	// written is how many of count are in the log or on their way, fresh when the first of the others was. Waits tells that the line is in
	// the shard's queue.
	written, fresh int64
	waits          bool
	// newer and older are the neighbours in the shard's list, next is the user's next line. 0 is none: line 0 is the list's head.
	newer, older, next int32
}

type refusalUser struct {
	head  int32
	lines int32
	// reach is when the last of the user's own lines was dropped for another of the same user.
	reach int64
}

type refusalShard struct {
	mu    sync.Mutex
	limit int
	lines []refusalLine
	users map[uint64]refusalUser
	kinds map[refusalKind]*refusalKind
	kind  *refusalKind // the last one
	// reach is when the last refusal was made that was dropped.
	reach   int64
	dropped int64
	// queue has the lines with something that is not written, each once.
	queue refusalQueue
	lost  refusalLoss
}

// refusalLoss are refusals that were dropped before they were written, and that the log was not told of.
type refusalLoss struct{ count, first, last int64 }

func (l *refusalLoss) add(count, first, last int64) {
	if count <= 0 {
		return
	}
	if l.count == 0 {
		l.first = first
	}
	l.count, l.first, l.last = l.count+count, min(l.first, first), max(l.last, last)
}

func newJournal(limit int, began time.Time, logged bool) *journal {
	j := &journal{seed: maphash.MakeSeed(), began: began, logged: logged, full: make(chan struct{}, 1)}
	for i := range j.shards {
		j.shards[i] = refusalShard{limit: max(limit/refusalShards, 1), lines: make([]refusalLine, 1), users: map[uint64]refusalUser{}, kinds: map[refusalKind]*refusalKind{}}
	}
	return j
}

func (j *journal) shard(user string) (*refusalShard, uint64) {
	h := maphash.String(j.seed, user)
	return &j.shards[h%refusalShards], h
}

func (j *journal) note(user string, kind refusalKind, told refusalTold) {
	s, h := j.shard(user)
	s.mu.Lock()
	at := s.find(h, &kind)
	now := told.at.UnixMicro()
	if at == 0 {
		at = s.add(h)
		line := &s.lines[at]
		line.kind, line.count, line.first, line.written = s.shared(&kind), 0, now, 0
		if j.logged {
			line.name = refusalName(user)
		}
	} else {
		s.unlink(at)
	}
	line := &s.lines[at]
	line.quantity, line.retry, line.last = told.quantity, told.retry.Milliseconds(), max(now, line.last)
	full := j.logged && s.enqueue(at, now)
	line.count++
	s.link(at)
	s.mu.Unlock()
	if full {
		select {
		case j.full <- struct{}{}:
		default:
		}
	}
}

// lose counts refusals that are nowhere.
func (j *journal) lose(n int64, at time.Time) {
	s, now := &j.shards[0], at.UnixMicro()
	s.mu.Lock()
	s.lost.add(n, now, now)
	s.mu.Unlock()
}

func (s *refusalShard) find(user uint64, kind *refusalKind) int32 {
	for at := s.users[user].head; at != 0; at = s.lines[at].next {
		if *s.lines[at].kind == *kind {
			return at
		}
	}
	return 0
}

// shared returns the one text of a kind that all lines of the shard have.
func (s *refusalShard) shared(kind *refusalKind) *refusalKind {
	if s.kind != nil && *s.kind == *kind {
		return s.kind
	}
	one := s.kinds[*kind]
	if one == nil {
		if len(s.kinds) >= maxKinds {
			clear(s.kinds)
		}
		copied := *kind
		one = &copied
		s.kinds[copied] = one
	}
	s.kind = one
	return one
}

// add returns a line for a user, in no list by age: one of the user's own if there are many, a new one, or the oldest of all.
func (s *refusalShard) add(user uint64) (at int32) {
	u := s.users[user]
	switch {
	case u.lines >= maxUserRefusals:
		at = s.oldestOf(u.head)
		u.reach = max(u.reach, s.lines[at].last)
		s.drop(at)
		s.lines[at].last = 0
		s.users[user] = u
		return at
	case len(s.lines) <= s.limit:
		s.lines = append(s.lines, refusalLine{})
		at = int32(len(s.lines) - 1)
	default:
		at = s.lines[0].newer // around the head, the oldest comes after it
		s.evict(at)
		u = s.users[user] // it may have been this user's
	}
	s.lines[at] = refusalLine{user: user, next: u.head, waits: s.lines[at].waits}
	u.head, u.lines = at, u.lines+1
	s.users[user] = u
	return at
}

// drop forgets what a line has counted.
func (s *refusalShard) drop(at int32) {
	line := &s.lines[at]
	s.dropped += line.count
	if line.waits {
		s.lost.add(line.count-line.written, line.fresh, line.last)
	}
	s.unlink(at)
}

// evict takes the oldest line away from its user.
func (s *refusalShard) evict(at int32) {
	line := &s.lines[at]
	s.reach = max(s.reach, line.last)
	s.drop(at)
	u := s.users[line.user]
	if u.lines--; u.lines == 0 {
		delete(s.users, line.user)
		return
	}
	if u.head == at {
		u.head = line.next
	} else {
		before := u.head
		for s.lines[before].next != at {
			before = s.lines[before].next
		}
		s.lines[before].next = line.next
	}
	s.users[line.user] = u
}

func (s *refusalShard) oldestOf(head int32) int32 {
	oldest := head
	for at := head; at != 0; at = s.lines[at].next {
		if s.lines[at].last < s.lines[oldest].last {
			oldest = at
		}
	}
	return oldest
}

// link puts a line at the newest end of the list by age.
func (s *refusalShard) link(at int32) {
	newest := s.lines[0].older
	s.lines[at].older, s.lines[at].newer = newest, 0
	s.lines[newest].newer = at
	s.lines[0].older = at
}

func (s *refusalShard) unlink(at int32) {
	older, newer := s.lines[at].older, s.lines[at].newer
	s.lines[older].newer = newer
	s.lines[newer].older = older
}

// of returns a user's lines.
func (j *journal) of(user string) Refusals {
	s, h := j.shard(user)
	s.mu.Lock()
	u := s.users[h]
	reach := max(s.reach, u.reach)
	r := Refusals{Since: j.began, Of: make([]Refusal, 0, u.lines)}
	for at := u.head; at != 0; at = s.lines[at].next {
		r.Of = append(r.Of, s.lines[at].refusal())
	}
	s.mu.Unlock()
	if dropped := time.UnixMicro(reach); reach > 0 && dropped.After(r.Since) {
		r.Since = dropped
	}
	slices.SortFunc(r.Of, laterFirst)
	r.Dropped = j.dropped()
	return r
}

func (j *journal) dropped() (n int64) {
	for i := range j.shards {
		s := &j.shards[i]
		s.mu.Lock()
		n += s.dropped
		s.mu.Unlock()
	}
	return n
}

func (l *refusalLine) refusal() Refusal {
	k := l.kind
	return Refusal{
		Key: k.key, Code: k.code, Detail: k.detail, Rule: k.rule, Quantity: l.quantity, RetryAfter: time.Duration(l.retry) * time.Millisecond,
		Count: l.count, First: time.UnixMicro(l.first), Last: time.UnixMicro(l.last),
	}
}
