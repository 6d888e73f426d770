package engine

// refusalQueue has the numbers of lines, first in, first out.
type refusalQueue struct {
	lines []int32 // from head on
	head  int
}

func (q *refusalQueue) len() int { return len(q.lines) - q.head }

func (q *refusalQueue) push(line int32) {
	if q.head > 0 && len(q.lines) == cap(q.lines) {
		n := copy(q.lines, q.lines[q.head:])
		q.lines, q.head = q.lines[:n], 0
	}
	q.lines = append(q.lines, line)
}

func (q *refusalQueue) pop() {
	if q.head++; q.head == len(q.lines) {
		q.lines, q.head = q.lines[:0], 0
	}
}

// enqueue has a line written that has not been counted up yet, and reports whether much waits to be.
func (s *refusalShard) enqueue(at int32, now int64) (full bool) {
	line := &s.lines[at]
	if line.count == line.written {
		line.fresh = now
	}
	if line.waits {
		return false
	}
	line.waits = true
	s.queue.push(at)
	return 2*s.queue.len() >= s.limit
}

// drain writes what waits into an entry, and reports whether that was full before all was in it.
func (j *journal) drain(w *entryWriter) (more bool) {
	for range refusalShards {
		s := &j.shards[j.next]
		for more := true; more; {
			var room bool
			if more, room = s.drainSome(w); !room {
				return true
			}
		}
		j.next = (j.next + 1) % refusalShards
	}
	return false
}

// drainSome writes some of what waits in a shard. It reports whether more may, and whether there is room for it.
func (s *refusalShard) drainSome(w *entryWriter) (more, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := &s.lost; l.count > 0 {
		if !w.add(&refusalRecord{user: nobodysRefusals, kind: refusalKind{code: codeDropped}, count: l.count, first: l.first, last: l.last}) {
			return true, false
		}
		w.dropped += l.count
		*l = refusalLoss{}
	}
	for range drainAtOnce {
		if s.queue.len() == 0 {
			return false, true
		}
		line := &s.lines[s.queue.lines[s.queue.head]]
		if n := line.count - line.written; n > 0 && !w.add(line.unwritten()) {
			return true, false
		}
		line.written, line.waits = line.count, false
		s.queue.pop()
	}
	return true, true
}

// unwritten is what of a line is not in the log.
func (l *refusalLine) unwritten() *refusalRecord {
	return &refusalRecord{
		user: l.name, kind: *l.kind, quantity: l.quantity, retry: l.retry, count: l.count - l.written, first: l.fresh, last: max(l.last, l.fresh),
	}
}

// untold are the refusals that were dropped and that the log was not told of yet.
func (j *journal) untold() (all refusalLoss) {
	for i := range j.shards {
		s := &j.shards[i]
		s.mu.Lock()
		all.add(s.lost.count, s.lost.first, s.lost.last)
		s.mu.Unlock()
	}
	return all
}
