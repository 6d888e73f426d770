package engine

import (
	"cmp"
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
)

// Refusal is what a shopper was told in place of a reservation, once or several times.
type Refusal struct {
	Key flashsale.Key
	// Code is the error's, Detail says more of CodeNotOpen: "not_yet", "ended", or the status.
	Code   flashsale.Code
	Detail string
	// Quantity is what the last call asked for.
	Quantity int64
	// Count is how often the user was told so, from First to Last.
	Count       int64
	First, Last time.Time
}

// Refusals are those of one user that this instance remembers. They are kept in memory: another instance has others.
type Refusals struct {
	// Instance has made them.
	Instance string
	// Since is how far back they reach: every refusal of this user by this instance after it is among them.
	Since time.Time
	// Dropped counts the refusals of all users that were forgotten to make room for later ones.
	Dropped int64
	// Of are the refusals, the latest first: one for each sku and reason, at most 32.
	Of []Refusal
}

// Refusals tells what this instance has refused a user, of a sale or ("") of all. Refusals of skus that nobody knows are not kept.
func (e *Engine) Refusals(sale, user string) Refusals {
	r := e.refusals.of(user)
	r.Instance = e.cfg.Instance
	if sale != "" {
		r.Of = slices.DeleteFunc(r.Of, func(one Refusal) bool { return one.Key.Sale != sale })
	}
	return r
}

// noteRefusal keeps why a reserve call has failed. It allocates nothing once the journal has grown.
func (e *Engine) noteRefusal(r *ReserveRequest, a *ReserveAnswer, err error) {
	known, ok := e.skus.look(r.Key)
	if err == nil || !ok {
		return // what clients make up fills no journal
	}
	kind := refusalKind{key: known.state.Key, code: flashsale.CodeOf(err), detail: a.Detail}
	e.refusals.note(r.User, kind, r.Quantity, e.cfg.Now())
}

// journal keeps the latest refusals, in shards by user. Of a user it keeps a hash alone. Each shard is a list by age of a bounded
// number of lines, and a line is one kind of refusal of one user: who clicks a thousand times has one line, which counts.
type journal struct {
	seed   maphash.Seed
	began  time.Time
	shards [refusalShards]refusalShard
}

// refusalKind is what two refusals of one user have in common that stand in one line.
type refusalKind struct {
	key    flashsale.Key
	code   flashsale.Code
	detail string
}

type refusalLine struct {
	refusalKind
	user            uint64
	quantity, count int64
	first, last     int64 // microseconds
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
	// reach is when the last refusal was made that was dropped.
	reach   int64
	dropped int64
}

func newJournal(limit int, began time.Time) *journal {
	j := &journal{seed: maphash.MakeSeed(), began: began}
	for i := range j.shards {
		j.shards[i] = refusalShard{limit: max(limit/refusalShards, 1), lines: make([]refusalLine, 1), users: map[uint64]refusalUser{}}
	}
	return j
}

func (j *journal) shard(user string) (*refusalShard, uint64) {
	h := maphash.String(j.seed, user)
	return &j.shards[h%refusalShards], h
}

func (j *journal) note(user string, kind refusalKind, quantity int64, now time.Time) {
	s, h := j.shard(user)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(h, &kind)
	if at == 0 {
		at = s.add(h)
		line := &s.lines[at]
		line.refusalKind, line.count, line.first = kind, 0, now.UnixMicro()
	} else {
		s.unlink(at)
	}
	line := &s.lines[at]
	line.quantity, line.last = quantity, max(now.UnixMicro(), line.last)
	line.count++
	s.link(at)
}

func (s *refusalShard) find(user uint64, kind *refusalKind) int32 {
	for at := s.users[user].head; at != 0; at = s.lines[at].next {
		if s.lines[at].refusalKind == *kind {
			return at
		}
	}
	return 0
}

// add returns a line for a user, in no list by age: one of the user's own if there are many, a new one, or the oldest of all.
func (s *refusalShard) add(user uint64) (at int32) {
	u := s.users[user]
	switch {
	case u.lines >= maxUserRefusals:
		at = s.oldestOf(u.head)
		u.reach = max(u.reach, s.lines[at].last)
		s.dropped += s.lines[at].count
		s.unlink(at)
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
	s.lines[at] = refusalLine{user: user, next: u.head}
	u.head, u.lines = at, u.lines+1
	s.users[user] = u
	return at
}

// evict takes the oldest line away from its user.
func (s *refusalShard) evict(at int32) {
	line := &s.lines[at]
	s.reach = max(s.reach, line.last)
	s.dropped += line.count
	s.unlink(at)
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
	slices.SortFunc(r.Of, func(a, b Refusal) int {
		return cmp.Or(b.Last.Compare(a.Last), b.First.Compare(a.First), cmp.Compare(a.Key.String(), b.Key.String()), cmp.Compare(a.Code, b.Code))
	})
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
	return Refusal{
		Key: l.key, Code: l.code, Detail: l.detail, Quantity: l.quantity, Count: l.count,
		First: time.UnixMicro(l.first), Last: time.UnixMicro(l.last),
	}
}
