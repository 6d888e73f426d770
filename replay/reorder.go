package replay

import "slices"

// mostHeld bounds the requests that wait for earlier ones.
const mostHeld = 1 << 16

// reorder brings requests into the order of their times. It holds what came within window of the latest time, so that a
// line that is late by less still finds its place.
type reorder struct {
	window int64
	count  *logCount

	queue  []*entry // by time; entries of one time in the order in which they came
	head   int
	newest int64
	last   int64 // the time of what went out last
	begun  bool
}

// push takes a request in. What can go out now is appended to out.
func (r *reorder) push(e *entry, out []*entry) []*entry {
	if r.begun && e.at < r.newest {
		r.count.outOfOrder++
	}
	if r.begun && e.at < r.last {
		r.count.late++
		e.at, e.late = r.last, true
	}
	if !r.begun {
		r.newest, r.last, r.begun = e.at, e.at-r.window-1, true
	}
	r.insert(e)
	r.newest = max(r.newest, e.at)
	return r.release(r.newest-r.window, out)
}

// insert puts a request behind all that are not later. Logs are nearly in order, so that is at or near the end.
func (r *reorder) insert(e *entry) {
	i := len(r.queue)
	for steps := 0; i > r.head && r.queue[i-1].at > e.at; steps++ {
		if steps == 16 { // far: search for it
			n, _ := slices.BinarySearchFunc(r.queue[r.head:i], e.at+1, func(q *entry, at int64) int {
				if q.at < at {
					return -1
				}
				return 1
			})
			i = r.head + n
			break
		}
		i--
	}
	r.queue = slices.Insert(r.queue, i, e)
}

// release lets go out what is not after a time, and what is too much.
func (r *reorder) release(until int64, out []*entry) []*entry {
	for r.head < len(r.queue) && (r.queue[r.head].at <= until || len(r.queue)-r.head > mostHeld) {
		out = append(out, r.queue[r.head])
		r.last = r.queue[r.head].at
		r.queue[r.head] = nil
		r.head++
	}
	if r.head > 4096 && r.head*2 > len(r.queue) {
		n := copy(r.queue, r.queue[r.head:])
		clear(r.queue[n:])
		r.queue, r.head = r.queue[:n], 0
	}
	return out
}

// rest returns all that is left.
func (r *reorder) rest(out []*entry) []*entry {
	out = append(out, r.queue[r.head:]...)
	r.queue, r.head = nil, 0
	return out
}
