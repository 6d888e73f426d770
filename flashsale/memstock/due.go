package memstock

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"github.com/headgate-io/headgate/flashsale"
)

// dueHeap has pending entries, that with the earliest deadline first. A list would do but for clocks that go back.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].deadline < h[j].deadline }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].due, h[j].due = i, j
}

// Push and Pop are for container/heap.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.due = len(*h)
	*h = append(*h, e)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

func (h *dueHeap) add(e *entry)    { heap.Push(h, e) }
func (h *dueHeap) remove(e *entry) { heap.Remove(h, e.due) }

// past returns all entries whose deadline is not after now, in the order of the heap: below one that is not past, none is.
func (h dueHeap) past(now int64) []*entry {
	var past []*entry
	for look := []int{0}; len(look) > 0; {
		i := look[len(look)-1]
		look = look[:len(look)-1]
		if i < len(h) && h[i].deadline <= now {
			past = append(past, h[i])
			look = append(look, 2*i+1, 2*i+2)
		}
	}
	return past
}

// Due implements [flashsale.Stock].
func (s *Stock) Due(ctx context.Context, key flashsale.Key, epoch int64, limit int) ([]flashsale.Entry, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	defer k.unlock()
	past := k.due.past(s.now())
	slices.SortFunc(past, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), cmp.Compare(a.seq, b.seq))
	})
	return publicOf(past[:min(max(limit, 0), len(past))]), nil
}

func publicOf(entries []*entry) []flashsale.Entry {
	out := make([]flashsale.Entry, len(entries))
	for i, e := range entries {
		out[i] = e.public()
	}
	return out
}
