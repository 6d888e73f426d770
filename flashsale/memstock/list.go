package memstock

// link is an entry's place in a list: an entry is a link itself.
type link struct{ prev, next *entry }

// list is a doubly linked list of the jobs that a consumer has, the one that was handed out first at its head.
type list struct {
	head, tail *entry
	n          int64
}

func (l *list) push(e *entry) {
	e.job.link = link{prev: l.tail}
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.job.link.next = e
	}
	l.tail = e
	l.n++
}

func (l *list) remove(e *entry) {
	at := e.job.link
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.job.link.next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.job.link.prev = at.prev
	}
	e.job.link = link{}
	l.n--
}
