package memstore

import (
	"crypto/sha256"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/algo"
)

// maxText is the longest text of a slot or a key that is kept as it is; what is longer is kept as its hash.
const maxText = 128

// identity names a state: a slot, a key, and a hash of both.
type identity struct {
	slot, key string
	hash      uint64 // its lowest bit tells whether key is the hash of a long key
}

// identify makes the identity of a slot and a key. Its texts are the caller's; they are copied when they are kept.
func (s *Store) identify(slot, key string) identity {
	long := uint64(0)
	if len(slot) > maxText {
		slot = longSlot(slot)
	}
	if len(key) > maxText {
		key, long = digest(key), 1
	}
	return identity{slot, key, hashOf(s.seed, slot, key) | long}
}

// hashOf is the hash of texts that are not long. Clients choose keys, so those go through a seeded hash.
func hashOf(seed maphash.Seed, slot, key string) uint64 {
	return (maphash.String(seed, key) ^ mix(slot)) &^ 1
}

// mix is a quick hash of a slot, which no client chooses: its length and its first, middle and last bytes.
func mix(slot string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	n := len(slot)
	h := uint64(n)
	switch {
	case n >= 8:
		h = (h ^ eight(slot)) * odd
		h = (h ^ h>>32 ^ eight(slot[n-8:])) * odd
		if n > 16 {
			h = (h ^ h>>32 ^ eight(slot[n/2-4:])) * odd
		}
	case n >= 4:
		h = (h<<56 ^ four(slot) ^ four(slot[n-4:])<<24) * odd
	case n > 0:
		h = (h<<56 ^ uint64(slot[0]) ^ uint64(slot[n/2])<<8 ^ uint64(slot[n-1])<<16) * odd
	}
	return h ^ h>>32
}

func four(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// digest is 128 bits of the SHA-256 of a long text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:16])
}

// longSlot is the digest of a long slot, padded to a length that no short slot has.
func longSlot(text string) string {
	var padded [maxText + 1]byte
	copy(padded[:], digest(text))
	return string(padded[:])
}

// entry is the state of one key. slot, key and hash never change once it is in the table; cell and keep belong to mu. Its
// size, 96 bytes, is one of Go's size classes: a field more costs 16 bytes for each key.
//
// What is only read when an entry is looked for stands first, what every take writes after it and together: on several
// cores a line that another core has written costs more than everything else in a take.
type entry struct {
	next atomic.Pointer[entry] // in the chain of its bucket; written under the shard's lock
	slot *slot
	key  string
	hash uint32 // the lower half of the identity's
	keep lease
	mu   sync.Mutex
	cell algo.Cell
}

func (e *entry) is(hash uint32, slot, key string) bool {
	return e.hash == hash && e.key == key && e.slot.name == slot
}

func newEntry(id *identity, s *slot) *entry {
	e := allocate(id.key)
	e.slot, e.hash = s, uint32(id.hash)
	return e
}
