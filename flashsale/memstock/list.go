package memstock

// An entry can be in two lists at once, and is a link of both itself.
const (
	inQueue  = iota // all jobs, in the order of the queue
	inPulled        // those that a consumer has, longest first
	lists
)

type link struct{ prev, next *entry }

// list is a doubly linked list through the links of one kind.
type list struct {
	kind       int
	head, tail *entry
	n          int64
}

func (l *list) push(e *entry) {
	e.job.links[l.kind] = link{prev: l.tail}
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.job.links[l.kind].next = e
	}
	l.tail = e
	l.n++
}

func (l *list) remove(e *entry) {
	at := e.job.links[l.kind]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.job.links[l.kind].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.job.links[l.kind].prev = at.prev
	}
	e.job.links[l.kind] = link{}
	l.n--
}

func (l *list) after(e *entry) *entry { return e.job.links[l.kind].next }
