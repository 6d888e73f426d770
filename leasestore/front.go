package leasestore

import (
	"math/bits"
	"sync/atomic"
)

// frontBits is the binary logarithm of the number of places in the front: 64 kB of them.
const frontBits = 13

// front remembers the holdings that were used last, each at the one place that its names lead to. It is there because it is
// quick: a few multiplications find the place, and a wrong guess costs no more than a look into the table. Clients who choose
// keys that lead to one place gain nothing but that.
type front struct {
	places [1 << frontBits]atomic.Pointer[holding]
}

func (f *front) place(slot, key string) *atomic.Pointer[holding] {
	const odd = 0x9e3779b97f4a7c15
	h := (fold(slot)*odd ^ fold(key)) * odd
	return &f.places[h>>(64-frontBits)]
}

// find returns the holding of a key if it is at its place.
func (f *front) find(slot, key string) *holding {
	if h := f.place(slot, key).Load(); h != nil && h.key == key && h.slot == slot {
		return h
	}
	return nil
}

// find returns the holding of a key, nil if there is none. It may be one that was just swept.
func (s *Store) find(slot, key string) *holding {
	if h := s.front.find(slot, key); h != nil {
		return h
	}
	h := s.lookup(slot, key)
	if h != nil {
		s.front.keep(h)
	}
	return h
}

func (f *front) keep(h *holding) { f.place(h.slot, h.key).Store(h) }

// forget empties the place of a holding, if it is there, so that it does not outlive its key.
func (f *front) forget(h *holding) { f.place(h.slot, h.key).CompareAndSwap(h, nil) }

// fold mixes the length of a text with its first, last and, where it is long, middle bytes.
func fold(text string) uint64 {
	n := len(text)
	h := uint64(n)
	switch {
	case n > 16:
		h ^= bits.RotateLeft64(eight(text[n/2-4:]), 43)
		fallthrough
	case n >= 8:
		return h ^ eight(text) ^ bits.RotateLeft64(eight(text[n-8:]), 21)
	case n >= 4:
		return h<<56 ^ four(text) ^ four(text[n-4:])<<24
	case n > 0:
		return h<<56 ^ uint64(text[0]) ^ uint64(text[n/2])<<8 ^ uint64(text[n-1])<<16
	}
	return h
}

func four(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
