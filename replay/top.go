package replay

import "container/heap"

// heavy finds the keys with the most denials in bounded memory: the Space-Saving algorithm of Metwally, Agrawal and
// El Abbadi. A key whose share of all denials is above 1/most is among them for sure; its count is too high by at most over.
type heavy struct {
	most   int
	byHash map[uint64]*counter
	order  counterHeap
}

type counter struct {
	hash         uint64
	key          string
	denied, over int64
	requests     int64 // since the key was taken in
	index        int
}

func newHeavy(most int) *heavy { return &heavy{most: most, byHash: map[uint64]*counter{}} }

// see counts a request of a key.
func (h *heavy) see(hash uint64, key string, denied bool) {
	c := h.byHash[hash]
	if c == nil {
		if !denied {
			return
		}
		c = h.admit(hash, key)
	}
	c.requests++
	if denied {
		c.denied++
		heap.Fix(&h.order, c.index)
	}
}

// take takes a key in with what is known of it.
func (h *heavy) take(hash uint64, k *keyTally) {
	c := &counter{hash: hash, key: k.key, denied: k.denied, requests: k.requests}
	h.byHash[hash] = c
	heap.Push(&h.order, c)
}

// admit takes a key in, in place of the one with the fewest denials if there is no room.
func (h *heavy) admit(hash uint64, key string) *counter {
	if len(h.order) < h.most {
		c := &counter{hash: hash, key: keptKey(key)}
		h.byHash[hash] = c
		heap.Push(&h.order, c)
		return c
	}
	c := h.order[0]
	delete(h.byHash, c.hash)
	c.hash, c.key, c.over, c.requests = hash, keptKey(key), c.denied, c.denied
	h.byHash[hash] = c
	return c
}

// counterHeap has the counter with the fewest denials first.
type counterHeap []*counter

func (h counterHeap) Len() int           { return len(h) }
func (h counterHeap) Less(i, j int) bool { return h[i].denied < h[j].denied }
func (h counterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *counterHeap) Push(x any) {
	c := x.(*counter)
	c.index = len(*h)
	*h = append(*h, c)
}

// Pop implements heap.Interface; nothing calls it.
func (h *counterHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
